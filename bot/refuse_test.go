package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/access"
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
		config := func(c *Config) { c.Access = rules }
		s := newShelf()
		w := start(t, setup{shelf: s, config: config})
		b := start(t, setup{shelf: s, name: "b", config: config})
		elsewhere := said("m1", "alice", "机密 hello")
		elsewhere.ConversationID = "c2"
		refused := func(wantText string, sends ...int) {
			t.Helper()
			after(time.Second)
			for i, one := range []*world{w, b} {
				want(t, fmt.Sprintf("replies of replica %d", i), len(one.wire.sends()), sends[i])
			}
			if all := w.wire.sends(); !strings.Contains(all[len(all)-1].Reply.Text, wantText) {
				t.Errorf("the refusal is %q, want %q", all[len(all)-1].Reply.Text, wantText)
			}
		}
		w.post(elsewhere)
		refused("群 ID 发给管理员：`c2`", 1, 0)
		w.post(elsewhere)
		elsewhere.ID, elsewhere.SenderID, elsewhere.StaffID = "m2", "u-bob", "u-bob"
		b.post(elsewhere)
		refused("`c2`", 1, 0)

		w.post(said("m3", "mallory", "secret words"))
		refused("your id to an administrator: `u-mallory`", 2, 0)
		b.post(said("m4", "mallory", "secret words"))
		refused("`u-mallory`", 2, 0)
		after(time.Hour)
		w.post(said("m5", "mallory", "secret words"))
		refused("`u-mallory`", 3, 0)

		want(t, "model calls", len(w.model.asked)+len(b.model.asked), 0)
		want(t, "events kept", len(s.mem.Events(t.Context(), group)), 0)
		elsewhere.ID, elsewhere.SenderID, elsewhere.StaffID = "m6", "u-root", "u-root"
		w.post(elsewhere)
		after(time.Second)
		want(t, "model calls for an administrator", len(w.model.asked), 1)
	})
}

// A refusal that could not be sent is tried again. People beyond the bound are refused in silence, and later by a reply.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var recovered atomic.Bool
		wire := &wire{send: func(context.Context, sessions.Outgoing) (chat.Sent, error) {
			if !recovered.Load() {
				return chat.Sent{}, &chat.SendError{Err: errors.New("down")}
			}
			return chat.Sent{Via: "webhook", Part: 1}, nil
		}}
		w := start(t, setup{wire: wire, config: func(c *Config) { c.Access = &access.Rules{Groups: []string{access.Everyone}} }})
		stranger := func(id string, i int) {
			m := said(id, fmt.Sprintf("p%d", i), "hi")
			m.ConversationID = sessions.ConversationID(fmt.Sprintf("c%d", i))
			w.post(m)
		}
		for i := range 3 * maxRefusing {
			stranger(fmt.Sprintf("m%d", i), i)
		}
		synctest.Wait()
		want(t, "tries at once", len(wire.sends()), maxRefusing)
		recovered.Store(true)
		after(time.Minute)
		want(t, "tries with the second ones", len(wire.sends()), 2*maxRefusing)
		stranger("again", 3*maxRefusing-1)
		after(time.Second)
		want(t, "tries with another person", len(wire.sends()), 2*maxRefusing+1)
	})
}

// A flood of refused strangers leaves their group's replies to answers: it takes a fifth of a minute's. Strangers of the
// next minute get their words, too.
func TestRefusalsHaveABudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShelf()
		rules := &access.Rules{Groups: []string{access.Everyone}, People: []string{"u-alice"}}
		config := func(c *Config) { c.Access = rules }
		w := start(t, setup{shelf: s, config: config})
		b := start(t, setup{shelf: s, name: "b", config: config})
		flood := func(id string) {
			for i := range 40 {
				[]*world{w, b}[i%2].post(said(fmt.Sprint(id, i), fmt.Sprint("p", i), "hi"))
				after(time.Second)
			}
		}
		flood("m")
		want(t, "refusals of a minute", len(w.wire.sends())+len(b.wire.sends()), sessions.NoticesPerMinute)
		w.say("asked", "alice", "hello")
		want(t, "replies with an answer", len(w.wire.sends())+len(b.wire.sends()), sessions.NoticesPerMinute+1)
		after(time.Minute)
		flood("n")
		want(t, "replies after another minute", len(w.wire.sends())+len(b.wire.sends()), 2*sessions.NoticesPerMinute+1)
	})
}
