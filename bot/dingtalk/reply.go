package dingtalk

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/card"
	"ebb/bot/dingtalk/markdown"
	"ebb/bot/dingtalk/request"
	"ebb/sessions"
)

var errTooMany = errors.New("too many messages to this conversation for now")

// sender delivers the parts of replies: on their cards, by webhooks, and by the open API.
type sender struct {
	pictures markdown.Pictures
	robots   robots
	limits   *limits
	cards    *card.Cards // nil without cards
	webhooks webhooks
	direct   direct

	onCard, byWebhook, byOpenAPI, failed, limited atomic.Int64
}

// send delivers the next part of a reply through the session webhook, or through the open API if that is unusable. A
// failure is a [*chat.SendError].
func (s *sender) send(ctx context.Context, o sessions.Outgoing) (chat.Sent, error) {
	parts := partsOf(s.pictures, o)
	if o.Reply.Target.File != nil {
		parts = make([]message, 1) // the address has all of it
	}
	if o.Part >= len(parts) {
		return chat.Sent{Part: o.Part}, nil
	}
	if o.Part == 0 && o.Reply.Target.Card != "" && s.cards != nil {
		more := len(parts) > 1
		var err error
		if s.robots.serves(o.Reply.Target.RobotCode) {
			err = s.cards.Finish(ctx, o, parts[0].onCard(), more)
		} else {
			err = s.cards.Leave(ctx, o)
		}
		if err == nil {
			s.onCard.Add(1)
			return chat.Sent{Via: chat.ViaCard, Card: sessions.CardFinished, Carrier: s.cards.Carrier(o.Reply.Target.Card), Part: 1, More: more}, nil
		}
		if !errors.Is(err, card.ErrUnusable) {
			s.failed.Add(1)
			return chat.Sent{}, request.AsSendError(err)
		}
		o.Reply.Target.Card = "" // as in its row from now on
		parts = partsOf(s.pictures, o)
	}
	uuid := ""
	if o.Reply.Nonce != "" {
		uuid = o.Reply.Nonce + "-" + strconv.Itoa(o.Part)
	}
	via, carrier, err := s.sendPart(ctx, o.Reply.Target, parts[o.Part], uuid)
	if err != nil {
		s.failed.Add(1)
		return chat.Sent{Part: o.Part}, err
	}
	arrived := o.Part + 1
	return chat.Sent{Via: via, Carrier: carrier, Part: arrived, More: arrived < len(parts)}, nil
}

// sendPart sends through the webhook and falls back to the open API only without a valid one: the API costs a call of the month and
// has no idempotency key.
func (s *sender) sendPart(ctx context.Context, to sessions.Target, m message, uuid string) (via, carrier string, _ error) {
	if wait := s.limits.takePlace(to.ConversationID); wait > 0 {
		s.limited.Add(1)
		return "", "", &chat.SendError{After: wait, Err: errTooMany}
	}
	err := s.webhooks.check(to)
	if err == nil {
		err = s.webhooks.send(ctx, to, m, uuid)
	}
	if err == nil {
		s.byWebhook.Add(1)
		s.limits.noteArrival(to.ConversationID)
		return chat.ViaWebhook, "", nil
	}
	if !errors.Is(err, errNoWebhook) {
		return "", "", err
	}
	carrier, apiErr := s.direct.send(ctx, to, m)
	if apiErr != nil {
		apiErr.Err = fmt.Errorf("%w, after: %w", apiErr.Err, err)
		return "", "", apiErr
	}
	s.byOpenAPI.Add(1)
	s.limits.noteArrival(to.ConversationID)
	return chat.ViaOpenAPI, carrier, nil
}
