package summarize

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ebb/compaction"
	"ebb/compaction/compactiontest"
	"ebb/compaction/transcript"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/llm/llmtest"
)

// P70, P71: a whole request has the same structure for any talk, older summaries and wishes; the instructions hold no
// part of them.
func TestRequestsKeepTheirShape(t *testing.T) {
	t.Parallel()
	shape := func(text string) (system string, fences []string) {
		m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) { return good(), nil }}
		r := Request{Target: 300, Previous: "p" + text, Focus: "f" + text, Events: []sessions.Event{{Seq: 1, Role: sessions.RoleUser, Content: text, Tokens: 9}}}
		if _, err := summarizer(m).Summarize(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		open := ""
		for l := range strings.Lines(llmtest.Data(m.asked[0])) {
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
		return llmtest.Instructions(m.asked[0]), fences
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
			m := &modelFunc{answer: func(int, llm.Request) (llm.Response, error) { return good(), nil }}
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
					if strings.Contains(llmtest.Instructions(r)+llmtest.Data(r), s) {
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

// textsIn are the texts that requests have of each event, joined.
func textsIn(t interface{ Fatalf(string, ...any) }, asked ...llm.Request) map[int64]string {
	got := map[int64]string{}
	for _, r := range asked {
		for line := range strings.Lines(llmtest.Data(r)) {
			var l struct {
				N    int64
				Text string
			}
			if !strings.HasPrefix(line, `{"n":`) {
				continue
			}
			if err := json.Unmarshal([]byte(line), &l); err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			got[l.N] += l.Text
		}
	}
	return got
}

// Law: for any talk and any count, a request with its answer fits into the window, and every event is summarized once,
// whole and in order.
func TestRequestsFitTheWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := summarizer(nil)
		s.Context = rapid.SampledFrom([]int{4000, 8000}).Draw(t, "context")
		body := rapid.SampledFrom([]string{"收到", "ok thanks ", "\x00\"\\", "很长的一段话，", "x", "🙂👩‍👩‍👧", "\n"})
		var events []sessions.Event
		for i := range rapid.IntRange(1, 30).Draw(t, "events") {
			e := sessions.Event{Seq: int64(i + 1), Role: rapid.SampledFrom([]sessions.Role{sessions.RoleUser, sessions.RoleAssistant, sessions.RoleTool}).Draw(t, "role")}
			e.Content = strings.Repeat(body.Draw(t, "body"), rapid.SampledFrom([]int{1, 1, 1, 30, 300}).Draw(t, "times"))
			e.Tokens = rapid.IntRange(0, 100).Draw(t, "tokens") // counts may be wrong
			events = append(events, e)
		}
		next, asked := 1, []llm.Request(nil)
		s.Model = &modelFunc{answer: func(_ int, r llm.Request) (llm.Response, error) {
			if n := compactiontest.Counter().Count(llmtest.Instructions(r)+llmtest.Data(r)) + r.MaxOutput; n > s.Context || r.MaxOutput < min(reasoningRoom, s.Context/5) {
				t.Fatalf("%d tokens, %d of them for the answer, in a window of %d", n, r.MaxOutput, s.Context)
			}
			for _, n := range eventsIn(r) {
				if n != fmt.Sprint(next) && n != fmt.Sprint(next-1) { // or another piece
					t.Fatalf("event %s is summarized, want %d", n, next)
				}
				if n == fmt.Sprint(next) {
					next++
				}
			}
			asked = append(asked, r)
			return good(), nil
		}}
		r := Request{Events: events, Target: rapid.SampledFrom([]int{64, 400}).Draw(t, "target"), Focus: body.Draw(t, "focus")}
		r.Previous = strings.Repeat(body.Draw(t, "previous"), rapid.SampledFrom([]int{0, 1, 400}).Draw(t, "previous times"))
		if _, err := s.Summarize(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		if next != len(events)+1 {
			t.Fatalf("%d of %d events were summarized", next-1, len(events))
		}
		got := textsIn(t, asked...)
		for _, e := range events {
			if got[e.Seq] != transcript.Clean(e.Content) {
				t.Fatalf("event %d of %d bytes reads as %d", e.Seq, len(e.Content), len(got[e.Seq]))
			}
		}
	})
}

// A large result is read to its end over several requests. When one of these fails, the turns before it are summarized,
// and no part of its own turn counts as summarized.
func TestFailureInsideALargeResult(t *testing.T) {
	t.Parallel()
	var body strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&body, "row %d: %d ms\n", i, i*7)
	}
	events := append(compactiontest.Talk(3, 50),
		compactiontest.Said(7, "张伟", "查一下"),
		sessions.Event{Seq: 8, Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c", Name: "look", Arguments: "{}"}}},
		sessions.Event{Seq: 9, Role: sessions.RoleTool, ToolCallID: "c", ToolName: "look", Content: body.String(), Tokens: compactiontest.Counter().Count(body.String())},
		compactiontest.Answered(10, "查完了"))
	for fails, want := range map[int]int64{0: 10, 2: 6, 3: 6} {
		m := &modelFunc{answer: func(n int, _ llm.Request) (llm.Response, error) {
			if n == fails {
				return llm.Response{}, &llm.CallError{Class: llm.Denied, Err: errModel}
			}
			return good(), nil
		}}
		res, err := summarizer(m).Summarize(t.Context(), Request{Events: events, Target: 300})
		if (err != nil) != (fails > 0) || res.Through != want || res.Text != goodText || len(m.asked) < 4 && fails == 0 {
			t.Errorf("with failure %d of %d requests the summary is of events to %d, want %d: %v", fails, len(m.asked), res.Through, want, err)
		}
		if got := textsIn(t, m.asked...)[9]; fails == 0 && got != body.String() {
			t.Errorf("%d of %d bytes of the result were read", len(got), body.Len())
		}
	}
}
