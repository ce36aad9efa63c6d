package bot

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/access"
	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/guard"
)

// A reply whose send panics costs itself alone: others pass it, and it is given up after some attempts.
func TestPanicOfASend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		before := guard.Panics(guard.Reply)
		w := start(t, setup{wire: sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
			if strings.Contains(o.Reply.Text, "bad") {
				panic("broken by a text")
			}
			return arrived, nil
		})})
		w.say("m0", "alice", "bad")
		for i := range 5 {
			w.say(fmt.Sprint("n", i), "bob", fmt.Sprintf("question %d.", i))
		}
		after(10 * time.Second)
		for i := range 5 {
			want(t, fmt.Sprint("tries of answer ", i), strings.Count(strings.Join(w.wire.texts(), "\n"), fmt.Sprintf("question %d.", i)), 1)
		}
		after(5 * time.Minute)
		want(t, "tries of the broken one", strings.Count(strings.Join(w.wire.texts(), "\n"), "bad"), maxRefusals)
		want(t, "unsent", len(w.unsent()), 0)
		if n := guard.Panics(guard.Reply) - before; n < maxRefusals {
			t.Errorf("%d panics are counted, want at least %d", n, maxRefusals)
		}
	})
}

// A refusal of access whose send panics costs itself alone.
func TestPanicOfARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{
			config: func(c *Config) {
				c.Access = &access.Rules{Groups: []string{access.Everyone}, People: []string{"u-alice"}}
			},
			wire: sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
				if strings.Contains(o.Reply.Text, "u-mallory") {
					panic("broken by a name")
				}
				return arrived, nil
			}),
		})
		w.post(said("m1", "mallory", "hello"))
		after(time.Second)
		w.post(said("m2", "eve", "hello"))
		after(time.Second)
		texts := w.wire.texts()
		want(t, "refusals", len(texts), 2)
		if !strings.Contains(texts[1], "u-eve") {
			t.Errorf("the second refusal is %q", texts[1])
		}
	})
}
