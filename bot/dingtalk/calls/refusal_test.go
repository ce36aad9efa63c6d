package calls

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"ebb/sessions"
)

// DingTalk's own refusal stops all replicas for a while, is logged once, and leaves the level of the count.
func TestExhaustedMonth(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s Store) {
		t.Helper()
		ctx, count := logged(t.Context())
		c := newClock()
		a, b := newGovernor(s, 0, c), newGovernor(s, 0, c)
		for _, g := range []*Governor{a, b} {
			if err := g.Exhaust(ctx, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		other := newGovernor(s, 0, c)
		for _, g := range []*Governor{a, b, other} {
			_, err := g.Reserve(ctx, Finish, GroupSend)
			if refused, ok := errors.AsType[*RefusedError](err); !ok || !refused.Until.Equal(c.now().Add(time.Hour)) || g.Level() != Spent {
				t.Errorf("exhausted: %v at level %s", err, g.Level())
			}
		}
		c.set(c.now().Add(time.Hour))
		for _, g := range []*Governor{a, b, other} {
			if _, err := g.Reserve(ctx, Frame, CardStream); err != nil || g.Level() != Streaming {
				t.Errorf("an hour later: %v at level %s", err, g.Level())
			}
		}
		if n := count("the organization's month is used up"); n != 1 {
			t.Errorf("logged %d times", n)
		}
	})
}

// An operator who resumes calls ends DingTalk's refusal for all replicas at their next read, also for one that asks just then.
// The next refusal is logged again.
func TestResumedCalls(t *testing.T) {
	t.Parallel()
	s := openPG(t)
	ctx, count := logged(t.Context())
	c := newClock()
	asking := &resuming{Store: s}
	a, b, other := newGovernor(s, 100, c), newGovernor(s, 100, c), newGovernor(asking, 100, c)
	if _, err := s.ResumeCalls(ctx, "2026-11"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("before the first call: %v", err)
	}
	for _, g := range []*Governor{b, other} {
		if err := g.Refresh(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Exhaust(ctx, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := b.Refresh(ctx); err != nil || b.Level() != Spent {
		t.Fatalf("the other replica is at level %s, %v", b.Level(), err)
	}
	asking.resume = func() {
		done, err := s.ResumeCalls(ctx, "2026-11")
		if want := (sessions.ResumedCalls{Month: "2026-11", RefusedUntil: c.now().Add(time.Hour), Quota: 100}); err != nil || !done.RefusedUntil.Equal(want.RefusedUntil) ||
			done.Quota != want.Quota || done.Replies != 0 {
			t.Errorf("resumed %+v, %v, want %+v", done, err, want)
		}
	}
	if _, err := other.Reserve(ctx, Frame, CardStream); err != nil {
		t.Errorf("a replica that asks at that moment: %v", err)
	}
	if _, err := a.Reserve(ctx, Finish, GroupSend); err != nil {
		t.Errorf("a replica that asks before its next read: %v", err)
	}
	if err := b.Refresh(ctx); err != nil || b.Level() != Streaming {
		t.Errorf("after the next read the level is %s, %v", b.Level(), err)
	}
	if n := count("an operator resumed them"); n != 2 {
		t.Errorf("%d replicas that refused calls logged the end, want 2", n)
	}
	if err := b.Exhaust(ctx, time.Hour); err != nil || count("the organization's month is used up") != 2 {
		t.Errorf("the second refusal: %v, logged %d times in all", err, count("the organization's month is used up"))
	}
}

// resuming resumes calls right after they were refused.
type resuming struct {
	Store
	resume func()
}

func (s *resuming) ReserveCalls(ctx context.Context, day string, apis []string, bound int64, now time.Time) (sessions.CallMonth, bool, error) {
	m, ok, err := s.Store.ReserveCalls(ctx, day, apis, bound, now)
	if resume := s.resume; !ok && resume != nil {
		s.resume = nil
		resume()
	}
	return m, ok, err
}

// A refusal of the month outlasts the answers to earlier calls, in the replica that met it and in others. Neither they nor the
// next month are reported as resumed by an operator.
func TestRefusalOutlastsEarlierAnswers(t *testing.T) {
	t.Parallel()
	for _, met := range []bool{true, false} {
		t.Run(fmt.Sprint("met by this replica ", met), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, s Store) {
				t.Helper()
				ctx, count := logged(t.Context())
				c := newClock()
				late := &answering{Store: s}
				g := newGovernor(late, 0, c)
				met := map[bool]*Governor{true: g, false: newGovernor(s, 0, c)}[met]
				late.before = func() {
					if err := met.Exhaust(ctx, time.Hour); err != nil {
						t.Error(err)
					}
					if err := g.Refresh(ctx); err != nil {
						t.Error(err)
					}
				}
				if _, err := g.Reserve(ctx, Finish, GroupSend); err != nil {
					t.Error(err)
				}
				if g.Level() != Spent {
					t.Errorf("after the answer to an earlier call the level is %s", g.Level())
				}
				c.set(time.Date(2026, 11, 30, 15, 59, 0, 0, time.UTC)) // a minute before midnight in Shanghai
				if err := met.Exhaust(ctx, time.Hour); err != nil {
					t.Error(err)
				}
				if err := g.Refresh(ctx); err != nil || g.Level() != Spent {
					t.Errorf("at the end of the month the level is %s, %v", g.Level(), err)
				}
				c.set(c.now().Add(time.Minute))
				if err := g.Refresh(ctx); err != nil || g.Level() != Streaming {
					t.Errorf("in the next month the level is %s, %v", g.Level(), err)
				}
				if n := count("an operator resumed them"); n != 0 {
					t.Errorf("an operator who did nothing is logged %d times", n)
				}
			})
		})
	}
}

// answering delays the answer to the first reservation.
type answering struct {
	Store
	before func()
}

func (s *answering) ReserveCalls(ctx context.Context, day string, apis []string, bound int64, now time.Time) (sessions.CallMonth, bool, error) {
	m, ok, err := s.Store.ReserveCalls(ctx, day, apis, bound, now)
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	return m, ok, err
}

// A refusal that the storage does not take stops one replica for seconds, not for an hour: the others do not know it.
func TestRefusalThatIsNotStored(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := &unwritable{Store: NewMemory()}
	g := newGovernor(s, 0, c)
	ctx, count := logged(t.Context())
	if err := g.Exhaust(ctx, time.Hour); !errors.Is(err, errReadOnly) || g.Level() != Spent {
		t.Errorf("%v, level %s", err, g.Level())
	}
	if err := g.Refresh(ctx); err != nil || g.Level() != Spent || count("an operator resumed them") != 0 {
		t.Errorf("after a read at once: %v, level %s, %d operators are logged", err, g.Level(), count("an operator resumed them"))
	}
	c.set(c.now().Add(refreshEvery))
	if _, err := g.Reserve(t.Context(), Finish, GroupSend); err != nil {
		t.Errorf("after %s: %v", refreshEvery, err)
	}
}

var errReadOnly = errors.New("read-only")

type unwritable struct{ Store }

func (s *unwritable) ExhaustCalls(context.Context, string, time.Time) (bool, error) {
	return false, errReadOnly
}
