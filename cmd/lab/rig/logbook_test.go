package rig

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestParseLogLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, raw, level, message string
		sessions                  int
	}{
		{"JSON", `{"level":"info","sessions":2,"message":"Shutdown memory flush summary"}`, "info", "Shutdown memory flush summary", 2},
		{"without the field", `{"level":"warn","message":"Draining"}`, "warn", "Draining", -1},
		{"fields of other types", `{"level":3,"sessions":"two","message":null}`, "", "", -1},
		{"a panic", `panic: runtime error: index out of range`, "", "", -1},
		{"JSON that is no object", `[1,2]`, "", "", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := parseLogLine("A", tt.raw)
			if l.Replica != "A" || l.Raw != tt.raw || l.Level != tt.level || l.Message != tt.message || l.IntField("sessions") != tt.sessions {
				t.Errorf("got %+v with %d sessions", l, l.IntField("sessions"))
			}
		})
	}
}

// Lines are found whether they come before or after the wait for them, and only in the log of the requested gateway.
func TestLogBookWaits(t *testing.T) {
	t.Parallel()
	b := NewLogBook()
	in, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- b.ReadLog("A", in) }()
	write := func(s string) {
		if _, err := io.WriteString(out, s); err != nil {
			t.Error(err)
		}
	}
	write(`{"message":"Draining","turns":0}` + "\n" + `{"message":"Draining","turns":7}` + "\n")
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if l, err := b.WaitLine(ctx, "A", "Draining"); err != nil || l.IntField("turns") != 0 {
		t.Errorf("got %+v, %v, want the first line", l, err)
	}
	go func() {
		write(`{"message":"` + strings.Repeat("x", 200_000) + `"}` + "\n\n" + `{"message":"Drained"`)
		b.addLine(parseLogLine("B", `{"message":"Drained","by":"B"}`))
		write("}\nhalf a line")
		_ = out.Close()
	}()
	if l, err := b.WaitLine(ctx, "A", "Drained"); err != nil || l.Fields["by"] != nil {
		t.Errorf("got %+v, %v, want A's line", l, err)
	}
	if err := <-done; err != nil {
		t.Errorf("reading to the end: %v", err)
	}
	if last := b.LastLines(1); len(last) != 1 || last[0] != "A: half a line" {
		t.Errorf("the last line is %q, want the half one too", last)
	}
	over, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("it took longer than 15s"))
	_, err := b.WaitLine(over, "B", "Draining")
	if err == nil || !strings.Contains(err.Error(), `no line "Draining" in the log of gateway B: it took longer than 15s`) {
		t.Errorf("got %v", err)
	}
}
