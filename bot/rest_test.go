package bot

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/compaction"
	"ebb/sessions"
)

// A replica holds leases of active sessions alone. Leases of idle sessions are released, and the next message there is
// answered as before.
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
		after(releaseAfter - time.Minute)
		want(t, "leases of active sessions", w.bot.shared.Leases.Count(), groups)
		after(idleAfter)
		post("second", 5)
		after(3 * time.Minute)
		want(t, "leases when all but five sessions rest", w.bot.shared.Leases.Count(), 5)
		post("third", groups)
		want(t, "replies in all", len(w.wire.sends()), 2*groups+5)
		want(t, "leases when all sessions are active again", w.bot.shared.Leases.Count(), groups)
	})
}

// A context is over the threshold, but its policy counts messages and has nothing to do: the lease of the idle session
// is released all the same. The end of a cooldown triggers one more check.
func TestBacklogWithNothingDueRests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cooldown     time.Duration
		window, kept int // messages that compact; turns that stay raw
		compacts     int
	}{
		"by count":                        {0, 200, 40, 0},
		"a cooldown with nothing behind":  {2 * time.Hour, 200, 40, 0},
		"a cooldown with enough messages": {2 * time.Hour, 40, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := start(t, setup{config: func(cfg *Config) {
					cfg.Compaction.Policy = compaction.Policy{
						Name: "own", Mode: compaction.SummaryOnly, Window: c.window, Cooldown: c.cooldown, TailTurns: c.kept,
						Rolling: true, Profile: compaction.ProfileChat,
					}
				}})
				threshold := w.bot.cfg.Compaction.Window.Trigger()
				for i := 0; i == 0 || w.state(group).TotalTokens < threshold; i++ {
					w.say(fmt.Sprint("m", i), "alice", strings.Repeat("release notes of the gateway ", 20))
				}
				after(idleAfter + 2*releaseAfter)
				want(t, "leases of idle sessions", w.bot.shared.Leases.Count(), 0)
				want(t, "compactions before the cooldown ends", w.state(group).CompactionCount, 0)
				after(c.cooldown + time.Minute)
				want(t, "compactions", w.state(group).CompactionCount, c.compacts)
				after(3*releaseAfter + idleAfter)
				want(t, "leases in the end", w.bot.shared.Leases.Count(), 0)
			})
		})
	}
}
