package bottest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Lines lists the log's lines with a message.
func (l *logBuffer) Lines(t *testing.T, message string) []map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []map[string]any
	for line := range strings.SplitSeq(strings.TrimSpace(l.b.String()), "\n") {
		if line == "" {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("log line is not JSON: %v: %s", err, line)
		}
		if m["message"] == message {
			out = append(out, m)
		}
	}
	return out
}

// Tail is the last lines of a log at most, without those that only report progress.
func (l *logBuffer) Tail(most int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(l.b.String()), "\n"), func(s string) bool {
		return !strings.Contains(s, `"level":"warn"`) && !strings.Contains(s, `"level":"error"`)
	})
	return lines[max(0, len(lines)-most):]
}

// Counters are the values of a counter, added up by the value of one label.
func Counters(t *testing.T, r *prometheus.Registry, name, by string) map[string]float64 {
	t.Helper()
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			value, cached := "", false
			for _, l := range m.GetLabel() {
				if l.GetValue() == "" {
					t.Errorf("%s has an empty label %s", f.GetName(), l.GetName())
				}
				if l.GetName() == by {
					value = l.GetValue()
				}
				cached = cached || l.GetName() == "token" && l.GetValue() == "cached"
			}
			if f.GetName() == name && !cached {
				sums[value] += m.GetCounter().GetValue()
			}
		}
	}
	return sums
}

// Series is what a counter or a gauge with these values of its labels, in the order of their names, stands at; -1 where there is none.
func Series(t *testing.T, w *World, name string, labels ...string) float64 {
	t.Helper()
	all, err := w.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			var values []string
			for _, l := range m.GetLabel() {
				values = append(values, l.GetValue())
			}
			if f.GetName() == name && slices.Equal(values, labels) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return -1
}
