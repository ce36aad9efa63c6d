package outbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/guard"
)

// A reply whose send panics costs itself alone: others pass it, and it is given up after some attempts.
func TestPanicOfASend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		before := guard.Panics(guard.Reply)
		w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
			if strings.Contains(o.Reply.Text, "bad") {
				panic("broken by a text")
			}
			return bottest.Arrived, nil
		})})
		w.Say("m0", "alice", "bad")
		for i := range 5 {
			w.Say(fmt.Sprint("n", i), "bob", fmt.Sprintf("question %d.", i))
		}
		bottest.After(10 * time.Second)
		for i := range 5 {
			bottest.Want(t, fmt.Sprint("tries of answer ", i), strings.Count(strings.Join(w.Wire.Texts(), "\n"), fmt.Sprintf("question %d.", i)), 1)
		}
		bottest.After(5 * time.Minute)
		bottest.Want(t, "tries of the broken one", strings.Count(strings.Join(w.Wire.Texts(), "\n"), "bad"), bottest.MaxRefusals)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
		if n := guard.Panics(guard.Reply) - before; n < bottest.MaxRefusals {
			t.Errorf("%d panics are counted, want at least %d", n, bottest.MaxRefusals)
		}
	})
}
