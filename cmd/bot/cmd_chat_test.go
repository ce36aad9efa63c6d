package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/sessions"
)

// chatOf runs a terminal in a bubble, and returns what it printed. typing writes the lines of the person. accept gets each
// accepted line; end ends the bot as Ctrl-C does.
func chatOf(
	t *testing.T, prompt bool, typing func(keys *io.PipeWriter, end func()), accept func(term *terminal, end func(), line string),
) string {
	t.Helper()
	in, keys := io.Pipe()
	var out bytes.Buffer
	ctx, end := context.WithCancel(t.Context())
	defer end()
	term := &terminal{in: in, out: &out, session: "s", prompt: prompt, answered: make(chan struct{}, maxTyped), end: end}
	go typing(keys, end)
	if err := term.Run(ctx, func(_ context.Context, m sessions.Message) error {
		accept(term, end, m.Text)
		return nil
	}); err != nil {
		t.Error(err)
	}
	_ = keys.Close()
	return out.String()
}

func sendAnswer(t *testing.T, term *terminal, text string) {
	t.Helper()
	if _, err := term.Send(t.Context(), sessions.Outgoing{Reply: sessions.Reply{Text: text}}); err != nil {
		t.Error(err)
	}
}

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
				typing := func(keys *io.PipeWriter, _ func()) { _, _ = io.WriteString(keys, "hello\n") }
				got := chatOf(t, !c.piped, typing, func(term *terminal, end func(), line string) {
					if line != "hello" {
						t.Errorf("accepted %q", line)
					}
					if c.streamed {
						term.Text("answer", false)
					}
					time.AfterFunc(c.takes, func() {
						sendAnswer(t, term, "answer")
						time.AfterFunc(time.Second, end)
					})
				})
				if strings.TrimRight(got, " ") != strings.TrimRight(c.shown, " ") {
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
				var accepted []string
				got := chatOf(t, false, func(keys *io.PipeWriter, interrupt func()) {
					_, _ = io.WriteString(keys, "first line\n"+c.typed)
					if c.ends {
						_ = keys.Close()
					}
					synctest.Wait() // all lines are read
					interrupt()
				}, func(_ *terminal, _ func(), line string) {
					accepted = append(accepted, line) // its answer never arrives
				})
				if !slices.Equal(accepted, []string{"first line"}) {
					t.Errorf("accepted %q", accepted)
				}
				if got != c.shown {
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
				var accepted []string
				got := chatOf(t, false, func(keys *io.PipeWriter, _ func()) {
					_, _ = io.WriteString(keys, "long question\nnext question\n/stop it\n"+stop+"\n")
					_ = keys.Close()
				}, func(term *terminal, _ func(), line string) {
					accepted = append(accepted, line)
					switch len(accepted) {
					case 1:
						term.Text("half of", false)
					case 2:
						time.AfterFunc(time.Second, func() {
							sendAnswer(t, term, "half of (stopped)")
							sendAnswer(t, term, "Stopped")
						})
					default:
						time.AfterFunc(time.Second, func() { sendAnswer(t, term, "answer to "+line) })
					}
				})
				if got, want := strings.Join(accepted, "|"), "long question|"+stop+"|next question|/stop it"; got != want {
					t.Errorf("accepted %q, want %q", got, want)
				}
				if want := "half of (stopped)\nStopped\nanswer to next question\nanswer to /stop it\n"; got != want {
					t.Errorf("shown %q, want %q", got, want)
				}
			})
		})
	}
}
