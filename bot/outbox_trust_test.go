package bot

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
)

// A replica that lost its leases while a reply waited for its next try sends it no more, neither while the leases are
// in doubt nor after. The replica that took the session over sends it. Its only try surely failed: nothing is in doubt.
func TestCutReplicaLeavesItsRepliesToOthers(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]time.Duration{"the try falls due meanwhile": 30 * time.Second, "and afterwards": 6 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := start(t, setup{name: "a", wire: sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
					if try == 1 {
						return chat.Sent{}, &chat.SendError{After: 20 * time.Second, Err: errors.New("130101")}
					}
					return arrived, nil
				})})
				b := start(t, setup{name: "b", shelf: a.store.shelf})
				a.say("m0", "alice", "q0")
				a.store.fail(func(string) error { return errAway })
				after(8 * time.Second)
				b.say("m1", "bob", "q1")
				after(back)
				a.store.fail(nil)
				after(time.Minute)
				want(t, "tries of a", len(a.wire.sends()), 1)
				want(t, "q0 sent by b", strings.Count(strings.Join(b.wire.texts(), "\n"), "q0"), 1)
				want(t, "counted as perhaps doubled", b.bot.restarts.doubled.Load(), 0)
			})
		})
	}
}

// Without a new owner, the replica sends the reply once it can trust its lease again, under the same key and alone. It
// remembers that an earlier try may have arrived, though the storage was away when that was to be marked.
func TestCutReplicaGoesOnWithItsReplies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := newGate()
		a := start(t, setup{wire: sender(func(ctx context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			if try == 1 {
				_ = gone.pass(ctx)
				return chat.Sent{}, &chat.SendError{Maybe: true, After: 20 * time.Second, Err: errors.New("timeout")}
			}
			return arrived, nil
		})})
		a.post(said("m0", "alice", "q0"))
		<-gone.in
		a.store.fail(func(string) error { return errAway })
		gone.out <- struct{}{}
		after(40 * time.Second)
		want(t, "tries while the leases are in doubt", len(a.wire.sends()), 1)
		a.store.fail(nil)
		a.say("m1", "bob", "q1")
		after(time.Minute)
		sends := a.wire.sends()
		if len(sends) != 3 || sends[1].Reply.Nonce != sends[0].Reply.Nonce || strings.Contains(sends[1].Reply.Text, "q1") {
			t.Fatalf("sent %q, want the first again, as it was, and the second", a.wire.texts())
		}
		want(t, "counted as perhaps doubled", a.bot.restarts.doubled.Load(), 1)
		want(t, "unsent", len(a.unsent()), 0)
	})
}
