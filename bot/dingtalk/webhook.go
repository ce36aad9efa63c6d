package dingtalk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/request"
	"ebb/sessions"
)

var errNoWebhook = errors.New("no usable session webhook")

// webhooks send messages to the session webhooks of messages.
type webhooks struct {
	host     *url.URL // others are refused
	requests *request.Client
	judge    *request.Judge
}

// Messages bring the addresses of webhooks, so only DingTalk's own host is accepted.
func (w webhooks) check(to sessions.Target) error {
	if to.File != nil {
		return fmt.Errorf("%w: it takes no files", errNoWebhook)
	}
	if to.Webhook == "" {
		return fmt.Errorf("%w: none given", errNoWebhook)
	}
	u, err := url.Parse(to.Webhook)
	if err != nil || u.User != nil || !sameOrigin(u, w.host) {
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

type atBody struct {
	UserIDs []string `json:"atUserIds"`
	All     bool     `json:"isAtAll"` // always false
}

// send returns a *chat.SendError, or errNoWebhook for the open API to try.
func (w webhooks) send(ctx context.Context, to sessions.Target, m message, uuid string) error {
	body := webhookBody{MsgType: "markdown", Markdown: markdownBody{m.title, m.withMentions()}, MsgUUID: uuid}
	if len(m.ids) > 0 {
		body.At = &atBody{UserIDs: m.ids}
	}
	a, err := w.requests.Post(ctx, to.Webhook, nil, body)
	if err != nil {
		return request.Lost("posting to the session webhook", err)
	}
	switch {
	case a.Status >= 500 || request.MayHaveArrived(a.Status):
		return &chat.SendError{Maybe: request.MayHaveArrived(a.Status), Err: fmt.Errorf("posting to the session webhook: status %d", a.Status)}
	case a.Status == http.StatusTooManyRequests:
		return w.judge.TooMany(to, fmt.Errorf("posting to the session webhook: status %d", a.Status))
	case a.Status != http.StatusOK:
		// A redirect is not followed, and a refused address is not retried.
		return fmt.Errorf("%w: status %d", errNoWebhook, a.Status)
	case !a.Intact:
		return &chat.SendError{Maybe: true, Err: errors.New("posting to the session webhook: the answer broke off")}
	}
	return w.judgeAnswer(to, a)
}

// judgeAnswer reads the errcode at any HTTP status.
func (w webhooks) judgeAnswer(to sessions.Target, a request.Answer) error {
	code := a.Body.Str("errcode")
	if code == "0" {
		return nil
	}
	if c := a.Class(); code == "" && (c == request.Again || c == request.Unknown) {
		return &chat.SendError{Maybe: true, Err: errors.New("posting to the session webhook: the answer has no errcode")}
	}
	if a.Class() == request.Expired {
		return fmt.Errorf("%w: errcode %s", errNoWebhook, code)
	}
	return w.judge.SendError(to, a, fmt.Errorf("posting to the session webhook: errcode %s", a.Code()))
}
