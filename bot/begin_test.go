package bot

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"ebb/sessions"
)

// Nobody is told that a message broke its turns where only the storage was in trouble, however often.
func TestBeginInTrouble(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(*store){
		"its answers are lost": func(s *store) { s.lose(times(6, "begin", errAway)) },
		"it is away":           func(s *store) { s.fail(times(6, "begin", errAway)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := start(t, setup{})
				trouble(w.store)
				w.say("m0", "alice", "q0")
				after(30 * time.Second)
				want(t, "texts", w.wire.texts(), []string{"re: alice(u-alice): q0"})
				want(t, "leases that are in doubt", len(w.bot.unsure.last), 0)
			})
		})
	}
}

// Trouble at the beginning does not hide that a message breaks its turns: of each one attempt stays counted.
func TestBeginInTroubleCountsBrokenTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		w.store.lose(func(op string) error {
			if op == "begin" && w.store.called("begin")%2 == 1 { // every turn is begun twice
				return errors.New("the answer was lost")
			}
			return nil
		})
		w.store.fail(times(1000, "commit", fmt.Errorf("no row: %w", sessions.ErrRefused)))
		w.say("m0", "alice", "q0")
		after(30 * time.Second)
		if n := w.store.mem.Events(t.Context(), group)[0].Attempts; n <= maxBroken {
			t.Errorf("the message that breaks its turns has %d attempts, want more than %d", n, maxBroken)
		}
	})
}
