package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"ebb/bot/openai/openaitest"
)

func TestQuantileIsAValueThatOccurred(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i) // 100 to 1: the order does not matter
	}
	for _, tt := range []struct {
		name   string
		values []float64
		q      float64
		want   float64
	}{
		{"nothing", nil, 0.5, 0},
		{"one value", []float64{7}, 0.99, 7},
		{"the median of an even number is the lower one", []float64{1, 2, 3, 4}, 0.5, 2},
		{"the median of an odd number", []float64{9, 1, 5}, 0.5, 5},
		{"p50 of a hundred", hundred, 0.5, 50},
		{"p99 of a hundred", hundred, 0.99, 99},
		{"p100", hundred, 1, 100},
		{"p0 is the smallest", hundred, 0, 1},
		{"p99 of ten is the largest", hundred[:10], 0.99, 100},
	} {
		if got := quantile(tt.values, tt.q); got != tt.want {
			t.Errorf("%s: got %v, want %v", tt.name, got, tt.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the values given were put into another order")
	}
}

func TestVerdictsSayHowFarATargetIsMissed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		got  figure
		want string
	}{
		{"at the limit", figure{}.atMost(8, 8), "yes"},
		{"over the limit", figure{}.atMost(10, 8), "not reached: 1.25 x the limit"},
		{"none allowed, none there", figure{}.atMost(0, 0), "yes"},
		{"none allowed, one there", figure{}.atMost(1, 0), "not reached"},
		{"at the target", figure{}.atLeast(0.25, 0.25), "yes"},
		{"below the target", figure{}.atLeast(0.2, 0.25), "not reached: 80 % of the target"},
		{"nothing measured", figure{}.atLeast(per(0, 0)/per(0, 0), 0.25), "not reached: NaN % of the target"},
	} {
		if tt.got.reached != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got.reached, tt.want)
		}
	}
	if f := (figure{}).atMost(4, 8); f.ratio != "0.50 of the limit" {
		t.Errorf("the ratio is %q", f.ratio)
	}
	if f := (figure{ratio: "2 x"}).atMost(4, 8); f.ratio != "2 x" {
		t.Errorf("a ratio that was given became %q", f.ratio)
	}
}

func TestTableColumnsLineUp(t *testing.T) {
	t.Parallel()
	got := drawTable([]figure{
		{what: "turns/s", measured: "400 turns/s", ratio: "30 %", target: ">= 25 %", reached: "yes"},
		{what: "token counting, 测试", measured: "3", target: "0", reached: "not reached"},
	})
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != 4 {
		t.Fatalf("%d lines, want 4:\n%s", len(lines), got)
	}
	for _, l := range lines {
		var at []int
		for i, r := range []rune(l) {
			if r == '|' {
				at = append(at, i)
			}
		}
		if len(at) != 4 || at[0] != 19 || at[1] != 33 || at[2] != 49 || at[3] != 59 {
			t.Errorf("bars at %v in %q", at, l)
		}
		if strings.HasSuffix(l, " ") {
			t.Errorf("%q ends in blanks", l)
		}
	}
}

func TestMillisKeepsThreeDigits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		1234 * time.Microsecond: "1.23 ms", 12_340 * time.Microsecond: "12.3 ms", 1234 * time.Millisecond: "1234 ms", 0: "0.00 ms",
	} {
		if got := millis(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

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
	got := m.reply(chat("system> s", "user> 张伟(u1): q0000001 旧的", "assistant> q0000001 好", "user> [clock]", "user> 张伟(u1): q0000002 a", "user> 李娜(u2): q0000003 b"))
	if !strings.HasPrefix(got.Content(), "q0000002 q0000003 ") || strings.Contains(got.Content(), "q0000001") {
		t.Errorf("the answer is %q", got.Content())
	}
	held := chat("user> 张伟(u1): q0000004 " + holdWord)
	if got := m.reply(held); got.Content() != "" {
		t.Errorf("a held question was answered: %q", got.Content())
	}
	if mark := <-m.held; mark != "q0000004" {
		t.Errorf("held %q", mark)
	}
	if got := m.reply(held); !strings.HasPrefix(got.Content(), "q0000004") {
		t.Errorf("asked again, the answer is %q", got.Content())
	}
}

func TestEachCountsWhatWentWell(t *testing.T) {
	t.Parallel()
	c := &crowd{}
	n, err := c.each(3, func(worker, i int) (bool, error) { return i < worker, nil })
	if n != 0+1+2 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	broken := errors.New("broken")
	n, err = c.each(2, func(worker, i int) (bool, error) {
		if worker == 1 && i == 4 {
			return true, broken
		}
		return i < 6, nil
	})
	if n != 6+4 || !errors.Is(err, broken) {
		t.Errorf("got %d, %v", n, err)
	}
}
