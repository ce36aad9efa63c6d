package calls

import (
	"errors"
	"testing"
	"time"

	"ebb/sessions"
)

func (c *clock) at20th() {
	c.set(time.Date(2026, 11, 20, 16, 0, 0, 0, time.UTC)) // two thirds of the month are over in Shanghai
}

// use makes calls of need Reminder that a person's schedules take, as far as they may.
func use(t *testing.T, g *Governor, person sessions.UserID, n int) (made int) {
	t.Helper()
	for range n {
		err := g.CheckShare(t.Context(), person)
		if err == nil {
			_, err = g.Reserve(t.Context(), Reminder, PrivateSend)
		}
		if IsRefused(err) {
			return made
		}
		if err == nil {
			err = g.CountShare(t.Context(), person)
		}
		if err != nil {
			t.Fatal(err)
		}
		made++
	}
	return made
}

// A schedule is promised calls only if the month has them, beside those of the other schedules.
func TestPromiseOfCalls(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s Store) {
		t.Helper()
		c := newClock()
		g := newGovernor(s, 40, c) // reminders leave 10
		for _, tt := range []struct {
			name string
			ask  sessions.CallPromise
			want error
		}{
			{"one", sessions.CallPromise{Person: "u1", Calls: 1}, nil},
			{"all", sessions.CallPromise{Person: "u1", Calls: 30}, nil},
			{"more", sessions.CallPromise{Person: "u1", Calls: 31}, sessions.ErrNoCalls},
			{"beside own ones", sessions.CallPromise{Person: "u1", Calls: 1, All: 29, Own: 29}, nil},
			{"beside as many", sessions.CallPromise{Person: "u1", Calls: 1, All: 30, Own: 30}, sessions.ErrNoCalls},
			{"within a share", sessions.CallPromise{Person: "u1", Calls: 8, All: 20}, nil},
			{"beyond it", sessions.CallPromise{Person: "u1", Calls: 11, All: 19}, nil},
		} {
			if err := g.Promise(t.Context(), tt.ask); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
			}
		}
		c.set(time.Date(2027, 1, 7, 16, 0, 0, 0, time.UTC)) // 7 of 31 days
		for range 8 {
			if _, err := g.Reserve(t.Context(), Finish, GroupSend); err != nil {
				t.Fatal(err)
			}
		}
		for calls, want := range map[int]error{2: nil, 3: sessions.ErrCallShare} {
			if err := g.Promise(t.Context(), sessions.CallPromise{Person: "u1", Calls: calls, All: 6, Own: 6}); !errors.Is(err, want) {
				t.Errorf("%d calls beside others, who take about 35: %v, want %v", calls, err, want)
			}
		}
		if err := newGovernor(s, 0, c).Promise(t.Context(), sessions.CallPromise{Person: "u1", Calls: 1000}); err != nil {
			t.Errorf("without a bound: %v", err)
		}
		if err := g.Exhaust(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := g.Promise(t.Context(), sessions.CallPromise{Person: "u1", Calls: 1}); !errors.Is(err, sessions.ErrNoCalls) {
			t.Errorf("while DingTalk refuses: %v", err)
		}
	})
}

// One person's schedules take a fifth of the month, and beyond it what others leave by their use so far. A person without others has all.
// Replicas and restarts know the count.
func TestShareOfAPerson(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s Store) {
		t.Helper()
		c := newClock()
		c.at20th()
		if n := use(t, newGovernor(s, 100, c), "u1", 100); n != 90 {
			t.Errorf("the only person got %d calls of 90", n)
		}
		c.set(c.now().AddDate(0, 1, 0)) // 20 of 31 days
		g := newGovernor(s, 100, c)
		for range 40 {
			if _, err := g.Reserve(t.Context(), Finish, GroupSend); err != nil {
				t.Fatal(err)
			}
		}
		n := use(t, g, "u1", 10) + use(t, newGovernor(s, 100, c), "u1", 100)
		if n < 20 || n > 40 {
			t.Errorf("beside others, who take about 60, a person got %d calls", n)
		}
		if n := use(t, newGovernor(s, 100, c), "u2", 5); n != 5 {
			t.Errorf("another person got %d calls of 5", n)
		}
	})
}
