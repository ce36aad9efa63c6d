package upkeep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/periodic"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/memory"
	"ebb/memory/extract"
	"ebb/sessions"
)

const (
	// SettleEvery is the time between two looks at what memory is owed.
	SettleEvery = 30 * time.Second
	// SettleLimit is how many sessions are listed at a time.
	SettleLimit = 100
	// IdleAfter is how long nothing is said in a session before what it said last is flushed.
	IdleAfter = 30 * time.Minute
)

// MaxTimeouts ends a look after so many model calls in a row that ran out of time: the provider is away, and each of those
// that still wait would hold the others up for as long.
const MaxTimeouts = 3

// Settle flushes in the background what nobody waits for, one session at a time: owed flushes, those that have been owed
// for longest first, then sessions at rest. A stop ends it: what it had under way is owed, or left to the flush of the
// stop. Backlogs are left to the upkeep of their sessions.
func (u *Worker) Settle(ctx context.Context) {
	u.WakeBacklogs(ctx)
	look := breaker{}
	if u.settleDebts(ctx, &look); !look.over() {
		u.flushIdle(ctx, &look)
	}
}

// RestAfter is how long nothing is said in a session before its lease is given up, where all is flushed or owed. Else it is
// kept until the idle flush had its time: a stop flushes the sessions whose lease it holds.
const RestAfter = 5 * time.Minute

// Rest gives up the leases of sessions at rest.
func (u *Worker) Rest(ctx context.Context) {
	n, err := u.leases.ReleaseIdle(ctx, RestAfter, IdleAfter+RestAfter, func(key sessions.Key) bool {
		return u.turns.Busy(key) || u.own.Busy(key) || u.Locks.Busy(key) || u.outbox.Holds(key)
	})
	if err != nil {
		periodic.LogFailure(ctx, err, "Leases at rest not given up")
	} else if n > 0 {
		zerolog.Ctx(ctx).Debug().Int("leases", n).Msg("Leases at rest given up")
	}
	u.outbox.Forget(u.leases.Holds)
}

// breaker counts the model calls of one look that ran out of time, one after another.
type breaker struct{ timeouts int }

func (p *breaker) note(err error) {
	if p.timeouts++; !errors.Is(err, context.DeadlineExceeded) {
		p.timeouts = 0
	}
}

func (p *breaker) over() bool { return p.timeouts >= MaxTimeouts }

// settleDebts makes up for flushes that failed: their events are read from the log.
func (u *Worker) settleDebts(ctx context.Context, look *breaker) {
	var after memory.FlushCandidate
	for more := true; more; {
		owed, err := u.memory.DebtsDue(ctx, u.leases.Owner(), after, SettleLimit)
		if err != nil {
			periodic.LogFailure(ctx, err, "Owed flushes could not be listed")
			return
		}
		for _, d := range owed {
			after = d.FlushCandidate
			out, err := u.flushLow(ctx, d.FlushCandidate, flushDebt, func(sessions.Session) bool { return true })
			if err != nil {
				periodic.LogFailure(ctx, err, "Owed flush did not come through, it rests")
			} else if out.Through > 0 {
				zerolog.Ctx(ctx).Info().EmbedObject(d.Key).Str("outcome", out.String()).Msg("Owed flush settled")
			}
			if u.endsLook(ctx, look, out, err) {
				return
			}
		}
		more = len(owed) == SettleLimit
	}
}

// WakeBacklogs has the upkeep of sessions go on whose context is over its threshold, although nothing is said there: what
// an import, an erasure or a smaller window left, what a failure put off, and what the tokens of a day did not suffice for.
// A session in which the upkeep had nothing to do is left alone until its context changes: its lease is given up.
func (u *Worker) WakeBacklogs(ctx context.Context) {
	least := u.cfg.Compaction.Window.Trigger()
	for _, own := range u.cfg.Groups {
		least = min(least, own.Window.Trigger())
	}
	var after sessions.Key
	listed := map[sessions.Key]bool{}
	for more := true; more; {
		list, err := u.store.Backlogs(ctx, u.leases.Owner(), least, after, SettleLimit)
		if err != nil {
			periodic.LogFailure(ctx, err, "Backlogs could not be listed")
			return
		}
		for _, s := range list {
			after, listed[s.Key] = s.Key, true
			set := u.views.Settings(s)
			if set.Enabled && !view.Spent(set, s) && s.TotalTokens >= set.Window.Trigger() && !u.idle.has(s, u.now()) && !u.Locks.Busy(s.Key) {
				u.own.Wake(s.Key)
			}
		}
		more = len(list) == SettleLimit
	}
	u.idle.keep(listed)
}

// idleBacklogs are the sessions in which the upkeep had nothing to do, such as one over its threshold whose policy counts
// messages. Each is known by the size of its context.
type idleBacklogs struct {
	mu    sync.Mutex
	known map[sessions.Key]idleBacklog
}

type idleBacklog struct {
	tokens int
	until  time.Time // the end of the policy's cooldown; zero: no time changes the decision
}

// note adds a session in which nothing is due now. One that rests until a time, or until the next day, is not added.
func (i *idleBacklogs) note(s sessions.Session, set compaction.Settings, now time.Time) {
	if view.Spent(set, s) || now.Before(s.CompactRetryAt) {
		return
	}
	idle := idleBacklog{tokens: s.TotalTokens}
	if at := set.Policy.CooledAt(s); at.After(now) {
		idle.until = at
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.known == nil {
		i.known = map[sessions.Key]idleBacklog{}
	}
	i.known[s.Key] = idle
}

// has reports whether nothing has changed in a session since it was noted.
func (i *idleBacklogs) has(s sessions.Session, now time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	idle, ok := i.known[s.Key]
	return ok && idle.tokens == s.TotalTokens && (idle.until.IsZero() || now.Before(idle.until))
}

// keep removes all sessions but those that are listed as backlogs.
func (i *idleBacklogs) keep(listed map[sessions.Key]bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.DeleteFunc(i.known, func(key sessions.Key, _ idleBacklog) bool { return !listed[key] })
}

// flushIdle flushes sessions in which nobody has said anything for a while.
func (u *Worker) flushIdle(ctx context.Context, look *breaker) {
	var after memory.FlushCandidate
	for more := true; more; {
		idle, err := u.memory.Idle(ctx, u.leases.Owner(), IdleAfter, after, SettleLimit)
		if err != nil {
			periodic.LogFailure(ctx, err, "Sessions at rest could not be listed")
			return
		}
		for _, w := range idle {
			after = w
			out, err := u.flushLow(ctx, w, flushIdle, func(s sessions.Session) bool {
				return u.views.Settings(s).Policy.Flush && u.now().Sub(s.LastActiveAt) >= IdleAfter
			})
			if err != nil {
				periodic.LogFailure(ctx, err, "Session at rest was not flushed, its range is owed")
			}
			if u.endsLook(ctx, look, out, err) {
				return
			}
		}
		more = len(idle) == SettleLimit
	}
}

// endsLook notes how a flush went, and reports whether the look is over: at a stop, when leases can't be trusted, and
// where nothing comes back from the model. A session that was passed over says nothing of that.
func (u *Worker) endsLook(ctx context.Context, look *breaker, out extract.Outcome, err error) bool {
	if err != nil || out.Through > 0 {
		look.note(err)
	}
	return ctx.Err() != nil || look.over() || !u.leases.Trusted()
}

// flushLow flushes a session that is free or ours, at low priority: where it is wanted, within what such work may still
// spend today, and never beside other upkeep of it. Of a session that is passed over not even the lease is taken.
func (u *Worker) flushLow(
	ctx context.Context, w memory.FlushCandidate, trigger string, wanted func(sessions.Session) bool,
) (out extract.Outcome, err error) {
	key, listed := w.Key, sessions.Session{Key: w.Key, ConversationID: w.Conversation, SpentToday: w.SpentToday, LastActiveAt: w.Since}
	allowed := func(s sessions.Session) bool { return !spentLow(u.views.Settings(s), s) && wanted(s) }
	if u.Locks.Busy(key) || !allowed(listed) {
		return out, nil
	}
	if err := u.spare.Acquire(ctx, 1); err != nil {
		return out, nil // the bot stops
	}
	defer u.spare.Release(1)
	lease, err := u.leases.Get(ctx, key)
	if errors.Is(err, sessions.ErrLeaseHeld) || errors.Is(err, sessions.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("take lease of session %s: %w", key, err)
	}
	log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", lease.Term).Logger()
	ctx, stop := context.WithTimeout(log.WithContext(ctx), u.cfg.CompactDeadline)
	defer stop()
	out, err = u.flushAs(ctx, lease, trigger, func(s sessions.Session) (int, bool) {
		return s.FlushEpoch, s.FlushedSeq < s.LastSeq && allowed(s)
	})
	return out, u.leases.Check(key, err)
}
