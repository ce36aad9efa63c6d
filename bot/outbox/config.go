package outbox

import (
	"context"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/lease"
)

// Config is what an outbox needs.
type Config struct {
	Store         sessions.Outbox
	Transport     chat.Transport
	Leases        *lease.Holder
	CommitTimeout time.Duration    // of one claim or mark
	Now           func() time.Time // the storage's clock
	Stats         Stats
	Answer        func(sessions.Key) // has a session answer that was turned away, or ask the storage whose it is
}

// Stats counts tries to send.
type Stats interface {
	ReplyResumed() // an earlier process left it
	ReplyDoubled() // sent again, and it may have arrived before
	ReplyTried(s sessions.Settled)
}

func New(ctx context.Context, cfg Config) *Outbox {
	return &Outbox{
		ctx: ctx, store: cfg.Store, transport: cfg.Transport, leases: cfg.Leases, settle: cfg.CommitTimeout, now: cfg.Now, answer: cfg.Answer, stats: cfg.Stats,
		Queues: map[channel]*queue{}, Resumed: map[sessions.Key]int64{},
	}
}
