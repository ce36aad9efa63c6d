package bot_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/access"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/sessions"
)

// A refusal of access whose send panics costs itself alone.
func TestPanicOfARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) {
				c.Access = &access.Rules{Groups: []string{access.Everyone}, People: []string{"u-alice"}}
			},
			Wire: bottest.Sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
				if strings.Contains(o.Reply.Text, "u-mallory") {
					panic("broken by a name")
				}
				return bottest.Arrived, nil
			}),
		})
		w.Post(bottest.Said("m1", "mallory", "hello"))
		bottest.After(time.Second)
		w.Post(bottest.Said("m2", "eve", "hello"))
		bottest.After(time.Second)
		texts := w.Wire.Texts()
		bottest.Want(t, "refusals", len(texts), 2)
		if !strings.Contains(texts[1], "u-eve") {
			t.Errorf("the second refusal is %q", texts[1])
		}
	})
}
