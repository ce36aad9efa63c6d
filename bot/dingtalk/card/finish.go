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

// Variables of a template besides its text. deploy/dingtalk-card describes them.
const (
	varStop     = "stop"     // "true": the button that stops the turn is shown
	varFeedback = "feedback" // "true": the buttons of a rating are shown
	varFlow     = "flowStatus"
	VarNotice   = "notice" // shown to the person who clicked
	yes, no     = "true", "false"
	flowDone    = "3"
	flowFailed  = "5"
)

// Hide returns the variables that hide the buttons of an action's kind.
func Hide(action string) map[string]string {
	if action == "stop" {
		return map[string]string{varStop: no}
	}
	return map[string]string{varFeedback: no}
}

// ErrUnusable says that a reply can't go on its card, and takes another way.
var ErrUnusable = errors.New("the card can't show the reply")

// The numbers of attempts after which a reply takes another way. The first are made in about four seconds. A reply that the
// card may show already is tried longer, because the other way would show it twice.
const (
	maxAttempts  = 3
	maxUncertain = 8
)

// longestWait is the time that the end of a card waits for the rate of its API. A reply that waits longer is claimed again,
// because its text may be erased meanwhile.
const longestWait = 250 * time.Millisecond

// Finish ends the card of a reply with its text: the beginning of the reply, if more is set. The same text ends a card
// once, however often it is called. Its error is ErrUnusable, or a [*chat.SendError] for another attempt.
func (c *Cards) Finish(ctx context.Context, o sessions.Outgoing, text string, more bool) error {
	track := o.Reply.Target.Card
	card, _ := c.opened.Peek(track)
	if d := c.cfg.Governor.Delay(calls.CardStream); d > longestWait {
		card.waits++
		c.opened.Add(track, card)
		return &chat.SendError{After: d, Err: errors.New("the rate of card updates is used up")}
	}
	u := Update{Track: track, Key: c.cfg.Key, Text: Final(text), State: Finished}
	u.ID = frameID(track, "end", u.Text)
	attempt := o.Attempts - card.waits
	err := c.end(ctx, o, u, card, attempt)
	switch {
	case err == nil:
	case isPermanent(err), attempt >= maxAttempts && !o.Maybe && !mayHaveArrived(err), attempt >= maxUncertain:
		zerolog.Ctx(ctx).Warn().Err(err).Int("attempt", attempt).Msg("Card can't show the reply, sending it as Markdown")
		c.pauseFor(ctx, err)
		return c.leave(ctx, o, errors.Is(err, ErrUnknown))
	default:
		return err
	}
	c.opened.Remove(track)
	if more {
		c.settle(ctx, o.Key, track, sessions.CardFinished)
	}
	if card.created {
		c.setButtons(ctx, track)
	}
	return nil
}

// leave gives up the card of a reply, which takes another way from then on: a later attempt on the card would show the
// reply twice. unknown: there is no such card. Otherwise it is closed in the background.
func (c *Cards) leave(ctx context.Context, o sessions.Outgoing, unknown bool) error {
	track := o.Reply.Target.Card
	if unknown {
		c.settle(ctx, o.Key, track, sessions.CardFailed)
	}
	one, stop := context.WithTimeout(ctx, storeTime)
	defer stop()
	if err := c.cfg.Store.LeaveCard(one, o); err != nil {
		return err
	}
	c.opened.Remove(track)
	return ErrUnusable
}

// end makes the calls that end a card. The first attempt on a card that was not streamed creates it. A later one may
// find the card of an earlier one.
func (c *Cards) end(ctx context.Context, o sessions.Outgoing, u Update, card openedCard, attempt int) error {
	create := !card.created && attempt <= 1
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
	if card.prepaid {
		c.opened.Add(o.Reply.Target.Card, openedCard{created: true, waits: card.waits})
	}
	if create {
		if err := c.deliver(ctx, o, u.Reserved); err != nil {
			c.giveBack(ctx, u.Reserved, calls.CardStream)
			return neverCreated(isPermanent(err), err)
		}
	}
	err := c.cfg.API.StreamCard(ctx, u)
	if !errors.Is(err, ErrUnknown) || create {
		return err
	}
	missing := err
	if u.Reserved, err = c.cfg.Governor.Reserve(ctx, calls.Card, calls.CardCreate, calls.CardStream); err != nil {
		return errors.Join(missing, err)
	}
	if err := c.deliver(ctx, o, u.Reserved); err != nil {
		c.giveBack(ctx, u.Reserved, calls.CardStream)
		return err
	}
	return c.cfg.API.StreamCard(ctx, u)
}

// neverCreated marks an error after which the reply's card does not exist.
func neverCreated(certain bool, err error) error {
	if certain {
		return errors.Join(ErrUnknown, err)
	}
	return err
}

// deliver creates the card of a reply.
func (c *Cards) deliver(ctx context.Context, o sessions.Outgoing, reserved calls.Reservation) error {
	err := c.create(ctx, o.Reply.Target, o.Reply.Target.Card, map[string]string{c.cfg.Key: "", varStop: no, varFeedback: yes}, reserved)
	if isPermanent(err) && !calls.IsRefused(err) {
		c.pause(ctx, err)
	}
	return err
}

// buttonsTime bounds the call that sets the buttons of a finished card.
const buttonsTime = 2 * time.Second

// setButtons replaces the buttons of a running turn by those of a rating, while there are calls for it.
func (c *Cards) setButtons(ctx context.Context, track string) {
	ctx, stop := context.WithTimeout(ctx, buttonsTime)
	defer stop()
	v := Variables{Track: track, Values: map[string]string{varStop: no, varFeedback: yes, varFlow: flowDone}}
	var err error
	if v.Reserved, err = c.cfg.Governor.Reserve(ctx, calls.Frame, calls.CardUpdate); err == nil {
		err = c.cfg.API.SetCard(ctx, v)
	}
	if err != nil && !calls.IsRefused(err) {
		zerolog.Ctx(ctx).Debug().Err(err).Msg("Buttons of a finished card not set")
	}
}
