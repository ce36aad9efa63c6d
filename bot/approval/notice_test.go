package approval_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"ebb/bot/approval"
	"ebb/sessions"
)

func leads(context.Context) (bool, error) { return true, nil }

func unassigned(sessions.ConversationID) string { return "" }

// Arguments of a harmful model stay inside the block of code, mention no person, and hide nothing.
func TestArgumentsAreShownSafely(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ arguments, want string }{
		"plain":              {`{"text": "发布", "n": 1}`, `{"text":"发布","n":1}`},
		"a block's end":      {"{\"text\":\"a\\n```\\n# 已批准 ```\"}", "{\"text\":\"a\\n\\u0060\\u0060\\u0060\\n# 已批准 \\u0060\\u0060\\u0060\"}"},
		"a mention":          {`{"text":"@所有人 a@b.cn"}`, `{"text":"＠所有人 a＠b.cn"}`},
		"a turned text":      {"{\"path\":\"a\u202egpj.exe\u200b\"}", `{"path":"a\u202egpj.exe\u200b"}`},
		"blanks":             {"{\"path\":\"a\u3164\u00a0b\"}", `{"path":"a\u3164\u00a0b"}`},
		"no JSON":            {"rm -rf\n```\n/", "rm -rf\\u000a\\u0060\\u0060\\u0060\\u000a/"},
		"tags of a card":     {`{"text":"<at id=all></at>"}`, `{"text":"＜at id=all＞＜/at＞"}`},
		"a link, a command":  {`{"text":"[同意](https://example.com/x) **已批准** /approve 9"}`, `{"text":"[同意](https://example.com/x) **已批准** /approve 9"}`},
		"control characters": {"{\"text\":\"a\u0007\x1b[2J\r\n~~~\n# b\"}", `{"text":"a\u0007\u001b[2J\u000d\u000a~~~\u000a# b"}`},
		"outside the plane":  {"{\"a\":\"\U000e0041\"}", `{"a":"\U000e0041"}`},
	} {
		got := approval.Arguments(sessions.Approval{Arguments: c.arguments}, "zh")
		if got != "```\n"+c.want+"\n```" {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Large arguments are cut, with their size and their hash. Their end is shown, too: it may be the part that does harm.
func TestLargeArgumentsAreCut(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(map[string]string{"text": strings.Repeat("无害", 17_000) + "末尾有害"})
	if err != nil {
		t.Fatal(err)
	}
	a := sessions.Approval{ID: 7, Tool: "files__write", Arguments: string(raw), Wait: time.Hour}
	got := (&approval.Desk{Location: time.UTC}).Notice([]sessions.Approval{a}, "张*伟*", "zh", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for _, want := range []string{"#7", "`files__write`", "张＊伟＊", "/approve 7", "/reject 7", "2026-01-02 04:04:05", "102,0", a.ArgumentsHash(), "末尾有害", "…"} {
		if !strings.Contains(got, want) {
			t.Errorf("the notice has no %q: %s", want, got)
		}
	}
	if n := len([]rune(got)); n > 1500 {
		t.Errorf("the notice has %d characters", n)
	}
}
