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
		held, _ := w.bot.leases.Held(group)
		for range 2 {
			w.store.mem.DeleteRow(group)
			_ = w.bot.leases.Check(group, sessions.ErrLeaseLost)
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
