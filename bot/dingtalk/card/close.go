package card

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/dingtalk/calls"
	"ebb/sessions"
	"ebb/sessions/periodic"
	"ebb/sessions/retry"
)

const (
	closeEvery = time.Second
	rarely     = 5 * time.Second
	closeLimit = 20
	maxCloses  = 12

	// closeHold bounds the attempts of one look. A claimed card comes back after it.
	closeHold = 5 * time.Second
)

// Each attempt on one card costs a call: maxCloses of them take about two hours with closePauses. spentPause is that
// of a card whose call the month does not permit: an operator may resume calls. faultPauses hold for all cards, after
// a failure that would meet any of them.
var (
	closePauses = retry.Pauses{First: closeHold, Max: 30 * time.Minute}
	spentPause  = 15 * time.Second
	faultPauses = retry.Pauses{First: 5 * time.Minute, Max: time.Hour}
)

// Task closes abandoned cards: of messages deleted or set aside, and of replies that took another way. Which cards are open depends on
// their rows, and on no setting. opens says that this process opens cards.
func (c *Cards) Task(opens bool) periodic.Task {
	interval := rarely
	if opens {
		interval = closeEvery
	}
	return periodic.Task{Interval: interval, AtOnce: true, Timeout: closeHold, Do: c.closeAbandoned, Failure: "Failed to close abandoned cards"}
}

// A claim counts as an attempt, so each card is claimed right before it.
func (c *Cards) closeAbandoned(ctx context.Context) error {
	if resumed := c.closing.spent && c.cfg.Governor.Level() < calls.Spent; !resumed && time.Now().Before(c.closing.to) || c.breaker.Down() {
		return nil
	}
	var failed error
	for range closeLimit {
		list, err := c.cfg.Store.AbandonedCards(ctx, sessions.ReplyCard, closeHold, 1)
		if err != nil || len(list) == 0 {
			return errors.Join(failed, err)
		}
		err = c.closeCard(ctx, list[0])
		switch {
		case err == nil:
			c.closing.failures = 0
		case calls.IsRefused(err): // the governor reports a month without calls once
			zerolog.Ctx(ctx).Debug().Err(err).Msg("Card not closed, the month permits no call")
		default:
			failed = errors.Join(failed, err)
		}
		if c.isEverybodys(err) || calls.IsRefused(err) && list[0].Prepaid {
			// The next call would be refused as well. A month without calls still permits prepaid ends.
			c.closing.to, c.closing.spent = time.Now().Add(faultPauses.After(c.closing.failures)), calls.IsRefused(err)
			c.closing.failures++
			return failed
		}
	}
	return failed
}

// A card that DingTalk does not end is given up after some attempts, unless the refusal would meet any card: it may
// last for weeks.
func (c *Cards) closeCard(ctx context.Context, one sessions.Card) error {
	log := zerolog.Ctx(ctx).With().EmbedObject(one.Key).Logger()
	ctx = log.WithContext(ctx)
	_, id := one.Key.Conversation()
	if !c.breaker.MayTry(id) {
		c.postpone(ctx, one, spentPause, false)
		return nil
	}
	u := Update{Track: one.Track, Key: cmp.Or(one.TextKey, c.cfg.Key), Text: closed(c.cfg.Language(id)), ID: frameID(one.Track, "closed"), State: Failed}
	var err error
	if u.Reserved, err = c.cfg.Governor.ReserveEnd(ctx, one, calls.CardStream); err != nil {
		c.postpone(ctx, one, spentPause, false)
		return fmt.Errorf("close card %s: %w", one.Track, err)
	}
	c.opened.Remove(one.Track)
	err = c.update(ctx, id, u)
	early := errors.Is(err, ErrUnknown) && one.Tries == 1 // a process that lost the session may still deliver it
	switch {
	case err == nil, isFinal(err) && !early: // a refused one does not exist, or has ended
		c.settle(ctx, one.Key, one.Track, sessions.CardFailed)
		return nil
	case one.Tries >= maxCloses && pauseOf(err) <= longestPause:
		zerolog.Ctx(ctx).Warn().Err(err).Str("card", one.Track).Int("attempt", one.Tries).Msg("Card given up: it may look unfinished")
		c.settle(ctx, one.Key, one.Track, sessions.CardGivenUp)
		return nil
	}
	pause := max(closePauses.After(one.Tries-1), pauseOf(err))
	if calls.IsRefused(err) {
		pause = spentPause
	}
	c.postpone(ctx, one, pause, true)
	return fmt.Errorf("close card %s: %w", one.Track, err)
}

// Without the stored pause the next attempt comes when the claim ends.
func (c *Cards) postpone(ctx context.Context, one sessions.Card, pause time.Duration, made bool) {
	stored, stop := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer stop()
	if err := c.cfg.Store.PostponeCard(stored, one, pause, made); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed end of a card not stored")
	}
}
