package summarize

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ebb/compaction"
	"ebb/compaction/compactiontest"
	"ebb/sessions"
)

// P70, P71: a whole request has the same structure for any talk, older summaries and wishes; the instructions hold no
// part of them.
func TestRequestsKeepTheirShape(t *testing.T) {
	t.Parallel()
	shape := func(text string) (system string, fences []string) {
		m := &modelFunc{answer: func(int, CompleteRequest) (Completion, error) { return good(), nil }}
		r := Request{Target: 300, Previous: "p" + text, Focus: "f" + text, Events: []sessions.Event{{Seq: 1, Role: sessions.RoleUser, Content: text, Tokens: 9}}}
		if _, err := summarizer(m).Summarize(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		open := ""
		for l := range strings.Lines(m.asked[0].User) {
			l = strings.TrimSuffix(l, "\n")
			name, mark, ok := strings.Cut(strings.TrimPrefix(l, "<<<"), " ")
			switch {
			case open == "" && strings.HasPrefix(l, "<<<") && ok:
				open, fences = name+" "+mark, append(fences, name)
			case open != "" && l == open+">>>":
				open = ""
			case open == "" && l != "":
				t.Fatalf("%q stands outside of all fences", l)
			}
		}
		if open != "" {
			t.Fatalf("fence %q is not closed", open)
		}
		return m.asked[0].System, fences
	}
	system, fences := shape("neutral words")
	if want := "previous-summary focus transcript"; strings.Join(fences, " ") != want {
		t.Fatalf("fences %v, want %s", fences, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		s, f := shape(compactiontest.Hostile().Draw(t, "text"))
		if s != system || strings.Join(f, " ") != strings.Join(fences, " ") {
			t.Fatalf("fences %v, and instructions %q", f, s)
		}
	})
}

// P74: no request of ours holds a credential, wherever it was said, and neither does a summary that was mended by hand.
func TestCredentialsStayOut(t *testing.T) {
	t.Parallel()
	const key, password = "sk-live0123456789abcdefghij", "Hunter2-secret!"
	secret := "服务器密码是 " + password + "，key " + key + " 别外传，工单 OPS-1234 "
	events := []sessions.Event{
		{Seq: 1, Role: sessions.RoleUser, SenderNick: "张伟", SenderID: "u1", Content: secret, Tokens: 30},
		{Seq: 2, Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: "login", Arguments: `{"password":"` + password + `"}`}}, Tokens: 30},
		{Seq: 3, Role: sessions.RoleTool, ToolCallID: "c", Content: strings.Repeat("x", 1330) + secret + strings.Repeat("y", 3000), Tokens: 900},
		{Seq: 4, Role: sessions.RoleAssistant, Content: "已登录", Tokens: 3},
	}
	active := []sessions.Summary{{StartSeq: 1, EndSeq: 2, Text: secret, Tokens: 900, MsgCount: 2}, {StartSeq: 3, EndSeq: 4, Text: secret, Tokens: 900, MsgCount: 2}}
	for _, p := range []compaction.Policy{compaction.Policies["token_budget"], compaction.Policies["archive"]} {
		for _, raw := range []bool{false, true} {
			m := &modelFunc{answer: func(int, CompleteRequest) (Completion, error) { return good(), nil }}
			task := Task{Policy: p, Active: active, Events: events, From: 4, Through: 8, Target: 300, Focus: secret, Longest: 4000}
			if raw {
				task.Raw = func(context.Context, int64, int64) ([]sessions.Event, error) { return events, nil }
			}
			d, err := engine(m).Summarize(t.Context(), task)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range m.asked {
				for _, s := range []string{key, key[:12], password} {
					if strings.Contains(r.System+r.User, s) {
						t.Errorf("%s: request %d holds %q", p.Name, i, s)
					}
				}
			}
			for _, s := range d.Summaries {
				if strings.Contains(s.Text, key) || strings.Contains(s.Text, password) {
					t.Errorf("%s: a summary holds a credential: %s", p.Name, s.Text)
				}
			}
			if js, _ := json.Marshal(d.Report); strings.Contains(string(js), key) || strings.Contains(string(js), password) {
				t.Errorf("%s: the report holds a credential: %s", p.Name, js)
			}
		}
	}
}
