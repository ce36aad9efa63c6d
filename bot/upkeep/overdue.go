package upkeep

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"ebb/bot/outbox"
	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/memory"
	"ebb/memory/extract"
	"ebb/sessions"
	"ebb/sessions/periodic"
	"ebb/sessions/serial"
)

// idleAfter is the time without messages after which a session is flushed.
const idleAfter = 30 * time.Minute

// overdue does the work of sessions without turns: flushes that are owed or idle, and the release of leases.
type overdue struct {
	shared      *parts.Shared
	views       *view.Builder
	store       Flushes
	flusher     *flusher
	locks       *locks
	slots       *semaphore.Weighted
	turns       *serial.Mailboxes
	maintenance *serial.Mailboxes
	outbox      *outbox.Outbox
}

// flushAll flushes owed ranges, the oldest first, then idle sessions, one at a time. A stop interrupts it: the
// flush in progress becomes owed or is left to the flush of the stop.
func (o overdue) flushAll(ctx context.Context) error {
	var look timeouts
	if o.flushOwed(ctx, &look); !look.tooMany() {
		o.flushIdle(ctx, &look)
	}
	return nil
}

func (o overdue) flushOwed(ctx context.Context, look *timeouts) {
	var after memory.FlushCandidate
	for more := true; more; {
		owed, err := o.store.DebtsDue(ctx, o.shared.Leases.Owner(), after, pageSize)
		if err != nil {
			periodic.LogFailure(ctx, err, "Failed to list owed flushes")
			return
		}
		for _, d := range owed {
			after = d.FlushCandidate
			out, err := o.flushLow(ctx, d.FlushCandidate, flushDebt, func(sessions.Session) bool { return true })
			if err != nil {
				periodic.LogFailure(withSession(ctx, d.Key), err, "Owed flush failed, it rests")
			} else if out.Through > 0 {
				zerolog.Ctx(ctx).Info().EmbedObject(d.Key).Str("outcome", out.String()).Msg("Owed flush settled")
			}
			if o.endsLook(ctx, look, out, err) {
				return
			}
		}
		more = len(owed) == pageSize
	}
}

func (o overdue) flushIdle(ctx context.Context, look *timeouts) {
	var after memory.FlushCandidate
	for more := true; more; {
		idle, err := o.store.Idle(ctx, o.shared.Leases.Owner(), idleAfter, after, pageSize)
		if err != nil {
			periodic.LogFailure(ctx, err, "Failed to list idle sessions")
			return
		}
		for _, w := range idle {
			after = w
			out, err := o.flushLow(ctx, w, flushIdle, func(s sessions.Session) bool {
				return o.views.Choices.Settings(s).Policy.Flush && o.shared.Now().Sub(s.LastActiveAt) >= idleAfter
			})
			if err != nil {
				periodic.LogFailure(withSession(ctx, w.Key), err, "Flush of an idle session failed; its range is owed")
			}
			if o.endsLook(ctx, look, out, err) {
				return
			}
		}
		more = len(idle) == pageSize
	}
}

// endsLook ends the check at a stop, with untrusted leases, or if the model does not answer. A skipped session is no
// evidence of that.
func (o overdue) endsLook(ctx context.Context, look *timeouts, out extract.Outcome, err error) bool {
	if err != nil || out.Through > 0 {
		look.record(err)
	}
	return ctx.Err() != nil || look.tooMany() || !o.shared.Leases.Trusted()
}

// flushLow skips sessions that are unwanted, over the low-priority budget, locked by other upkeep or leased to another
// replica. One is leased only after the first three checks.
func (o overdue) flushLow(
	ctx context.Context, w memory.FlushCandidate, trigger memory.FlushTrigger, wanted func(sessions.Session) bool,
) (out extract.Outcome, err error) {
	key, listed := w.Key, sessions.Session{Key: w.Key, ConversationID: w.Conversation, SpentToday: w.SpentToday, LastActiveAt: w.Since}
	allowed := func(s sessions.Session) bool { return !lowBudgetSpent(o.views.Choices.Settings(s), s) && wanted(s) }
	if o.locks.busy(key) || !allowed(listed) {
		return out, nil
	}
	if err := o.slots.Acquire(ctx, 1); err != nil {
		return out, nil // the process stops
	}
	defer o.slots.Release(1)
	err = o.shared.Leases.Do(ctx, key, func(l sessions.Lease) (err error) {
		log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", l.Term).Logger()
		one, stop := context.WithTimeout(log.WithContext(ctx), o.shared.CompactDeadline)
		defer stop()
		out, err = o.flusher.ifDue(one, l, trigger, func(s sessions.Session) (int, bool) {
			return s.FlushEpoch, s.FlushedSeq < s.LastSeq && allowed(s)
		})
		return err
	})
	if errors.Is(err, sessions.ErrLeaseHeld) || errors.Is(err, sessions.ErrNotFound) {
		return out, nil
	}
	return out, err
}

// releaseAfter is the time without messages after which the lease of a flushed or owed session is released. Others
// are kept until the idle flush had its time: a stop flushes the sessions whose leases it holds.
const releaseAfter = 5 * time.Minute

func (o overdue) releaseIdle(ctx context.Context) error {
	n, err := o.shared.Leases.ReleaseIdle(ctx, releaseAfter, idleAfter+releaseAfter, func(key sessions.Key) bool {
		return o.turns.Busy(key) || o.maintenance.Busy(key) || o.locks.busy(key) || o.outbox.Holds(key)
	})
	if n > 0 {
		zerolog.Ctx(ctx).Debug().Int("leases", n).Msg("Idle leases released")
	}
	o.outbox.Forget(o.shared.Leases.Holds)
	return err
}
