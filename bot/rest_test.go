package bot

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ebb/sessions"
)

// A replica holds leases of active sessions alone: those of sessions at rest are given up, and the next message there is
// answered as ever.
func TestLeasesOfSessionsAtRestAreGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		const groups = 50
		post := func(round string, n int) {
			for i := range n {
				m := said(fmt.Sprintf("%s-%d", round, i), "alice", "hello "+round)
				m.ConversationID = sessions.ConversationID(fmt.Sprint("c", i))
				w.post(m)
			}
			synctest.Wait()
			after(time.Second)
		}
		post("first", groups)
		want(t, "replies", len(w.wire.sends()), groups)
		after(restAfter - time.Minute)
		want(t, "leases of active sessions", w.bot.leases.Held(), groups)
		after(idleAfter)
		post("second", 5)
		after(3 * time.Minute)
		want(t, "leases when all but five sessions rest", w.bot.leases.Held(), 5)
		post("third", groups)
		want(t, "replies in all", len(w.wire.sends()), 2*groups+5)
		want(t, "leases when all sessions are active again", w.bot.leases.Held(), groups)
	})
}
