package upkeep

import (
	"errors"
	"fmt"
	"testing"

	"ebb/compaction"
	"ebb/sessions"
	"ebb/sessions/llm"
)

func TestLanguageOfDay(t *testing.T) {
	t.Parallel()
	for words, language := range map[string]string{
		"发布 v2 下周 release branch": "zh", "please ask 张三 about the database migration": "en", "12345": "zh", "": "zh",
	} {
		day := []sessions.Event{{Role: sessions.RoleUser, Content: words}, {Role: sessions.RoleAssistant, Content: "answered in English"}}
		if got := languageOfDay(day, "zh"); got != language {
			t.Errorf("%q: language %q, want %q", words, got, language)
		}
	}
}

// A reason that an older release stored is not shown verbatim.
func TestReasonIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Reason{
		"model error: busy": Reason(llm.Busy), "model error: unreachable": "unreachable", "out of time: context deadline exceeded": reasonTimeout,
		"no usable summary: summarize session x": reasonNoSummary, "summarize session x: dial tcp": "", "": "",
	} {
		if got := ParseReason(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := Reason("").Describe("en"); got != "the reason is recorded" {
		t.Errorf("an unknown reason reads %q", got)
	}
}

// The error column of a compaction has the reason once, and then the cause.
func TestReasonIsStoredOnce(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"no usable summary: the summary is empty":                      fmt.Errorf("%w: %w", errNoSummary, errors.New("the summary is empty")),
		"no gain: frees 3 of 900 tokens":                               fmt.Errorf("%w: %w", errNoGain, errors.New("frees 3 of 900 tokens")),
		"nothing to compact: everything in the view is recent":         compaction.ErrAllRecent,
		"storage: read session: broken":                                fmt.Errorf("read session: %w", errors.New("broken")),
		"conversation changed: write: " + sessions.ErrConflict.Error(): fmt.Errorf("write: %w", sessions.ErrConflict),
	} {
		if got := compactionFailureReason(err); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
