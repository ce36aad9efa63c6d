package view_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ebb/bot/bottest"
	"ebb/sessions"
)

// A request has each part once: pinned memory, summaries, raw events and recalled data, between the system prompt and the question.
func TestPartsStandInTheirOrder(t *testing.T) {
	t.Parallel()
	const pinned, summary, raw, found = "张伟负责发布", "周五发布。", "现在几号？", "found: Heron"
	rapid.Check(t, func(t *rapid.T) {
		v, wanted, recalled := aView(), []string{pinned, summary, raw, found}, found
		leave := func(part string, empty func()) {
			if rapid.Bool().Draw(t, "without "+part) {
				empty()
				wanted = slices.DeleteFunc(wanted, func(w string) bool { return w == part })
			}
		}
		leave(pinned, func() { v.Session.Pinned = "" })
		leave(summary, func() { v.Summaries = nil })
		leave(raw, func() { v.Tail = nil })
		leave(found, func() { recalled = "" })
		msgs := testFrame.Assemble(v, aPolicy, recalled, []sessions.Event{user(11, "bob", "the question")})
		if why := bottest.Illegal(msgs); why != "" {
			t.Fatalf("%s:\n%s", why, bottest.Transcript(msgs))
		}
		text, at := bottest.Transcript(msgs), 0
		for _, part := range []string{pinned, summary, raw, found} {
			if n := strings.Count(text, part); n > 1 || n == 1 != slices.Contains(wanted, part) {
				t.Fatalf("%q stands %d times, wanted are %q:\n%s", part, n, wanted, text)
			}
			if i := strings.Index(text, part); i >= 0 {
				if i < at {
					t.Fatalf("%q stands before an earlier part:\n%s", part, text)
				}
				at = i
			}
		}
		if last := msgs[len(msgs)-1]; last.Role != "user" || last.Content != "bob(id-bob): the question" {
			t.Fatalf("the request ends with %+v", last)
		}
	})
}
