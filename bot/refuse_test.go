package bot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/access"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/sessions"
)

// A refused message is acknowledged, kept nowhere, and answered once an hour for its group or sender, also by another
// replica.
func TestRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rules := &access.Rules{
			Groups: []string{"c1"}, People: []string{access.Everyone}, Deny: []string{"u-mallory"}, Admins: []sessions.UserID{"u-root"},
		}
		config := func(c *bot.Config) { c.Access = rules }
		s := bottest.NewShelf()
		w := bottest.Start(t, bottest.Setup{Shelf: s, Config: config})
		b := bottest.Start(t, bottest.Setup{Shelf: s, Name: "b", Config: config})
		elsewhere := bottest.Said("m1", "alice", "机密 hello")
		elsewhere.ConversationID = "c2"
		refused := func(wantText string, sends ...int) {
			t.Helper()
			bottest.After(time.Second)
			for i, one := range []*bottest.World{w, b} {
				bottest.Want(t, fmt.Sprintf("replies of replica %d", i), len(one.Wire.Sends()), sends[i])
			}
			if all := w.Wire.Sends(); !strings.Contains(all[len(all)-1].Reply.Text, wantText) {
				t.Errorf("the refusal is %q, want %q", all[len(all)-1].Reply.Text, wantText)
			}
		}
		w.Post(elsewhere)
		refused("群 ID 发给管理员：`c2`", 1, 0)
		w.Post(elsewhere)
		elsewhere.ID, elsewhere.SenderID, elsewhere.StaffID = "m2", "u-bob", "u-bob"
		b.Post(elsewhere)
		refused("`c2`", 1, 0)

		w.Post(bottest.Said("m3", "mallory", "secret words"))
		refused("your id to an administrator: `u-mallory`", 2, 0)
		b.Post(bottest.Said("m4", "mallory", "secret words"))
		refused("`u-mallory`", 2, 0)
		bottest.After(time.Hour)
		w.Post(bottest.Said("m5", "mallory", "secret words"))
		refused("`u-mallory`", 3, 0)

		bottest.Want(t, "model calls", len(w.Model.Asked)+len(b.Model.Asked), 0)
		bottest.Want(t, "events kept", len(s.Mem.Events(t.Context(), bottest.Group)), 0)
		elsewhere.ID, elsewhere.SenderID, elsewhere.StaffID = "m6", "u-root", "u-root"
		w.Post(elsewhere)
		bottest.After(time.Second)
		bottest.Want(t, "model calls for an administrator", len(w.Model.Asked), 1)
	})
}

// A refusal that could not be sent is tried again. People beyond the bound are refused in silence, and later by a reply.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var recovered atomic.Bool
		wire := &bottest.Wire{Deliver: func(context.Context, sessions.Outgoing) (chat.Sent, error) {
			if !recovered.Load() {
				return chat.Sent{}, &chat.SendError{Err: errors.New("down")}
			}
			return chat.Sent{Via: "webhook", Part: 1}, nil
		}}
		w := bottest.Start(t, bottest.Setup{Wire: wire, Config: func(c *bot.Config) { c.Access = &access.Rules{Groups: []string{access.Everyone}} }})
		stranger := func(id string, i int) {
			m := bottest.Said(id, fmt.Sprintf("p%d", i), "hi")
			m.ConversationID = sessions.ConversationID(fmt.Sprintf("c%d", i))
			w.Post(m)
		}
		for i := range 3 * bot.MaxRefusing {
			stranger(fmt.Sprintf("m%d", i), i)
		}
		synctest.Wait()
		bottest.Want(t, "tries at once", len(wire.Sends()), bot.MaxRefusing)
		recovered.Store(true)
		bottest.After(time.Minute)
		bottest.Want(t, "tries with the second ones", len(wire.Sends()), 2*bot.MaxRefusing)
		stranger("again", 3*bot.MaxRefusing-1)
		bottest.After(time.Second)
		bottest.Want(t, "tries with another person", len(wire.Sends()), 2*bot.MaxRefusing+1)
	})
}

// A flood of refused strangers leaves their group's replies to answers: it takes a fifth of a minute's. Strangers of the
// next minute get their words, too.
func TestRefusalsHaveABudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := bottest.NewShelf()
		rules := &access.Rules{Groups: []string{access.Everyone}, People: []string{"u-alice"}}
		config := func(c *bot.Config) { c.Access = rules }
		w := bottest.Start(t, bottest.Setup{Shelf: s, Config: config})
		b := bottest.Start(t, bottest.Setup{Shelf: s, Name: "b", Config: config})
		flood := func(id string) {
			for i := range 40 {
				[]*bottest.World{w, b}[i%2].Post(bottest.Said(fmt.Sprint(id, i), fmt.Sprint("p", i), "hi"))
				bottest.After(time.Second)
			}
		}
		flood("m")
		bottest.Want(t, "refusals of a minute", len(w.Wire.Sends())+len(b.Wire.Sends()), sessions.NoticesPerMinute)
		w.Say("asked", "alice", "hello")
		bottest.Want(t, "replies with an answer", len(w.Wire.Sends())+len(b.Wire.Sends()), sessions.NoticesPerMinute+1)
		bottest.After(time.Minute)
		flood("n")
		bottest.Want(t, "replies after another minute", len(w.Wire.Sends())+len(b.Wire.Sends()), 2*sessions.NoticesPerMinute+1)
	})
}
