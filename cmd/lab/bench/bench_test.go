package bench

import (
	"strings"
	"testing"

	"ebb/bot/openai/openaitest"
)

func TestBenchModelRepeatsWhatIsAskedAndNothingElse(t *testing.T) {
	t.Parallel()
	m := newBenchModel()
	chat := func(contents ...string) openaitest.Request {
		r := openaitest.Request{Kind: openaitest.Chat}
		for _, c := range contents {
			role, text, _ := strings.Cut(c, "> ")
			r.Messages = append(r.Messages, openaitest.Message{Role: role, Content: text})
		}
		return r
	}
	got := m.replyTo(chat("system> s", "user> 张伟(u1): q0000001 旧的", "assistant> q0000001 好", "user> [clock]", "user> 张伟(u1): q0000002 a", "user> 李娜(u2): q0000003 b"))
	if !strings.HasPrefix(got.Content(), "q0000002 q0000003 ") || strings.Contains(got.Content(), "q0000001") {
		t.Errorf("the answer is %q", got.Content())
	}
	held := chat("user> 张伟(u1): q0000004 " + holdWord)
	if got := m.replyTo(held); got.Content() != "" {
		t.Errorf("a held question was answered: %q", got.Content())
	}
	if mark := <-m.held; mark != "q0000004" {
		t.Errorf("held %q", mark)
	}
	if got := m.replyTo(held); !strings.HasPrefix(got.Content(), "q0000004") {
		t.Errorf("asked again, the answer is %q", got.Content())
	}
}
