package outbox

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/lease"
)

// Config has the dependencies and settings of an [Outbox].
type Config struct {
	Store         sessions.Outbox
	Transport     chat.Transport
	Leases        *lease.Holder
	CommitTimeout time.Duration    // one claim or mark
	Now           func() time.Time // storage's clock
	Stats         Stats
	// Scheduled is called for a reply to a schedule that arrived, or whose person or conversation is gone; nil: not called.
	Scheduled   func(ctx context.Context, o sessions.Outgoing, arrived bool)
	WakeSession func(sessions.Key) // starts a turn of a session that was turned away or lost its lease
}

// Stats counts attempts to send.
type Stats interface {
	ReplyResumed() // left by an earlier process
	ReplyDoubled() // sent again, and may have arrived before
	ReplyTried(s sessions.Settled)
}

// New returns an outbox that sends until ctx ends.
func New(ctx context.Context, cfg Config) *Outbox {
	webhooks, err := lru.New[channel, webhook](maxWebhooks)
	if err != nil {
		panic(err) // the size is a positive constant
	}
	return &Outbox{
		ctx: ctx, store: cfg.Store, transport: cfg.Transport, leases: cfg.Leases, timeout: cfg.CommitTimeout, now: cfg.Now, wakeSession: cfg.WakeSession, stats: cfg.Stats, scheduled: cfg.Scheduled,
		queues: map[channel]*queue{}, resumed: map[sessions.Key]int64{}, left: make(chan struct{}), webhooks: webhooks,
	}
}
