package dingtalktest

import (
	"slices"
	"time"
)

// Never switches off a duration of Options whose zero value means the default.
const Never time.Duration = -1

// Unlimited switches off a count of Options whose zero value means the default.
const Unlimited = -1

// Routing is the choice of a connection for a push among several.
type Routing string

// DingTalk documents a random choice; round robin makes a test predictable.
const (
	RouteRandom     Routing = "random"
	RouteRoundRobin Routing = "roundrobin"
)

// App is one DingTalk application with its bot.
type App struct {
	ClientID     string `json:"clientId"`
	ClientSecret string `json:"clientSecret"`
	// RobotCode is empty for the ClientID, as with an enterprise's own bots.
	RobotCode string `json:"robotCode"`
	// CorpID defaults to "dingcorpsim".
	CorpID       string   `json:"corpId"`
	RedirectURIs []string `json:"redirectUris"`
	// Lacks are missing permissions, such as PermissionContact.
	Lacks []string `json:"lacks"`
}

// User is one person. Fields besides StaffID are derived from it when empty.
type User struct {
	StaffID string `json:"staffId"`
	Nick    string `json:"nick"`
	UnionID string `json:"unionId"`
	// DingtalkID is the encrypted id, the senderId of callbacks.
	DingtalkID string `json:"dingtalkId"`
	Admin      bool   `json:"admin"`
	// External people belong to another organisation: callbacks lack their staff id.
	External bool `json:"external"`
}

// Group is one group conversation.
type Group struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Members are staff ids; a speaker joins the group.
	Members []string `json:"members"`
	// Robots are robot codes; empty means the first application's.
	Robots    []string `json:"robots"`
	Disbanded bool     `json:"disbanded"`
}

// CardTemplate is a template of the card platform.
type CardTemplate struct {
	// ID ends in ".schema".
	ID string
	// Content is the variable of the answer; empty means "content".
	Content string
	// Variables are the other ones; nil: every name is one.
	Variables []string
	// PlainText lets a streaming call append to Content.
	PlainText   bool
	Unpublished bool
}

func (t CardTemplate) has(variable string) bool {
	return variable == t.Content || t.Variables == nil || slices.Contains(t.Variables, variable)
}

// DefaultCardTemplate exists without [Options.CardTemplates].
const DefaultCardTemplate = "tpl.schema"

func defaultCardTemplates() []CardTemplate {
	return []CardTemplate{
		{ID: DefaultCardTemplate},
		{ID: "8aebdfb9-28f4-4a98-98f5-396c3dde41a0.schema", Variables: []string{}},
		{ID: "02fcf2f4-5e02-4a85-b672-46d1f715543e.schema", Content: "msgContent"},
	}
}

// Options configure the simulator. The zero value is a DingTalk as the field knows it; Never or Unlimited switches an
// option off. Options marked "unconfirmed" stand for undocumented behaviour.
type Options struct {
	// Addr defaults to "127.0.0.1:0".
	Addr string
	// Apps default to one: client id "dingsimapp0001", secret "sim-secret".
	Apps   []App
	Users  []User
	Groups []Group
	// Seed of every random choice; default 1, so that a run repeats.
	Seed uint64

	// LatencyMin and LatencyMax bound the delay of each push and answer; default 20-80 ms. LatencyMax Never: none.
	LatencyMin, LatencyMax time.Duration

	// RedeliverAfter is the time without an ack before another push; default 60 s (unconfirmed).
	RedeliverAfter time.Duration
	// RedeliverMax bounds the redeliveries of one message; default 1 (unconfirmed), Unlimited: until acknowledged.
	RedeliverMax int
	// RedeliverSameFrameID repeats headers.messageId (unconfirmed).
	RedeliverSameFrameID bool
	// RetryOnError and RetryOnNotFound treat an ack with code 500 or 404 as no ack (unconfirmed, default off).
	RetryOnError, RetryOnNotFound bool
	// AckDeadline makes later acks violations; default 3 s, the platform's push timeout.
	AckDeadline time.Duration
	// Routing defaults to RouteRandom.
	Routing Routing
	// ShuffleWindow delays each push by a random part of it, against the order on the wire.
	ShuffleWindow time.Duration
	// Backlog keeps messages without a connection for this time, and replays them on connect; default: dropped
	// (unconfirmed).
	Backlog time.Duration

	// PingInterval of the application-level ping; default 30 s (unconfirmed), Never: none.
	PingInterval time.Duration
	// KeepaliveInterval of KEEPALIVE system frames; default none.
	KeepaliveInterval time.Duration
	// ConnectedFrames sends CONNECTED and REGISTERED when a connection opens.
	ConnectedFrames bool
	// ConnectionTTL sends `disconnect` to a connection of that age; default none.
	ConnectionTTL time.Duration
	// DisconnectGrace is the silence before the socket ends; default 10 s.
	DisconnectGrace time.Duration

	// TicketTTL, TokenTTL, WebhookTTL and LoginCodeTTL default to 90 s, 2 h, 90 min and 5 min (the last one unconfirmed).
	TicketTTL, TokenTTL, WebhookTTL, LoginCodeTTL time.Duration
	// WebhookPerMinute bounds one conversation; default 20, beyond: errcode 130101 (scope unconfirmed).
	WebhookPerMinute int
	// WebhookBlock refuses a conversation after it exceeded WebhookPerMinute; default none (unconfirmed).
	WebhookBlock time.Duration
	// WebhookMaxBytes bounds a webhook body; default 20,000, beyond: errcode 460101.
	WebhookMaxBytes int
	// IgnoreMsgUUID posts a reply with a known msgUuid again (unconfirmed; default: not).
	IgnoreMsgUUID bool
	// APIQPS bounds one application's calls of one API in a second; default 20, beyond: 403.
	APIQPS int
	// APIQuota and StreamQuota are the organisation's monthly budgets, 5,000 and 3,000: counted always, enforced with
	// EnforceQuotas.
	APIQuota, StreamQuota int
	EnforceQuotas         bool

	// RepliesPerMessage reports a message with more posts; 0: not checked, since long replies come in parts.
	RepliesPerMessage int
	// OpensPerMinute reports more connections of an application; default 30.
	OpensPerMinute int
	// MaxDeaf reports a longer time without a live connection, after the first; default: measured only.
	MaxDeaf time.Duration
	// CardTemplates default to DefaultCardTemplate and two of the field's.
	CardTemplates []CardTemplate
	// CardContentBytes bounds a streaming call; default 20,000 (unconfirmed), beyond: "content is too large".
	CardContentBytes int
	// CardBlankAfter is the number of Chinese characters beyond which a card is blank; default 3,000.
	CardBlankAfter int
	// EnforceCardLimits refuses card values over 1 KB and names over 100 bytes; default: recorded on the card.
	EnforceCardLimits bool
	// EmotionFailures is the number of system.err answers before a reaction succeeds.
	EmotionFailures int
	// CardIdle reports an unfinished card after this time without an update; default 60 s.
	CardIdle time.Duration
	// KeepMessages bounds the acknowledged messages for Redeliver; default 20,000. Replies are all kept.
	KeepMessages int
	// TranscriptLines bounds the transcript to the newest; default 50,000.
	TranscriptLines int

	// Logf receives every line of the transcript.
	Logf func(format string, args ...any)
}

// Fast are options for tests: no latency, pings each second, one second of disconnect grace, and three redeliveries
// of an unacknowledged message, 3 s apart.
func Fast() Options {
	return Options{
		LatencyMax:      Never,
		RedeliverAfter:  3 * time.Second,
		RedeliverMax:    3,
		PingInterval:    time.Second,
		DisconnectGrace: time.Second,
	}
}

func (o Options) withDefaults() Options {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if len(o.Apps) == 0 {
		o.Apps = []App{{ClientID: "dingsimapp0001", ClientSecret: "sim-secret"}}
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if o.LatencyMin == 0 && o.LatencyMax == 0 {
		o.LatencyMin, o.LatencyMax = 20*time.Millisecond, 80*time.Millisecond
	}
	if o.CardTemplates == nil {
		o.CardTemplates = defaultCardTemplates()
	}
	if o.Routing == "" {
		o.Routing = RouteRandom
	}
	for _, d := range []struct {
		knob *time.Duration
		def  time.Duration
	}{
		{&o.RedeliverAfter, time.Minute},
		{&o.AckDeadline, 3 * time.Second},
		{&o.PingInterval, 30 * time.Second},
		{&o.DisconnectGrace, 10 * time.Second},
		{&o.TicketTTL, 90 * time.Second},
		{&o.TokenTTL, 2 * time.Hour},
		{&o.WebhookTTL, 90 * time.Minute},
		{&o.LoginCodeTTL, 5 * time.Minute},
		{&o.CardIdle, time.Minute},
	} {
		if *d.knob == 0 {
			*d.knob = d.def
		}
	}
	for _, c := range []struct {
		knob *int
		def  int
	}{
		{&o.RedeliverMax, 1},
		{&o.WebhookPerMinute, 20},
		{&o.WebhookMaxBytes, 20000},
		{&o.APIQPS, 20},
		{&o.APIQuota, 5000},
		{&o.StreamQuota, 3000},
		{&o.OpensPerMinute, 30},
		{&o.CardContentBytes, 20000},
		{&o.CardBlankAfter, 3000},
		{&o.KeepMessages, 20000},
		{&o.TranscriptLines, 50000},
	} {
		if *c.knob == 0 {
			*c.knob = c.def
		}
	}
	return o
}
