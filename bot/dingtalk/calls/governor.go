package calls

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
	"ebb/sessions/periodic"
)

// Store counts the calls of months for all replicas. Months are like 2026-11, days like 2026-11-23.
type Store interface {
	// Now is the clock of all replicas, by which months and days begin.
	Now() time.Time

	// Replicas is the number of running replicas, at least 1 in one of them.
	Replicas(ctx context.Context) (int, error)

	// OpenCallMonth begins or reads a month. A quota other than the stored one ends the platform's refusal, and forgets the
	// reported levels.
	OpenCallMonth(ctx context.Context, month string, quota int64) (sessions.CallMonth, error)

	// CallMonth returns sessions.ErrNotFound before the month began.
	CallMonth(ctx context.Context, month string) (sessions.CallMonth, error)

	// ReserveCalls counts one call for each entry of apis on a day. It returns false and counts none beyond bound in
	// the month, and while the platform refuses calls at now.
	ReserveCalls(ctx context.Context, day string, apis []string, bound int64, now time.Time) (sessions.CallMonth, bool, error)

	// ReturnCall takes back a call that ReserveCalls counted on a day.
	ReturnCall(ctx context.Context, day, api string) (sessions.CallMonth, error)

	// ReportCallLevel returns true for the first of all replicas that reports a level of a month, or a lower one. It
	// decides about reports alone.
	ReportCallLevel(ctx context.Context, month string, level int) (bool, error)

	// PersonCalls is the number of calls in a month that CountPersonCall counted. Counts are kept until a time.
	PersonCalls(ctx context.Context, month string, person sessions.UserID) (int64, error)
	CountPersonCall(ctx context.Context, month string, person sessions.UserID, until time.Time) error

	// ExhaustCalls stores that the platform refuses a month's calls until a time. It returns true for the first of
	// all replicas in the month.
	ExhaustCalls(ctx context.Context, month string, until time.Time) (bool, error)
}

// Options configure a governor.
type Options struct {
	Store     Store // [NewMemory] keeps the counts in this process
	Quota     int64 // calls of a month; 0: no bound
	PerSecond int   // calls of one API by all replicas; 0: 20
}

// Governor admits calls to the open API. Its methods may be called from any goroutine.
type Governor struct {
	store     Store
	quota     int64
	perSecond int
	now       func() time.Time

	replicas atomic.Int64 // running ones, which share the rates

	mu     sync.Mutex
	pacers map[API]*pacer
	made   map[API]int64
	status Status
	until  time.Time // end of DingTalk's refusal, as last read
	local  time.Time // end of a refusal that the storage may not have: no read ends it before
	// A read that began before the last later value of until does not end it.
	raised int
}

// Status is a month's state, as this process last read it.
type Status struct {
	Month string // like 2026-11; empty before the first read
	Calls int64  // counted by all replicas
	Quota int64  // 0: no bound
	Level Level
}

// Left is the number of remaining calls; false without a bound.
func (s Status) Left() (int64, bool) { return max(0, s.Quota-s.Calls), s.Quota > 0 }

// RefusedError reports calls that the month does not permit.
type RefusedError struct {
	Need  Need
	Level Level
	Until time.Time     // a later attempt may succeed
	After time.Duration // the time until then, whatever the local clock shows
}

// Error names the level.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("the month's remaining API calls do not permit this one (level %s)", e.Level)
}

// New returns a governor.
func New(o Options) *Governor {
	g := &Governor{
		store: o.Store, quota: max(0, o.Quota), perSecond: cmp.Or(o.PerSecond, 20), now: o.Store.Now,
		pacers: map[API]*pacer{}, made: map[API]int64{}, status: Status{Quota: max(0, o.Quota)},
	}
	g.replicas.Store(1)
	return g
}

// Reservation is a number of counted calls. The zero value, of an earlier process, returns nothing.
type Reservation struct {
	governor *Governor
	day      string
}

// Reserve counts one call for each API before they are made, all or none. It returns a [*RefusedError] when the month
// does not permit them.
func (g *Governor) Reserve(ctx context.Context, need Need, apis ...API) (Reservation, error) {
	day, err := g.open(ctx)
	if err != nil {
		return Reservation{}, err
	}
	if g.isExhausted() { // Replies that waited for resumed calls may already ask for them.
		if err := g.Refresh(ctx); err != nil {
			return Reservation{}, err
		}
	}
	if e := g.refusal(need, len(apis)); e != nil && need != Finish { // the last calls may have been returned
		return Reservation{}, e
	}
	names := make([]string, len(apis))
	for i, api := range apis {
		names[i] = string(api)
	}
	for last := false; ; last = true {
		began := g.beginRead()
		m, ok, err := g.store.ReserveCalls(ctx, day, names, need.bound(g.quota), g.now())
		if err != nil {
			return Reservation{}, err
		}
		if ok {
			g.note(ctx, began, sessions.MonthOf(day), m)
			return Reservation{g, day}, nil
		}
		if err := g.Refresh(ctx); err != nil {
			return Reservation{}, err
		}
		if e := g.refusal(need, len(apis)); e != nil {
			return Reservation{}, e
		}
		if last {
			g.mu.Lock()
			defer g.mu.Unlock()
			return Reservation{}, g.refusedLocked(need)
		}
		// Calls were resumed, or returned, between the two statements.
	}
}

// Return takes back a call that DingTalk did not count: one refused for its rate, or one that was not sent.
func (r Reservation) Return(ctx context.Context, api API) error {
	if r.governor == nil {
		return nil
	}
	began := r.governor.beginRead()
	m, err := r.governor.store.ReturnCall(ctx, r.day, string(api))
	if err != nil {
		return err
	}
	r.governor.note(ctx, began, sessions.MonthOf(r.day), m)
	return nil
}

// Share is this replica's part of each API's rate.
func (g *Governor) Share() float64 { return 1 / float64(g.replicas.Load()) }

// Wait blocks until this replica's share of an API's rate permits the next call, and counts it as made.
func (g *Governor) Wait(ctx context.Context, api API) error {
	if err := g.pacer(api).wait(ctx); err != nil {
		return fmt.Errorf("waiting for the rate of %s: %w", api, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made[api]++
	return nil
}

// Delay is the time until the rate of an API permits a call, besides waiting calls.
func (g *Governor) Delay(api API) time.Duration { return max(0, g.pacer(api).delay(g.now())) }

// Pause delays the next call of an API after a refusal for its rate.
func (g *Governor) Pause(api API, d time.Duration) { g.pacer(api).pause(d) }

// Exhaust refuses all calls of all replicas for a time, since DingTalk reported that the organization's month is used
// up. It is reported once a month, and an operator can end it. A refusal that can't be stored ends soon: replicas
// would not agree.
func (g *Governor) Exhaust(ctx context.Context, d time.Duration) error {
	day, err := g.open(ctx)
	if err != nil {
		return err
	}
	month, until := sessions.MonthOf(day), g.now().Add(d)
	g.mu.Lock()
	g.until, g.local = until, until
	calls := g.status.Calls
	g.mu.Unlock()
	first, err := g.store.ExhaustCalls(ctx, month, until)
	g.mu.Lock()
	g.raised++ // a read that began before may not see it
	if g.local = (time.Time{}); err != nil {
		g.local = g.now().Add(min(d, refreshEvery)) // the next call shows whether it still holds
		g.until = g.local
	}
	g.mu.Unlock()
	if first {
		zerolog.Ctx(ctx).Warn().Str("month", month).Int64("calls", calls).Int64("quota", g.quota).Stringer("level", Spent).
			Msg("DingTalk refused API calls: the organization's month is used up")
	}
	return err
}

// Level is the level of [Governor.Status].
func (g *Governor) Level() Level { return g.Status().Level }

// Status returns the present month's state, as this process last read it.
func (g *Governor) Status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	if month := sessions.MonthOf(g.day()); g.status.Month != month {
		return Status{Month: month, Quota: g.quota}
	}
	s := g.status
	if g.until.After(g.now()) {
		s.Level = Spent
	}
	return s
}

// Made returns the calls of this process by API.
func (g *Governor) Made() map[API]int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.made)
}

// Other replicas' calls are read at this interval, one row by its key. An operator who resumes calls waits for it.
const refreshEvery = 2 * time.Second

// Watch reads the month and the number of replicas until ctx ends. So a new month, a lower level and resumed calls show without a call,
// and no call asks for its share of the rate.
func (g *Governor) Watch(ctx context.Context) {
	periodic.Run(ctx, periodic.Task{Interval: refreshEvery, AtOnce: true, Timeout: refreshEvery, Do: func(one context.Context) error {
		err := g.Refresh(one)
		if n, failed := g.store.Replicas(one); failed == nil {
			g.replicas.Store(max(1, int64(n)))
		} else if err == nil {
			err = failed
		}
		if err != nil && ctx.Err() == nil {
			zerolog.Ctx(ctx).Debug().Err(err).Msg("Failed to read the month's API calls")
		}
		return nil
	}})
}

// Refresh reads the month.
func (g *Governor) Refresh(ctx context.Context) error {
	day, err := g.open(ctx)
	if err != nil {
		return err
	}
	month, began := sessions.MonthOf(day), g.beginRead()
	m, err := g.store.CallMonth(ctx, month)
	if err != nil {
		return err
	}
	g.note(ctx, began, month, m)
	return nil
}

func (g *Governor) day() string { return dayAt(g.now()) }

// open begins the present day's month at the first use.
func (g *Governor) open(ctx context.Context) (day string, err error) {
	day = g.day()
	month := sessions.MonthOf(day)
	g.mu.Lock()
	opened, began := g.status.Month == month, g.raised
	g.mu.Unlock()
	if opened {
		return day, nil
	}
	m, err := g.store.OpenCallMonth(ctx, month, g.quota)
	if err != nil {
		return "", err
	}
	if m.First && m.LowBefore {
		zerolog.Ctx(ctx).Warn().Str("month", month).Int64("quota", g.quota).Stringer("level", Streaming).
			Msg("DingTalk API calls available again: a new month began")
	}
	g.note(ctx, began, month, m)
	return day, nil
}

func (g *Governor) beginRead() (began int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.raised
}

// note reports a lower level once over all replicas. The level follows from the count and this process's quota alone: replicas
// with other settings, and calls that were returned, leave nothing behind.
func (g *Governor) note(ctx context.Context, began int, month string, m sessions.CallMonth) {
	g.mu.Lock()
	level, until, resumed := LevelOf(m.Calls, g.quota), m.ExhaustedUntil, false
	switch {
	case month != sessions.MonthOf(g.day()): // a call of the month before was returned
		g.mu.Unlock()
		return
	case month == g.status.Month:
		if newer := began == g.raised && !g.local.After(g.now()); !newer && g.until.After(until) {
			until = g.until
		}
		resumed = g.until.After(g.now()) && !until.After(g.now())
	}
	if until.After(g.until) {
		g.raised++
	}
	g.status, g.until = Status{Month: month, Calls: m.Calls, Quota: g.quota, Level: level}, until
	g.mu.Unlock()
	if resumed {
		zerolog.Ctx(ctx).Info().Str("month", month).Stringer("level", level).Msg("DingTalk API calls available again: an operator resumed them, or changed their number")
	}
	if level <= Level(m.Reported) {
		return
	}
	first, err := g.store.ReportCallLevel(ctx, month, int(level))
	switch {
	case err != nil: // the next note repeats it
		zerolog.Ctx(ctx).Debug().Err(err).Msg("Failed to store the reported level of API calls")
	case first:
		zerolog.Ctx(ctx).Warn().Str("month", month).Int64("calls", m.Calls).Int64("quota", g.quota).Stringer("level", level).
			Stringer("level_before", Level(m.Reported)).Msg("DingTalk API calls ran low: the level was lowered")
	}
}

func (g *Governor) refusal(need Need, n int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.status.Calls+int64(n) <= need.bound(g.quota) && !g.until.After(g.now()) {
		return nil
	}
	return g.refusedLocked(need)
}

func (g *Governor) isExhausted() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.until.After(g.now())
}

func (g *Governor) refusedLocked(need Need) *RefusedError {
	now := g.now()
	until := monthEnd(now)
	level := g.status.Level
	if g.until.After(now) {
		level = Spent
		if need == Finish {
			until = g.until
		}
	}
	return &RefusedError{Need: need, Level: level, Until: until, After: until.Sub(now)}
}

// IsRefused reports whether an error is a refusal of the month.
func IsRefused(err error) bool {
	_, ok := errors.AsType[*RefusedError](err)
	return ok
}

func (g *Governor) pacer(api API) *pacer {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.pacers[api]
	if p == nil {
		p = newPacer(g.perSecond, &g.replicas)
		g.pacers[api] = p
	}
	return p
}
