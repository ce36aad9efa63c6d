package reaction

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/dingtalk/calls"
	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sessions/periodic"
	"ebb/sessions/retry"
)

const (
	removeEvery = time.Second
	rarely      = 10 * time.Second // for a process that sets none
	claimTime   = 5 * time.Second  // until a claimed mark may be claimed again
	claimLimit  = 6                // groups of claims
	atOnce      = 8                // removals of a group
	maxRemovals = 12
)

// maxRemovals attempts with these pauses take about an hour.
var removePauses = retry.Pauses{First: claimTime - removeEvery, Max: 10 * time.Minute}

// An operator may resume the month's calls.
const spentPause = 15 * time.Second

// sets says that this process sets marks.
func (r *Reactions) Task(sets bool) periodic.Task {
	interval := rarely
	if sets {
		interval = removeEvery
	}
	return periodic.Task{Interval: interval, AtOnce: true, Timeout: claimTime, Do: r.removeAnswered, Failure: "Failed to remove reactions"}
}

// removeAnswered claims marks of all sessions in small lots. It ends at once while DingTalk is down: claimed marks would only wait.
func (r *Reactions) removeAnswered(ctx context.Context) error {
	for range claimLimit {
		if r.breaker.Down() {
			return nil
		}
		list, err := r.cfg.Store.AbandonedCards(ctx, sessions.ReactionCard, claimTime, atOnce)
		if err != nil {
			return err
		}
		var all sync.WaitGroup
		for _, one := range list {
			all.Go(func() {
				guard.Run(ctx, guard.Reaction, func() { r.remove(ctx, one) })
			})
		}
		all.Wait()
		if len(list) < atOnce || ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// A mark that DingTalk refuses to remove is given up.
func (r *Reactions) remove(ctx context.Context, one sessions.Card) {
	id := sessions.MessageID(one.Track)
	of := zerolog.Ctx(ctx).With().EmbedObject(one.Key).Logger()
	ctx = of.WithContext(ctx)
	log := of.With().Str("msg_id", one.Track).Int("attempt", one.Tries).Logger()
	m := r.mark(one.Key, id)
	if !r.breaker.MayTry(m.Conversation) {
		r.postpone(ctx, one, spentPause, false)
		return
	}
	var err error
	if m.Reserved, err = r.cfg.Governor.ReserveEnd(ctx, one, calls.ReactionRecall); err != nil {
		log.Debug().Err(err).Msg("Call that removes a reaction not reserved")
		r.postpone(ctx, one, spentPause, false)
		return
	}
	err = guarded(ctx, func() error { return r.cfg.API.RemoveReaction(ctx, m) })
	r.note(ctx, m.Conversation, err, false)
	switch {
	case err == nil:
		r.settle(ctx, one.Key, id, sessions.CardFinished)
	case calls.IsRefused(err): // perhaps for weeks: the mark is not given up
		log.Debug().Err(err).Msg("Reaction not removed, DingTalk refuses the month's calls")
		r.postpone(ctx, one, spentPause, true)
	case isPermanent(err): // it is gone
		log.Warn().Err(err).Msg("Reaction not removed")
		r.settle(ctx, one.Key, id, sessions.CardFailed)
	case one.Tries >= maxRemovals:
		log.Warn().Err(err).Msg("Reaction given up: it stays on its message")
		r.settle(ctx, one.Key, id, sessions.CardGivenUp)
	default:
		log.Debug().Err(err).Msg("Reaction not removed, trying again")
		r.postpone(ctx, one, removePauses.After(one.Tries-1), true)
	}
}

// Without the stored pause the next attempt comes when the claim ends.
func (r *Reactions) postpone(ctx context.Context, one sessions.Card, pause time.Duration, made bool) {
	stored, stop := context.WithTimeout(context.WithoutCancel(ctx), setTime)
	defer stop()
	if err := r.cfg.Store.PostponeCard(stored, one, pause, made); err != nil {
		zerolog.Ctx(ctx).Debug().Err(err).Msg("Failed removal of a reaction not stored")
	}
}
