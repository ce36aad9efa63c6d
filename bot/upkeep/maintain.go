package upkeep

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"ebb/bot/view"
	"ebb/compaction"
	"ebb/sessions"
)

// backgroundNeed is the work on a view of this many tokens while no answer waits.
func (u *Worker) backgroundNeed(v sessions.View, tokens int) compaction.Need {
	if set := u.views.Choices.Settings(v.Session); !set.Enabled || view.Spent(set, v.Session) {
		return compaction.Need{}
	}
	need := u.views.Sizes.Decide(v, tokens)
	if need.Forced && u.shared.Now().Before(v.Session.CompactRetryAt) {
		need.Compact, need.Trigger = false, "" // retried once a turn, by the next turn
	}
	return need
}

// Due implements turn.Upkeep.
func (u *Worker) Due(v sessions.View, tokens int) bool {
	need := u.backgroundNeed(v, tokens)
	return need.Flush || need.Compact || u.compactor.rewriteDue(v) || u.accuser.due(v)
}

// maxSessionRounds limits a session's compactions in a row: others wait.
const maxSessionRounds = 5

// Maintain is steps 10 and 11 of a message's path: it flushes and compacts one session after its reply was sent. more
// reports whether work is left. Failures are logged and retried later.
func (u *Worker) Maintain(ctx context.Context, key sessions.Key) (more bool, err error) {
	if err := u.slots.Acquire(ctx, 1); err != nil {
		return false, nil
	}
	defer u.slots.Release(1)
	more = true
	for rounds := 0; more && rounds < maxSessionRounds; rounds++ {
		began := false
		err = u.shared.Leases.Do(ctx, key, func(l sessions.Lease) (err error) {
			began = true
			log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", l.Term).Logger()
			more, err = u.maintainOnce(log.WithContext(ctx), l)
			return err
		})
		switch {
		case err != nil && !began:
			return false, err
		case err != nil:
			zerolog.Ctx(ctx).Warn().EmbedObject(key).Err(err).Msg("Upkeep did not finish")
			return false, nil
		}
	}
	return more, nil
}

func (u *Worker) maintainOnce(ctx context.Context, l sessions.Lease) (again bool, err error) {
	ctx, stop := attemptContext(ctx, u.shared.CompactDeadline)
	defer stop()
	v, err := u.stores.Turns.Begin(ctx, l, 0)
	if err != nil {
		return false, fmt.Errorf("read session: %w", err)
	}
	u.views.Show(&v)
	if u.accuser.due(v) {
		if err = u.accuser.settle(ctx, l); err == nil {
			return true, nil
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Search for what the provider refuses did not finish")
		u.idle.rest(v.Session, u.shared.Now()) // other work goes on
	}
	switch need := u.backgroundNeed(v, u.views.Sizes.ContextSize(v)); {
	case u.compactor.rewriteDue(v):
		return true, u.compactor.rewrite(ctx, l)
	case need.Compact:
		done, err := u.Compact(ctx, l, nil, 0, func(v sessions.View) sessions.Trigger {
			return u.backgroundNeed(v, u.views.Sizes.ContextSize(v)).Trigger
		})
		switch {
		case err != nil && !NothingToCompact(err):
			return false, err
		case done.Outcome == sessions.CompactionCommitted && done.EndSeq >= done.StartSeq:
			return true, nil
		case need.Flush: // nothing left the view but tool results: the flush is still due
			_, err = u.flusher.cycle(ctx, l)
			return false, err
		}
		return false, nil
	case need.Flush:
		_, err = u.flusher.cycle(ctx, l)
	case u.FactsDue(v.Session):
		_, err = u.FlushAll(ctx, l, u.flusher.factsTrigger())
	default:
		u.idle.add(v.Session, u.views.Choices.Settings(v.Session), u.shared.Now())
	}
	return false, err
}
