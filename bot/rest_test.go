package bot_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/compaction"
	"ebb/sessions"
)

// A replica holds leases of active sessions alone. Leases of idle sessions are released, and the next message there is
// answered as before.
func TestLeasesOfSessionsAtRestAreGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		const groups = 50
		post := func(round string, n int) {
			for i := range n {
				m := bottest.Said(fmt.Sprintf("%s-%d", round, i), "alice", "hello "+round)
				m.ConversationID = sessions.ConversationID(fmt.Sprint("c", i))
				w.Post(m)
			}
			synctest.Wait()
			bottest.After(time.Second)
		}
		post("first", groups)
		bottest.Want(t, "replies", len(w.Wire.Sends()), groups)
		bottest.After(bottest.ReleaseAfter - time.Minute)
		bottest.Want(t, "leases of active sessions", w.Bot.Leases().Count(), groups)
		bottest.After(bottest.IdleAfter)
		post("second", 5)
		bottest.After(3 * time.Minute)
		bottest.Want(t, "leases when all but five sessions rest", w.Bot.Leases().Count(), 5)
		post("third", groups)
		bottest.Want(t, "replies in all", len(w.Wire.Sends()), 2*groups+5)
		bottest.Want(t, "leases when all sessions are active again", w.Bot.Leases().Count(), groups)
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
				w := bottest.Start(t, bottest.Setup{Config: func(cfg *bot.Config) {
					cfg.Compaction.Policy = compaction.Policy{
						Name: "own", Mode: compaction.SummaryOnly, Window: c.window, Cooldown: c.cooldown, TailTurns: c.kept,
						Rolling: true, Profile: compaction.ProfileChat,
					}
				}})
				threshold := w.Values.Compaction.Window.Trigger()
				for i := 0; i == 0 || w.State(bottest.Group).TotalTokens < threshold; i++ {
					w.Say(fmt.Sprint("m", i), "alice", strings.Repeat("release notes of the gateway ", 20))
				}
				bottest.After(bottest.IdleAfter + 2*bottest.ReleaseAfter)
				bottest.Want(t, "leases of idle sessions", w.Bot.Leases().Count(), 0)
				bottest.Want(t, "compactions before the cooldown ends", w.State(bottest.Group).CompactionCount, 0)
				bottest.After(c.cooldown + time.Minute)
				bottest.Want(t, "compactions", w.State(bottest.Group).CompactionCount, c.compacts)
				bottest.After(3*bottest.ReleaseAfter + bottest.IdleAfter)
				bottest.Want(t, "leases in the end", w.Bot.Leases().Count(), 0)
			})
		})
	}
}
