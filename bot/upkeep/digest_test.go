package upkeep

import (
	"testing"

	"ebb/bot/llm"
	"ebb/sessions"
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
