package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"ebb/memory"
	"ebb/memory/extract"
	"ebb/sessions"
	"ebb/sessions/periodic"
)

const (
	backgroundInterval = 30 * time.Second
	pageSize           = 100
	// idleAfter is the time without messages after which a session is flushed.
	idleAfter = 30 * time.Minute
)

// maxTimeouts consecutive model timeouts end a check. The provider is unavailable then, and each further call would
// delay the others by its timeout.
const maxTimeouts = 3

// flushOverdue flushes owed ranges, the oldest first, then idle sessions, one at a time. A stop interrupts it: the
// flush in progress becomes owed or is left to the flush of the stop.
func (u *Worker) flushOverdue(ctx context.Context) error {
	u.WakeBacklogs(ctx)
	var look timeouts
	if u.flushOwed(ctx, &look); !look.tooMany() {
		u.flushIdle(ctx, &look)
	}
	return nil
}

// releaseAfter is the time without messages after which the lease of a flushed or owed session is released. Others
// are kept until the idle flush had its time: a stop flushes the sessions whose leases it holds.
const releaseAfter = 5 * time.Minute

func (u *Worker) releaseIdle(ctx context.Context) error {
	n, err := u.shared.Leases.ReleaseIdle(ctx, releaseAfter, idleAfter+releaseAfter, func(key sessions.Key) bool {
		return u.turns.Busy(key) || u.maintenance.Busy(key) || u.locks.busy(key) || u.outbox.Holds(key)
	})
	if n > 0 {
		zerolog.Ctx(ctx).Debug().Int("leases", n).Msg("Idle leases released")
	}
	u.outbox.Forget(u.shared.Leases.Holds)
	return err
}

type timeouts int

func (n *timeouts) record(err error) {
	if *n++; !errors.Is(err, context.DeadlineExceeded) {
		*n = 0
	}
}

func (n timeouts) tooMany() bool { return n >= maxTimeouts }

func withSession(ctx context.Context, key sessions.Key) context.Context {
	log := zerolog.Ctx(ctx).With().EmbedObject(key).Logger()
	return log.WithContext(ctx)
}

func (u *Worker) flushOwed(ctx context.Context, look *timeouts) {
	var after memory.FlushCandidate
	for more := true; more; {
		owed, err := u.memory.Flushes.DebtsDue(ctx, u.shared.Leases.Owner(), after, pageSize)
		if err != nil {
			periodic.LogFailure(ctx, err, "Failed to list owed flushes")
			return
		}
		for _, d := range owed {
			after = d.FlushCandidate
			out, err := u.flushLow(ctx, d.FlushCandidate, flushDebt, func(sessions.Session) bool { return true })
			if err != nil {
				periodic.LogFailure(withSession(ctx, d.Key), err, "Owed flush failed, it rests")
			} else if out.Through > 0 {
				zerolog.Ctx(ctx).Info().EmbedObject(d.Key).Str("outcome", out.String()).Msg("Owed flush settled")
			}
			if u.endsLook(ctx, look, out, err) {
				return
			}
		}
		more = len(owed) == pageSize
	}
}

func (u *Worker) flushIdle(ctx context.Context, look *timeouts) {
	var after memory.FlushCandidate
	for more := true; more; {
		idle, err := u.memory.Flushes.Idle(ctx, u.shared.Leases.Owner(), idleAfter, after, pageSize)
		if err != nil {
			periodic.LogFailure(ctx, err, "Failed to list idle sessions")
			return
		}
		for _, w := range idle {
			after = w
			out, err := u.flushLow(ctx, w, flushIdle, func(s sessions.Session) bool {
				return u.views.Settings(s).Policy.Flush && u.shared.Now().Sub(s.LastActiveAt) >= idleAfter
			})
			if err != nil {
				periodic.LogFailure(withSession(ctx, w.Key), err, "Flush of an idle session failed; its range is owed")
			}
			if u.endsLook(ctx, look, out, err) {
				return
			}
		}
		more = len(idle) == pageSize
	}
}

// endsLook ends the check at a stop, with untrusted leases, or if the model does not answer. A skipped session is no
// evidence of that.
func (u *Worker) endsLook(ctx context.Context, look *timeouts, out extract.Outcome, err error) bool {
	if err != nil || out.Through > 0 {
		look.record(err)
	}
	return ctx.Err() != nil || look.tooMany() || !u.shared.Leases.Trusted()
}

// flushLow skips sessions that are unwanted, over the low-priority budget, locked by other upkeep or leased to another
// replica. One is leased only after the first three checks.
func (u *Worker) flushLow(
	ctx context.Context, w memory.FlushCandidate, trigger memory.FlushTrigger, wanted func(sessions.Session) bool,
) (out extract.Outcome, err error) {
	key, listed := w.Key, sessions.Session{Key: w.Key, ConversationID: w.Conversation, SpentToday: w.SpentToday, LastActiveAt: w.Since}
	allowed := func(s sessions.Session) bool { return !lowBudgetSpent(u.views.Settings(s), s) && wanted(s) }
	if u.locks.busy(key) || !allowed(listed) {
		return out, nil
	}
	if err := u.slots.Acquire(ctx, 1); err != nil {
		return out, nil // the process stops
	}
	defer u.slots.Release(1)
	err = u.shared.Leases.Do(ctx, key, func(l sessions.Lease) (err error) {
		log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", l.Term).Logger()
		one, stop := context.WithTimeout(log.WithContext(ctx), u.shared.CompactDeadline)
		defer stop()
		out, err = u.flushIfDue(one, l, trigger, func(s sessions.Session) (int, bool) {
			return s.FlushEpoch, s.FlushedSeq < s.LastSeq && allowed(s)
		})
		return err
	})
	if errors.Is(err, sessions.ErrLeaseHeld) || errors.Is(err, sessions.ErrNotFound) {
		return out, nil
	}
	return out, err
}
