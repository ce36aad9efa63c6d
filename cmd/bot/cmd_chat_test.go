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

// A /stop that is typed during an answer reaches the bot at once, in any spelling. Other lines wait until the answer ended.
func TestChatStopsAnAnswer(t *testing.T) {
	t.Parallel()
	for _, stop := range []string{"/stop", " /STOP ", "/停止", "／停"} {
		t.Run(stop, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, typed := io.Pipe()
				var out bytes.Buffer
				ctx, end := context.WithCancel(t.Context())
				term := &terminal{in: in, out: &out, session: "s", answered: make(chan struct{}, maxTyped), end: end}
				go func() {
					_, _ = io.WriteString(typed, "long question\nnext question\n/stop it\n"+stop+"\n")
					_ = typed.Close()
				}()
				var accepted []string
				send := func(text string) {
					if _, err := term.Send(ctx, sessions.Outgoing{Reply: sessions.Reply{Text: text}}); err != nil {
						t.Error(err)
					}
				}
				if err := term.Run(ctx, func(_ context.Context, m sessions.Message) error {
					accepted = append(accepted, m.Text)
					switch len(accepted) {
					case 1:
						term.Text("half of", false)
					case 2:
						time.AfterFunc(time.Second, func() {
							send("half of (stopped)")
							send("Stopped")
						})
					default:
						time.AfterFunc(time.Second, func() { send("answer to " + m.Text) })
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
				if got, want := strings.Join(accepted, "|"), "long question|"+stop+"|next question|/stop it"; got != want {
					t.Errorf("accepted %q, want %q", got, want)
				}
				if got, want := out.String(), "half of (stopped)\nStopped\nanswer to next question\nanswer to /stop it\n"; got != want {
					t.Errorf("shown %q, want %q", got, want)
				}
			})
		})
	}
}
