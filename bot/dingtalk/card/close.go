package card

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ebb/bot/dingtalk/calls"
	"ebb/periodic"
	"ebb/retry"
	"ebb/sessions"
)

const (
	closeEvery = time.Second
	closeRetry = 5 * time.Second // to the next attempt on a card that could not be closed
	closeLimit = 20
)

// Task closes abandoned cards at intervals: those of deleted messages, of messages that were set aside, and of replies that
// took another way.
func (c *Cards) Task() periodic.Task {
	return periodic.Task{Interval: closeEvery, AtOnce: true, Timeout: closeRetry, Do: c.closeAbandoned, Failure: "Failed to close abandoned cards"}
}

// closePauses are the pauses after failures that would meet any card. Each attempt may cost a call of the month.
var closePauses = retry.Pauses{First: 5 * time.Minute, Max: time.Hour}

func (c *Cards) closeAbandoned(ctx context.Context) error {
	if resumed := c.closing.spent && c.cfg.Governor.Level() < calls.Spent; !resumed && time.Now().Before(c.closing.to) {
		return nil
	}
	list, err := c.cfg.Store.AbandonedCards(ctx, sessions.ReplyCard, closeRetry, closeLimit)
	if err != nil {
		return err
	}
	var failed error
	paused, spent := false, false
	for _, one := range list {
		err := c.closeCard(ctx, one)
		failed, paused, spent = errors.Join(failed, err), paused || pauseOf(err) > longestPause, spent || calls.IsRefused(err)
		if pauseOf(err) > longestPause && (one.Prepaid || !calls.IsRefused(err)) {
			break // the next call would be refused as well; a month without calls still permits the ends that are prepaid
		}
	}
	switch {
	case paused:
		c.closing.to = time.Now().Add(closePauses.After(c.closing.failures))
		c.closing.failures++
	case failed == nil:
		c.closing.failures = 0
	}
	c.closing.spent = spent
	return failed
}

// closeCard ends a card without a reply, and replaces its text: the reply came another way, or was deleted.
func (c *Cards) closeCard(ctx context.Context, one sessions.Card) error {
	_, id := one.Key.Conversation()
	u := Update{Track: one.Track, Key: c.cfg.Key, Text: closed(c.cfg.Language(id)), ID: frameID(one.Track, "closed"), State: Failed}
	if !one.Prepaid {
		var err error
		if u.Reserved, err = c.cfg.Governor.Reserve(ctx, calls.Finish, calls.CardStream); err != nil {
			return fmt.Errorf("close card %s: %w", one.Track, err)
		}
	}
	c.opened.Remove(one.Track)
	if err := c.cfg.API.StreamCard(ctx, u); err != nil && !isFinal(err) {
		if one.Prepaid {
			c.unpay(ctx, one.Key, one.Track)
		}
		return fmt.Errorf("close card %s: %w", one.Track, err)
	}
	c.settle(ctx, one.Key, one.Track, sessions.CardFailed) // a refused one does not exist, or has ended
	return nil
}
