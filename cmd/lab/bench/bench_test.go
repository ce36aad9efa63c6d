package bench

import (
	"strings"
	"testing"
	"time"

	"ebb/bot/openai/openaitest"
)

func TestUsageIsReadFromTheGatewaysFigures(t *testing.T) {
	t.Parallel()
	const text = "# HELP go_goroutines Number.\n# TYPE go_goroutines gauge\ngo_goroutines 54\n" +
		"process_cpu_seconds_total 1.25\nprocess_resident_memory_bytes 1.048576e+08\nebb_turns_total{kind=\"ask\"} 7\n"
	u, err := parseUsage(strings.NewReader(text))
	if err != nil || u.cpu != 1250*time.Millisecond || u.resident != 100<<20 || u.goroutines != 54 {
		t.Errorf("got %+v, %v", u, err)
	}
	_, err = parseUsage(strings.NewReader("go_goroutines 54\nprocess_resident_memory_bytes 1\n"))
	if err == nil || !strings.Contains(err.Error(), "process_cpu_seconds_total") {
		t.Errorf("a system without CPU figures gave %v", err)
	}
}

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
