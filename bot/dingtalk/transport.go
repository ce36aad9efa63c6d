package dingtalk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/card"
	"ebb/bot/dingtalk/files"
	"ebb/bot/dingtalk/markdown"
	"ebb/bot/dingtalk/openapi"
	"ebb/bot/dingtalk/reaction"
	"ebb/bot/dingtalk/request"
	"ebb/bot/dingtalk/stream"
	"ebb/sessions"
	"ebb/sessions/periodic"
)

var (
	_ chat.Transport = (*Transport)(nil)
	_ chat.Receiver  = (*Transport)(nil)
	_ chat.Clickable = (*Transport)(nil)
	_ chat.Files     = (*Transport)(nil)
	_ chat.Uploader  = (*Transport)(nil)
)

// Config is the DingTalk application and its settings.
type Config struct {
	// ClientID and ClientSecret are the application's credentials. Both are required.
	ClientID, ClientSecret string
	// Serves reports whether the application may make calls for a robot. Replies of a robot that is not configured any more go to their
	// webhooks alone. Nil: each robot is served.
	Serves func(sessions.RobotCode) bool
	// APIBase serves the stream gateway and the open API; empty for https://api.dingtalk.com.
	APIBase string
	// OAPIBase serves session webhooks; other hosts are refused. Empty for https://oapi.dingtalk.com.
	OAPIBase string
	// Pictures are the hosts whose pictures a reply may show; others become links.
	Pictures markdown.Pictures
	// RepliesPerMinute bounds the messages to one conversation; 0 is unbounded.
	RepliesPerMinute int
	// KeepAlive is the idle time before a ping; 0 for 20 s, at least 3 s.
	KeepAlive time.Duration
	// Calls governs the counted calls; nil for a governor of this process without a bound.
	Calls *calls.Governor
	// Cards is nil if no reply was ever on a card.
	Cards *Cards
	// Reactions is nil if there are no thinking marks.
	Reactions *Reactions
	// HTTP sends replies and requests tokens; nil for a default. Redirects are never followed.
	HTTP *http.Client
}

// Cards are the settings of replies on cards, see [card.Config]. All but Template are required.
type Cards struct {
	Store    sessions.Cards
	Template string // empty: replies are Markdown, and only the cards of earlier processes are ended
	Key      string
	Stream   card.Mode
	Interval time.Duration
	Thoughts bool
	Language func(sessions.ConversationID) string
}

// Reactions are the settings of thinking marks, see [reaction.Config]. All but Set are required.
type Reactions struct {
	Store    sessions.Cards
	Language func(sessions.ConversationID) string
	Set      bool // otherwise only the marks of earlier processes are removed
}

// Transport is one DingTalk application. Its methods may be called from any goroutine; Run only once.
type Transport struct {
	config Config

	stream   *stream.Stream
	app      stream.App
	requests *request.Client
	judge    *request.Judge
	api      *openapi.Client
	sender   *sender
	files    fileCalls
	calls    cardCalls
	cards    *card.Cards // nil without cards
	marks    *reaction.Reactions
}

// New checks the configuration and returns an unconnected transport.
func New(c Config) (*Transport, error) {
	if c.ClientID == "" || c.ClientSecret == "" {
		return nil, errors.New("DingTalk needs a client id and a client secret")
	}
	c.APIBase = strings.TrimRight(cmp.Or(c.APIBase, "https://api.dingtalk.com"), "/")
	c.OAPIBase = strings.TrimRight(cmp.Or(c.OAPIBase, "https://oapi.dingtalk.com"), "/")
	if c.Serves == nil {
		c.Serves = func(sessions.RobotCode) bool { return true }
	}
	if _, err := parseBase(c.APIBase); err != nil {
		return nil, fmt.Errorf("reading the open API's address: %w", err)
	}
	oapi, err := parseBase(c.OAPIBase)
	if err != nil {
		return nil, fmt.Errorf("reading the session webhooks' address: %w", err)
	}
	secret := request.Secret(c.ClientSecret)
	limits := newLimits(c.RepliesPerMinute)
	governor := cmp.Or(c.Calls, calls.New(calls.Options{Store: calls.NewMemory()}))
	robots := robots{own: sessions.RobotCode(c.ClientID), serves: c.Serves}
	requests := &request.Client{HTTP: httpClient(c.HTTP), Timeout: 5 * time.Second, UploadTimeout: 30 * time.Second}
	judge := request.NewJudge(secret, limits)
	api := openapi.New(openapi.App{ClientID: c.ClientID, Secret: secret, APIBase: c.APIBase, OAPIBase: c.OAPIBase}, requests, governor)
	t := &Transport{
		config: c, requests: requests, judge: judge, api: api,
		app:   stream.App{ClientID: c.ClientID, Secret: secret, APIBase: c.APIBase, KeepAlive: c.KeepAlive},
		files: fileCalls{api, judge, files.New(c.APIBase), robots},
		calls: cardCalls{api, judge, secret, robots},
	}
	if s := c.Cards; s != nil {
		t.app.Clicks = true
		t.cards = card.NewCards(card.Config{
			API: t.calls, Store: s.Store, Governor: governor, Template: s.Template, Key: s.Key,
			Stream: s.Stream, Interval: s.Interval, Thoughts: s.Thoughts, Language: s.Language, Pictures: c.Pictures,
		})
	}
	if s := c.Reactions; s != nil {
		t.marks = reaction.New(reaction.Config{API: reactionCalls{api, judge, robots}, Store: s.Store, Governor: governor, Language: s.Language})
	}
	t.stream = stream.New(t.app)
	t.sender = &sender{
		pictures: c.Pictures, robots: robots, limits: limits, cards: t.cards,
		webhooks: webhooks{host: oapi, requests: requests, judge: judge},
		direct:   direct{api: api, judge: judge, governor: governor, robots: robots},
	}
	return t, nil
}

// Run keeps one connection open until ctx ends. It retries also after a refused secret, which may be corrected at
// DingTalk.
func (t *Transport) Run(ctx context.Context, accept chat.Accept) error {
	return t.stream.Run(ctx, accept)
}

// Ready reports whether a connection is up.
func (t *Transport) Ready() bool { return t.stream.Ready() }

// Failing reports that DingTalk refuses the application, or that several tries to connect failed in a row.
func (t *Transport) Failing() bool { return t.stream.Failing() }

// AwaitReceived implements [chat.Receiver].
func (t *Transport) AwaitReceived(ctx context.Context, c sessions.ConversationID) {
	t.stream.AwaitReceived(ctx, c)
}

// OnClick implements [chat.Clickable].
func (t *Transport) OnClick(f func(ctx context.Context, c chat.Click) chat.Clicked) {
	t.stream.OnClick(f)
}

// Send delivers the next part of a reply through the session webhook, or through the open API if that is unusable. A
// failure is a [*chat.SendError].
func (t *Transport) Send(ctx context.Context, o sessions.Outgoing) (chat.Sent, error) {
	return t.sender.send(ctx, o)
}

// Download implements [chat.Files].
func (t *Transport) Download(ctx context.Context, robot sessions.RobotCode, a sessions.Attachment, to *os.File, limit int64) error {
	return t.files.Download(ctx, robot, a, to, limit)
}

// Upload implements [chat.Uploader].
func (t *Transport) Upload(ctx context.Context, robot sessions.RobotCode, f sessions.File) (string, error) {
	return t.files.Upload(ctx, robot, f)
}

// CardAPI makes the calls of cards, for a trial of a template.
func (t *Transport) CardAPI() card.API { return t.calls }

// AccessToken returns the application's token, for requests of other packages. Its error names no secret.
func (t *Transport) AccessToken(ctx context.Context) (string, error) { return t.api.AccessToken(ctx) }

// RejectToken forgets a token that DingTalk refused.
func (t *Transport) RejectToken(ctx context.Context, token string) { t.api.RejectToken(ctx, token) }

// ErrCredentials is DingTalk's refusal of the application.
var ErrCredentials = openapi.ErrCredentials

// Display shows running turns on cards and by marks, or not at all.
func (t *Transport) Display() chat.Display {
	switch {
	case t.marks != nil && t.config.Reactions.Set && showsCards(t):
		return markedDisplay{t.cards, t.marks}
	case t.marks != nil && t.config.Reactions.Set:
		return markedDisplay{nil, t.marks}
	case showsCards(t):
		return t.cards
	}
	return chat.NoDisplay{}
}

func showsCards(t *Transport) bool { return t.cards != nil && t.config.Cards.Template != "" }

// markedDisplay shows turns on cards, and marks the questions. cards is nil without cards.
type markedDisplay struct {
	cards *card.Cards
	marks *reaction.Reactions
}

var (
	_ chat.Acknowledger = markedDisplay{}
	_ chat.Queuer       = markedDisplay{}
)

// Acknowledge implements [chat.Acknowledger].
func (d markedDisplay) Acknowledge(ctx context.Context, l sessions.Lease, e sessions.Event) {
	d.marks.Acknowledge(ctx, l, e)
}

// Show implements [chat.Display].
func (d markedDisplay) Show(ctx context.Context, s chat.Shown) chat.Live {
	if d.cards == nil {
		return nil
	}
	return d.cards.Show(ctx, s)
}

// Queue implements [chat.Queuer].
func (d markedDisplay) Queue(ctx context.Context, s chat.Shown) (leave func()) {
	if d.cards == nil {
		return func() {}
	}
	return d.cards.Queue(ctx, s)
}

// Background lists the work of the transport besides messages.
func (t *Transport) Background() []periodic.Task {
	var tasks []periodic.Task
	if t.cards != nil {
		tasks = append(tasks, t.cards.Task(showsCards(t)))
	}
	if t.marks != nil {
		tasks = append(tasks, t.marks.Task(t.config.Reactions.Set))
	}
	return tasks
}

// CheckCredentials requests an access token, bypassing the cache. Its error names no secret.
func (t *Transport) CheckCredentials(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, t.requests.Timeout)
	defer cancel()
	_, _, err := t.api.FetchToken(ctx)
	return err
}

// ErrStream is the refusal of a stream connection for an application with the right credentials: its bot is not in stream mode.
var ErrStream = stream.ErrStream

// CheckStream requests a ticket and opens no connection, which could receive a message. Its error names no secret. It
// is a [net.Error] where DingTalk did not answer, and [ErrCredentials] or [ErrStream] for a refusal. A fault of DingTalk is another error.
func (t *Transport) CheckStream(ctx context.Context) error {
	return stream.Check(ctx, t.app, t.requests, t.api.FetchToken)
}

func parseBase(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, request.WithoutAddress(err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, errors.New("it must be an http or https address without a user name")
	}
	return u, nil
}

// Redirects are not followed: an answer must not choose a reply's destination.
func httpClient(given *http.Client) *http.Client {
	c := http.Client{}
	if given != nil {
		c = *given
	} else if d, ok := http.DefaultTransport.(*http.Transport); ok {
		own := d.Clone()
		own.MaxIdleConnsPerHost = 32
		c.Transport = own
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}
