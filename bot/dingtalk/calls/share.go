package calls

import (
	"context"
	"time"

	"ebb/sessions"
)

// A person's schedules have this part of a month's calls in any case.
const sharePart = 5

// MonthEnd is the end of the present month.
func (g *Governor) MonthEnd() time.Time { return monthEnd(g.now()) }

// Promise checks the present month for calls of a person's schedules. It returns [sessions.ErrNoCalls] or
// [sessions.ErrCallShare] where they do not reach. It counts none.
func (g *Governor) Promise(ctx context.Context, p sessions.CallPromise) error {
	if g.quota == 0 {
		return nil
	}
	if err := g.Refresh(ctx); err != nil {
		return err
	}
	s := g.Status()
	if s.Level == Spent || s.Calls+int64(p.All+p.Calls) > Reminder.bound(g.quota) {
		return sessions.ErrNoCalls
	}
	ok, err := g.hasShare(ctx, p)
	if err == nil && !ok {
		err = sessions.ErrCallShare
	}
	return err
}

// CheckShare returns a [*RefusedError] where a person's schedules have used their share of the month.
func (g *Governor) CheckShare(ctx context.Context, person sessions.UserID) error {
	if g.quota == 0 || person == "" {
		return nil
	}
	ok, err := g.hasShare(ctx, sessions.CallPromise{Person: person, Calls: 1})
	if err == nil && !ok {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.refusedLocked(Reminder)
	}
	return err
}

// CountShare counts a call that a person's schedule made.
func (g *Governor) CountShare(ctx context.Context, person sessions.UserID) error {
	if g.quota == 0 || person == "" {
		return nil
	}
	now := g.now()
	return g.store.CountPersonCall(ctx, MonthAt(now), person, monthEnd(now))
}

// hasShare permits a part of the month to each person. Beyond it they get what others leave, if those go on calling as in the month so
// far. A person without others has all.
func (g *Governor) hasShare(ctx context.Context, p sessions.CallPromise) (bool, error) {
	own, err := g.store.PersonCalls(ctx, MonthAt(g.now()), p.Person)
	if err != nil {
		return false, err
	}
	more := int64(p.Calls + p.Own)
	if own+more <= max(1, g.quota/sharePart) {
		return true, nil
	}
	calls := g.Status().Calls
	others := float64(max(0, calls-own)) * g.rest()
	return float64(g.quota-calls-more) >= others+float64(p.All-p.Own), nil
}

// rest is the rest of the month in relation to its elapsed part, which counts as a day at least.
func (g *Governor) rest() float64 {
	now := g.now().In(shanghai)
	began := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, shanghai)
	return float64(monthEnd(now).Sub(now)) / float64(max(24*time.Hour, now.Sub(began)))
}
