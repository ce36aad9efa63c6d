package dingtalk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/card"
	"ebb/sessions"
)

var (
	errTooMany   = errors.New("too many messages to this conversation for now")
	errNoWebhook = errors.New("no usable session webhook")
)

// Send delivers the next part of a reply through the session webhook, or through the open API if that is unusable. A
// failure is a [*chat.SendError].
func (t *Transport) Send(ctx context.Context, o sessions.Outgoing) (chat.Sent, error) {
	parts := t.config.partsOf(o)
	if o.Reply.Target.File != nil {
		parts = make([]message, 1) // the address has all of it
	}
	if o.Part >= len(parts) {
		return chat.Sent{Part: o.Part}, nil
	}
	if o.Part == 0 && o.Reply.Target.Card != "" && t.cards != nil {
		more := len(parts) > 1
		var err error
		if t.config.serves(o.Reply.Target.RobotCode) {
			err = t.cards.Finish(ctx, o, parts[0].onCard(), more)
		} else {
			err = t.cards.Leave(ctx, o)
		}
		if err == nil {
			t.counters.card.Add(1)
			return chat.Sent{Via: chat.ViaCard, Card: sessions.CardFinished, Carrier: t.cards.Carrier(o.Reply.Target.Card), Part: 1, More: more}, nil
		}
		if !errors.Is(err, card.ErrUnusable) {
			t.counters.failed.Add(1)
			return chat.Sent{}, asSendError(err)
		}
		o.Reply.Target.Card = "" // as in its row from now on
		parts = t.config.partsOf(o)
	}
	uuid := ""
	if o.Reply.Nonce != "" {
		uuid = o.Reply.Nonce + "-" + strconv.Itoa(o.Part)
	}
	via, carrier, err := t.sendPart(ctx, o.Reply.Target, parts[o.Part], uuid)
	if err != nil {
		t.counters.failed.Add(1)
		return chat.Sent{Part: o.Part}, err
	}
	arrived := o.Part + 1
	return chat.Sent{Via: via, Carrier: carrier, Part: arrived, More: arrived < len(parts)}, nil
}

// sendPart sends through the webhook and falls back to the open API only without a valid one: the API costs a call of the month and
// has no idempotency key.
func (t *Transport) sendPart(ctx context.Context, to sessions.Target, m message, uuid string) (via, carrier string, _ error) {
	if wait := t.limits.takePlace(to.ConversationID); wait > 0 {
		t.counters.limited.Add(1)
		return "", "", &chat.SendError{After: wait, Err: errTooMany}
	}
	err := t.checkWebhook(to)
	if err == nil {
		err = t.sendWebhook(ctx, to, m, uuid)
	}
	if err == nil {
		t.counters.webhook.Add(1)
		t.limits.noteArrival(to.ConversationID)
		return chat.ViaWebhook, "", nil
	}
	if !errors.Is(err, errNoWebhook) {
		return "", "", err
	}
	carrier, apiErr := t.sendOpenAPI(ctx, to, m)
	if apiErr != nil {
		apiErr.Err = fmt.Errorf("%w, after: %w", apiErr.Err, err)
		return "", "", apiErr
	}
	t.counters.openAPI.Add(1)
	t.limits.noteArrival(to.ConversationID)
	return chat.ViaOpenAPI, carrier, nil
}

// Messages bring the addresses of webhooks, so only DingTalk's own host is accepted.
func (t *Transport) checkWebhook(to sessions.Target) error {
	if to.File != nil {
		return fmt.Errorf("%w: it takes no files", errNoWebhook)
	}
	if to.Webhook == "" {
		return fmt.Errorf("%w: none given", errNoWebhook)
	}
	u, err := url.Parse(to.Webhook)
	if err != nil || u.User != nil || !sameOrigin(u, t.oapi) {
		return fmt.Errorf("%w: not on DingTalk's host", errNoWebhook)
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

type webhookBody struct {
	MsgType  string       `json:"msgtype"`
	Markdown markdownBody `json:"markdown"`
	At       *atBody      `json:"at,omitempty"`
	MsgUUID  string       `json:"msgUuid,omitempty"`
}

type markdownBody struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

type atBody struct {
	UserIDs []string `json:"atUserIds"`
	All     bool     `json:"isAtAll"` // always false
}

// sendWebhook returns a *chat.SendError, or errNoWebhook for the open API to try.
func (t *Transport) sendWebhook(ctx context.Context, to sessions.Target, m message, uuid string) error {
	body := webhookBody{MsgType: "markdown", Markdown: markdownBody{m.title, m.withMentions()}, MsgUUID: uuid}
	if len(m.ids) > 0 {
		body.At = &atBody{UserIDs: m.ids}
	}
	a, err := t.post(ctx, to.Webhook, nil, body)
	if err != nil {
		return lostOnTheWay("posting to the session webhook", err)
	}
	switch {
	case a.status >= 500 || mayHaveArrived(a.status):
		return &chat.SendError{Maybe: mayHaveArrived(a.status), Err: fmt.Errorf("posting to the session webhook: status %d", a.status)}
	case a.status == http.StatusTooManyRequests:
		return t.tooMany(to, fmt.Errorf("posting to the session webhook: status %d", a.status))
	case a.status != http.StatusOK:
		// A redirect is not followed, and a refused address is not retried.
		return fmt.Errorf("%w: status %d", errNoWebhook, a.status)
	case !a.intact:
		return &chat.SendError{Maybe: true, Err: errors.New("posting to the session webhook: the answer broke off")}
	}
	return t.judgeWebhook(to, a)
}

// Proxies answer 408, 499, 502 or 504 when an answer is lost, and servers may fail after sending. 503 precedes any
// work.
func mayHaveArrived(status int) bool {
	return status >= 500 && status != http.StatusServiceUnavailable || status == http.StatusRequestTimeout || status == statusClientClosed
}

const statusClientClosed = 499

func lostOnTheWay(doing string, err error) *chat.SendError {
	return &chat.SendError{Maybe: !errors.Is(err, errUnsent), Silent: isSilence(err), Err: fmt.Errorf("%s: %w", doing, err)}
}

// isSilence reports whether the time for a call ended without an answer. The end of its caller is none.
func isSilence(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// Calls besides messages name no conversation, and pause none.
func (t *Transport) tooMany(to sessions.Target, err error) *chat.SendError {
	t.counters.limited.Add(1)
	if to.ConversationID == "" {
		return &chat.SendError{After: firstSilence, Err: err}
	}
	return &chat.SendError{After: t.limits.noteRefusal(to.ConversationID), Err: err}
}

func asSendError(err error) *chat.SendError {
	if failed, ok := errors.AsType[*chat.SendError](err); ok {
		return failed
	}
	return &chat.SendError{Err: err} // the database did not count the call
}
