package bot

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/sessions"
)

// A running turn keeps its session whose row is deleted, also where other work of the session forgot its lease meanwhile. The model
// is asked once for each message.
func TestRunningTurnKeepsADeletedSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := make(chan struct{})
		w := start(t, setup{model: &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			<-answer
			return text("re: " + lastWords(r)), nil
		}}})
		w.say("m0", "alice", "q0")
		after(time.Second)
		held, _ := w.bot.shared.Leases.Held(group)
		for range 2 {
			w.store.mem.DeleteRow(group)
			_ = w.bot.shared.Leases.Check(group, sessions.ErrLeaseLost)
			after(2 * w.bot.cfg.LeaseTTL)
			s, err := w.store.mem.Session(t.Context(), group)
			want(t, "error of reading the session", err, nil)
			want(t, "lease", s.Lease, held)
		}
		w.store.mem.DeleteRow(group)
		w.say("m1", "bob", "q1")
		close(answer)
		after(3 * time.Second)
		want(t, "texts", w.wire.texts(), []string{"re: alice(u-alice): q0", "re: bob(u-bob): q1"})
		want(t, "requests", len(w.model.requests("chat")), 2)
	})
}

// deaf is a storage that passes on no notification.
type deaf struct{ *store }

func (deaf) Listen(ctx context.Context, _ sessions.ReplicaID, _ func(sessions.Key)) error {
	<-ctx.Done()
	return nil
}

// A replica that hears no notification answers what another one stored for it, and what that left at its stop, with its next sweep.
func TestSweepMakesUpForLostNotifications(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		a := start(t, setup{shelf: shelf, name: "a", config: func(c *Config) { c.Store = deaf{c.Store.(*store)} }})
		b := start(t, setup{shelf: shelf, name: "b"})
		a.say("m0", "alice", "q0")
		b.say("m1", "bob", "q1")
		want(t, "replies without a sweep", len(a.wire.texts()), 1)
		after(a.bot.cfg.SweepEvery)
		want(t, "replies with one", a.wire.texts(), []string{"re: alice(u-alice): q0", "re: bob(u-bob): q1"})
		b.store.fail(times(1000, "begin", errAway)) // it takes no turn, and leaves the message
		elsewhere := said("m2", "carol", "q2")
		elsewhere.ConversationID = "c2"
		b.post(elsewhere)
		b.stop()
		after(2 * a.bot.cfg.SweepEvery)
		want(t, "replies of the other one", len(b.wire.texts()), 0)
		want(t, "replies after its stop", len(a.wire.texts()), 3)
	})
}
