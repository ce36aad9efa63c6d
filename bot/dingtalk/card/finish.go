package card

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/sessions"
)

// ErrUnusable says that a reply can't go on its card, and takes another way.
var ErrUnusable = errors.New("the card can't show the reply")

// After this number of attempts a reply takes another way. One that the card may show already would show twice. It is tried as long as an
// answer can wait: no attempt begins later than lastAttempt after the first, or takes longer than endTime, and all end within allTime.
const (
	maxAttempts = 3
	lastAttempt = 3 * time.Second
	endTime     = 2500 * time.Millisecond
	allTime     = 4500 * time.Millisecond
)

// soon is the pause before an attempt that takes another way.
const soon = time.Millisecond

// The end of a card waits this long for the rate of its API. After that the reply is claimed again, since its text
// may be erased meanwhile.
const longestWait = 250 * time.Millisecond

// Finish ends the card of a reply with its text, or with its beginning if more is set. The same text ends a card
// once. It returns ErrUnusable, or a [*chat.SendError] for another attempt.
func (c *Cards) Finish(ctx context.Context, o sessions.Outgoing, text string, more bool) error {
	track := o.Reply.Target.Card
	card := c.known(ctx, o)
	if d := c.cfg.Governor.Delay(calls.CardStream); d > longestWait {
		card.waits++
		card.since = time.Time{} // DingTalk answers
		c.opened.Add(track, card)
		return &chat.SendError{After: d, Err: errors.New("the rate of card updates is used up")}
	}
	if d := time.Until(card.busy); d > 0 {
		card.waits++
		c.opened.Add(track, card)
		return &chat.SendError{After: d, Err: errors.New("a call of an earlier display may still change the card")}
	}
	u := Update{Track: track, Key: c.textKey(track), Text: Final(text), State: Finished}
	u.ID = frameID(track, "end", u.Text)
	if card.since.IsZero() {
		card.since = time.Now()
		c.opened.Add(track, card)
	}
	attempt := o.Attempts - card.waits
	err := c.tryEnd(ctx, o, u, card, attempt)
	switch {
	case err == nil:
	case mayHaveArrived(err) && !o.Maybe: // The reply's row has to know it before the reply takes another way, which counts as a double.
		if failed, ok := errors.AsType[*chat.SendError](err); ok && failed.Silent {
			failed.After = soon
		}
		return err
	case isPermanent(err), isSilent(err), attempt >= maxAttempts && !o.Maybe, time.Since(card.since) > lastAttempt:
		zerolog.Ctx(ctx).Warn().Err(err).Int("attempt", attempt).Msg("Card can't show the reply, sending it as Markdown")
		return c.leave(ctx, o, errors.Is(err, ErrUnknown))
	default:
		return err
	}
	c.opened.Remove(track)
	if more {
		c.settle(ctx, o.Key, track, sessions.CardFinished)
	}
	if card.created {
		c.setButtons(ctx, o.Reply.Target, track)
	}
	return nil
}

// tryEnd makes no call if it would probably have no answer, or come too late: a webhook takes the reply in time.
func (c *Cards) tryEnd(ctx context.Context, o sessions.Outgoing, u Update, card openedCard, attempt int) error {
	var left error
	switch {
	case c.breaker.Silent(o.Reply.Target.ConversationID):
		left = &chat.SendError{Silent: true, Err: errors.New("DingTalk does not answer calls of cards")}
	case time.Since(card.since) > lastAttempt:
		left = &chat.SendError{Permanent: true, Err: errors.New("the end of the card failed for too long")}
	default:
		u.Within = min(endTime, allTime-time.Since(card.since))
		return c.end(ctx, o, u, card, attempt)
	}
	return neverCreated(!card.created && !card.byReply && !o.Maybe, left)
}

// After another process the card's row decides. That process may not have begun the first attempt.
func (c *Cards) known(ctx context.Context, o sessions.Outgoing) openedCard {
	track := o.Reply.Target.Card
	card, ok := c.opened.Get(track)
	if ok && (o.Attempts <= 1 || !card.prepaid) {
		return card
	}
	one, stop := context.WithTimeout(ctx, storeTime)
	defer stop()
	row, err := c.cfg.Store.OpenCardOf(one, o.Key, []string{track}, nil)
	if ok {
		if err == nil {
			card.spendAs(row)
		}
		return card
	}
	card.key, card.busy = row.TextKey, time.Now().Add(row.Busy)
	if err != nil || !row.Prepaid {
		card.created = err != nil && !errors.Is(err, sessions.ErrNotFound) // DingTalk knows whether it exists
		return card
	}
	card.created, card.prepaid = true, true
	if o.Maybe { // The call may have been made: this one is another, which the month may not permit.
		card.reserved, _ = c.cfg.Governor.Reserve(one, calls.Finish, calls.CardStream)
	}
	return card
}

// Leave gives up the card of a reply whose robot is not configured any more. It returns [ErrUnusable] if the reply can take another way.
func (c *Cards) Leave(ctx context.Context, o sessions.Outgoing) error { return c.leave(ctx, o, false) }

// leave gives up the card of a reply, which takes another way: a later attempt on the card would show it twice. If
// the card is known to DingTalk, it is closed in the background.
func (c *Cards) leave(ctx context.Context, o sessions.Outgoing, unknown bool) error {
	track := o.Reply.Target.Card
	if unknown {
		c.settle(ctx, o.Key, track, sessions.CardFailed)
	}
	one, stop := context.WithTimeout(context.WithoutCancel(ctx), storeTime) // the attempt's time may be over
	defer stop()
	if err := c.cfg.Store.LeaveCard(one, o); err != nil {
		return err
	}
	c.opened.Remove(track)
	return ErrUnusable
}

// The first attempt on a card that was not streamed creates it. A later one may find that card.
func (c *Cards) end(ctx context.Context, o sessions.Outgoing, u Update, card openedCard, attempt int) error {
	create := !card.created && !card.byReply && attempt <= 1
	if create && c.cfg.Template == "" { // cards were switched off
		return neverCreated(true, &chat.SendError{Permanent: true, Err: ErrTemplate})
	}
	apis, need := []calls.API{calls.CardStream}, calls.Finish
	if create {
		apis, need = []calls.API{calls.CardCreate, calls.CardStream}, calls.Card
	}
	if u.Reserved = card.reserved; !card.prepaid {
		var err error
		if u.Reserved, err = c.cfg.Governor.Reserve(ctx, need, apis...); err != nil {
			return neverCreated(create, err)
		}
	}
	if create {
		if err := c.deliver(ctx, o, card, u); err != nil {
			return neverCreated(isPermanent(err), err)
		}
		card.byReply = true
		return c.endPrepaid(ctx, o, u, card)
	}
	err := c.endPrepaid(ctx, o, u, card)
	if !errors.Is(err, ErrUnknown) || c.cfg.Template == "" {
		return err
	}
	missing := err
	if u.Reserved, err = c.cfg.Governor.Reserve(ctx, calls.Card, calls.CardCreate, calls.CardStream); err != nil {
		return errors.Join(missing, err)
	}
	if err := c.deliver(ctx, o, card, u); err != nil {
		return err
	}
	card.byReply = true
	return c.endPrepaid(ctx, o, u, card)
}

// The next attempt needs another counted call.
func (c *Cards) endPrepaid(ctx context.Context, o sessions.Outgoing, u Update, card openedCard) error {
	card.prepaid, card.reserved = false, calls.Reservation{}
	c.opened.Add(u.Track, card)
	err := c.update(ctx, o.Reply.Target.ConversationID, u)
	if err != nil {
		c.unpay(ctx, o.Key, u.Track)
	}
	return err
}

func (c *Cards) unpay(ctx context.Context, key sessions.Key, track string) {
	if err := c.setPrepaid(ctx, key, track, false); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed end of a card not stored")
	}
}

func neverCreated(certain bool, err error) error {
	if certain {
		return errors.Join(ErrUnknown, err)
	}
	return err
}

// The row says that the end is prepaid before the card is created, and after a certain failure that it is not.
func (c *Cards) deliver(ctx context.Context, o sessions.Outgoing, card openedCard, u Update) error {
	track, reserved := u.Track, u.Reserved
	if err := c.setPrepaid(ctx, o.Key, track, true); err != nil {
		c.giveBack(ctx, reserved, calls.CardCreate) // the row may be written
		return err
	}
	err := c.create(ctx, o.Reply.Target, New{
		Track: track, Variables: buttons(o.Reply.Target, c.cfg.Key, ""), Within: u.Within, Reserved: reserved,
	})
	switch {
	case err == nil:
	case mayHaveArrived(err):
		card.prepaid, card.reserved = true, reserved
		c.opened.Add(track, card)
	default:
		c.unpay(ctx, o.Key, track)
		c.giveBack(ctx, reserved, calls.CardStream)
	}
	return err
}

const buttonsTime = 2 * time.Second

// setButtons replaces the stop button by those of a rating or an approval, if calls are left for it.
func (c *Cards) setButtons(ctx context.Context, of sessions.Target, track string) {
	ctx, stop := context.WithTimeout(ctx, buttonsTime)
	defer stop()
	v := Variables{Track: track, Values: buttons(of, varFlow, flowDone)}
	var err error
	if v.Reserved, err = c.cfg.Governor.Reserve(ctx, calls.Frame, calls.CardUpdate); err == nil {
		err = guarded(ctx, func() error { return c.cfg.API.SetCard(ctx, v) })
		c.note(ctx, of.ConversationID, err, false)
	}
	if err != nil && !calls.IsRefused(err) {
		zerolog.Ctx(ctx).Debug().Err(err).Msg("Buttons of a finished card not set")
	}
}
