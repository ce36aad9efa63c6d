package outbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/bottest"
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
				a := bottest.Start(t, bottest.Setup{Name: "a", Wire: bottest.Sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
					if try == 1 {
						return chat.Sent{}, &chat.SendError{After: 20 * time.Second, Err: errors.New("130101")}
					}
					return bottest.Arrived, nil
				})})
				b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf})
				a.Say("m0", "alice", "q0")
				a.Store.Fail(func(string) error { return bottest.ErrAway })
				bottest.After(8 * time.Second)
				b.Say("m1", "bob", "q1")
				bottest.After(back)
				a.Store.Fail(nil)
				bottest.After(time.Minute)
				bottest.Want(t, "tries of a", len(a.Wire.Sends()), 1)
				bottest.Want(t, "q0 sent by b", strings.Count(strings.Join(b.Wire.Texts(), "\n"), "q0"), 1)
				bottest.Want(t, "counted as perhaps doubled", b.Figure("doubled"), 0)
			})
		})
	}
}

// Without a new owner, the replica sends the reply once it can trust its lease again, under the same key and alone. It
// remembers that an earlier try may have arrived, though the storage was away when that was to be marked.
func TestCutReplicaGoesOnWithItsReplies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gone := bottest.NewGate()
		a := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(ctx context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			if try == 1 {
				_ = gone.Pass(ctx)
				return chat.Sent{}, &chat.SendError{Maybe: true, After: 20 * time.Second, Err: errors.New("timeout")}
			}
			return bottest.Arrived, nil
		})})
		a.Post(bottest.Said("m0", "alice", "q0"))
		<-gone.In
		a.Store.Fail(func(string) error { return bottest.ErrAway })
		gone.Out <- struct{}{}
		bottest.After(40 * time.Second)
		bottest.Want(t, "tries while the leases are in doubt", len(a.Wire.Sends()), 1)
		a.Store.Fail(nil)
		a.Say("m1", "bob", "q1")
		bottest.After(time.Minute)
		sends := a.Wire.Sends()
		if len(sends) != 3 || sends[1].Reply.Nonce != sends[0].Reply.Nonce || strings.Contains(sends[1].Reply.Text, "q1") {
			t.Fatalf("sent %q, want the first again, as it was, and the second", a.Wire.Texts())
		}
		bottest.Want(t, "counted as perhaps doubled", a.Figure("doubled"), 1)
		bottest.Want(t, "unsent", len(a.Unsent()), 0)
	})
}
