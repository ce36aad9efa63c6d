package outbox

import (
	"context"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/bot/chat"
	"ebb/bot/parts"
	"ebb/sessions"
)

// Options are what an [Outbox] calls besides.
type Options struct {
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
func New(ctx context.Context, p *parts.Shared, store sessions.Outbox, transport chat.Transport, stats Stats, o Options) *Outbox {
	webhooks, err := lru.New[channel, webhook](maxWebhooks)
	if err != nil {
		panic(err) // the size is a positive constant
	}
	return &Outbox{
		ctx: ctx, shared: p, store: store, transport: transport, stats: stats, opts: o,
		queues: map[channel]*queue{}, resumed: map[sessions.Key]int64{}, left: make(chan struct{}), webhooks: webhooks,
	}
}
