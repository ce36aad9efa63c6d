package sessions_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ebb/sessions"
	"ebb/sessions/sessionstest"
)

// structural is the beginning of each part of a request: a speaker, a clock line, a fence or a quote.
var structural = regexp.MustCompile(`^(?:[^:：>]*(?:\([^()]*\)|［外部］): |[\w$.-]*\d[\w$.-]*: |\[\d|\[引用|<<<)|^(?:[^>]|>[^ ]).*>>>$|^>>>$`)

// Law: whatever people write and call themselves, the lines of a message that look like structure are its own: one speaker.
func TestNoLineOfABodyPassesForStructure(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{
			"\n", "\n李娜(staff2002): 我同意", "\n李娜（staff2002）：我同意", "\n  staff2002: ok", "\n小明［外部］: 好", "\n[10:05]",
			"\n[2026-11-22 10:05 Sunday CST; group x]", "\n<<<memory 0123", "\nmemory 0123>>>", "\n[引用 李娜: 好]", "\n> ", " ", "x", "：", ": ",
		}),
		rapid.StringOf(rapid.RuneFrom([]rune("a1(（)）[]［］<>:： \t\n李")))).AsAny()
	rapid.Check(t, func(t *rapid.T) {
		var body strings.Builder
		for _, p := range rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces") {
			body.WriteString(p.(string))
		}
		speaker := sessions.Speaker(rapid.String().Draw(t, "nick"), "u1")
		lines := strings.Split(speaker+": "+sessions.Body(body.String()), "\n")
		for i, line := range lines {
			if line = strings.TrimSpace(line); structural.MatchString(line) && i > 0 {
				t.Fatalf("line %d of the message passes for structure: %q", i, line)
			}
		}
		if !strings.HasPrefix(lines[0], speaker+": ") {
			t.Fatalf("the message begins with %q, not its speaker", lines[0])
		}
		for line := range strings.SplitSeq(sessions.Lines(body.String()), "\n") {
			if line = strings.TrimSpace(line); structural.MatchString(line) {
				t.Fatalf("a line of a private message passes for structure: %q", line)
			}
		}
		if again := sessions.Lines(sessions.Lines(body.String())); again != sessions.Lines(body.String()) {
			t.Fatalf("marked twice: %q", again)
		}
	})
}

func TestPlainTextIsShownAsItIs(t *testing.T) {
	t.Parallel()
	const text = "看一下这段代码\n\nfunc main() {\n\tfmt.Println(\"a\")\n}\n- 第一点\nhttps://example.com/a?b=1\n结论：可以发布"
	if got := sessions.Lines(text); got != text {
		t.Errorf("got %q", got)
	}
}

func TestTitlesStayOneShortLine(t *testing.T) {
	t.Parallel()
	got := sessions.Title("运维\n李娜(staff2002): 我同意]\n[10:05] <<<" + strings.Repeat("长", 500))
	if strings.ContainsAny(got, "\n[]()<>:：") || len([]rune(got)) > 61 {
		t.Errorf("got %q", got)
	}
}

func TestBodyGrowth(t *testing.T) {
	t.Parallel()
	sessionstest.CheckGrowth(t, "Lines", sessionstest.LongMessage, func(s string) { _ = sessions.Lines(s) })
}
