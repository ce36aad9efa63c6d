package reaction

import (
	"context"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ebb/bot/dingtalk/calls"
	"ebb/periodic"
	"ebb/retry"
	"ebb/sessions"
)

const (
	removeEvery = time.Second
	rarely      = 10 * time.Second // for a process that sets none
	claimTime   = 5 * time.Second  // until a claimed mark may be claimed again
	claimLimit  = 50
	atOnce      = 8 // concurrent removals
	maxRemovals = 12
)

// removePauses are the pauses between attempts to remove one mark: maxRemovals of them take about an hour.
var removePauses = retry.Pauses{First: claimTime - removeEvery, Max: 10 * time.Minute}

// Task removes the marks of messages that wait no more. sets says that this process sets marks.
func (r *Reactions) Task(sets bool) periodic.Task {
	interval := rarely
	if sets {
		interval = removeEvery
	}
	return periodic.Task{Interval: interval, AtOnce: true, Timeout: claimTime, Do: r.removeAnswered, Failure: "Failed to remove reactions"}
}

func (r *Reactions) removeAnswered(ctx context.Context) error {
	list, err := r.cfg.Store.AbandonedCards(ctx, sessions.ReactionCard, claimTime, claimLimit)
	if err != nil {
		return err
	}
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, one := range list {
		all.Go(func() error { r.remove(ctx, one); return nil })
	}
	return all.Wait()
}

// remove removes one mark. A mark that DingTalk refuses to remove is given up.
func (r *Reactions) remove(ctx context.Context, one sessions.Card) {
	id := sessions.MessageID(one.Track)
	before, _ := r.failing.Get(id)
	resumed := before.spent && r.cfg.Governor.Level() < calls.Spent
	if time.Now().Before(before.next) && !one.Prepaid && !resumed {
		return
	}
	m := r.mark(one.Key, id)
	var err error
	if !one.Prepaid {
		m.Reserved, err = r.cfg.Governor.Reserve(ctx, calls.Finish, calls.ReactionRecall)
	}
	if err == nil {
		err = r.cfg.API.RemoveReaction(ctx, m)
	}
	if err == nil {
		r.failing.Remove(id)
		r.settle(ctx, one.Key, id, sessions.CardFinished)
		return
	}
	if one.Prepaid {
		r.unpay(ctx, one.Key, id)
	}
	before.tries++
	log := zerolog.Ctx(ctx).With().Err(err).Str("msg_id", one.Track).Int("attempt", before.tries).Logger()
	if isPermanent(err) && !calls.IsRefused(err) || before.tries == maxRemovals {
		r.failing.Remove(id)
		r.settle(ctx, one.Key, id, sessions.CardFailed)
		log.Warn().Msg("Reaction not removed")
		return
	}
	before.next, before.spent = time.Now().Add(removePauses.After(before.tries-1)), calls.IsRefused(err)
	r.failing.Add(id, before)
	log.Debug().Msg("Reaction not removed, trying again")
}
