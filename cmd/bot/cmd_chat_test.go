package main

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/sessions"
)

// A person at a keyboard sees a mark when the first word of an answer takes longer than a second.
func TestChatShowsThatItWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		piped    bool          // the input is no terminal
		streamed bool          // words arrive at once, the end of the answer later
		takes    time.Duration // until the answer
		shown    string
	}{
		"slow":     {takes: 3 * waitingAfter, shown: "> …\nanswer\n> "},
		"fast":     {takes: waitingAfter / 2, shown: "> answer\n> "},
		"streamed": {streamed: true, takes: 3 * waitingAfter, shown: "> answer\n> "},
		"piped":    {piped: true, takes: 3 * waitingAfter, shown: "answer\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, typed := io.Pipe()
				var out bytes.Buffer
				ctx, stop := context.WithCancel(t.Context())
				term := &terminal{in: in, out: &out, session: "s", prompt: !c.piped, answered: make(chan struct{}, 1), end: stop}
				go func() {
					_, _ = io.WriteString(typed, "hello\n")
					<-ctx.Done()
					_ = typed.Close()
				}()
				err := term.Run(ctx, func(ctx context.Context, m sessions.Message) error {
					if m.Text != "hello" {
						t.Errorf("accepted %q", m.Text)
					}
					if c.streamed {
						term.Text("answer", false)
					}
					time.AfterFunc(c.takes, func() {
						if _, err := term.Send(ctx, sessions.Outgoing{Reply: sessions.Reply{Text: "answer"}}); err != nil {
							t.Error(err)
						}
						time.AfterFunc(time.Second, stop)
					})
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				if got := out.String(); strings.TrimRight(got, " ") != strings.TrimRight(c.shown, " ") {
					t.Errorf("shown %q, want %q", got, c.shown)
				}
			})
		})
	}
}

// Lines that were typed during an answer, and that Ctrl-C leaves without a turn, are printed: a person can send them again.
func TestChatPrintsUnsentLines(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typed, shown string
		ends         bool // the input ends before Ctrl-C
	}{
		"lines":                {typed: "second line\n \nthird 第三行\n", shown: "not sent: second line\nnot sent: third 第三行\n"},
		"lines before the end": {typed: "second line\n", shown: "not sent: second line\n", ends: true},
		"nothing":              {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, typed := io.Pipe()
				var out bytes.Buffer
				ctx, interrupt := context.WithCancel(t.Context())
				term := &terminal{in: in, out: &out, session: "s", answered: make(chan struct{}, 1), end: interrupt}
				accepted := make(chan string, maxTyped)
				go func() {
					_, _ = io.WriteString(typed, "first line\n"+c.typed)
					if c.ends {
						_ = typed.Close()
					}
					synctest.Wait() // all lines are read
					interrupt()
				}()
				if err := term.Run(ctx, func(_ context.Context, m sessions.Message) error {
					accepted <- m.Text
					return nil // its answer never arrives
				}); err != nil {
					t.Error(err)
				}
				_ = typed.Close()
				if got := <-accepted; got != "first line" || len(accepted) > 0 {
					t.Errorf("accepted %q and %d more", got, len(accepted))
				}
				if got := out.String(); got != c.shown {
					t.Errorf("shown %q, want %q", got, c.shown)
				}
			})
		})
	}
}
