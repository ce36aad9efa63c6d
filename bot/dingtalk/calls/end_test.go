package calls

import (
	"testing"

	"ebb/sessions"
)

// The first attempt to end a card has its prepaid call. A later one is counted, and is permitted without a count only if the
// prepaid call may not have been made.
func TestReserveEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		card    sessions.Card
		spent   bool // the month is used up
		counted int64
		refused bool
	}{
		"first":                  {sessions.Card{Prepaid: true, Tries: 1}, false, 0, false},
		"after a kill":           {sessions.Card{Prepaid: true, Tries: 2}, false, 1, false},
		"after a failure":        {sessions.Card{Tries: 2}, false, 1, false},
		"first, spent":           {sessions.Card{Prepaid: true, Tries: 1}, true, 0, false},
		"after a kill, spent":    {sessions.Card{Prepaid: true, Tries: 2}, true, 0, false},
		"after a failure, spent": {sessions.Card{Tries: 2}, true, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const quota = 20
			g := New(Options{Store: NewMemory(), Quota: quota})
			for tt.spent && g.Status().Calls < quota {
				if _, err := g.Reserve(t.Context(), Finish, CardStream); err != nil {
					t.Fatal(err)
				}
			}
			before := g.Status().Calls
			_, err := g.ReserveEnd(t.Context(), tt.card, CardStream)
			if n := g.Status().Calls - before; n != tt.counted || IsRefused(err) != tt.refused || err != nil != tt.refused {
				t.Errorf("%d calls are counted, %v", n, err)
			}
		})
	}
}
