package bot

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
)

// firstBeat writes the first heartbeat and retries while the database is unavailable. It returns false if ctx ends
// first.
func (b *Bot) firstBeat(ctx context.Context) bool {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		one, stop := context.WithTimeout(ctx, b.cfg.CommitTimeout)
		err := b.leases.Beat(one)
		stop()
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to write the first heartbeat, trying again")
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// The sweep makes up for lost wake-ups.
const (
	sweepEvery = time.Second
	sweepLimit = 200
)

// sweep wakes sessions with waiting work, those of dead replicas included.
func (b *Bot) sweep(ctx context.Context) {
	t := time.NewTicker(sweepEvery)
	defer t.Stop()
	for {
		b.sweepOnce(ctx)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

func (b *Bot) sweepOnce(ctx context.Context) {
	one, stop := context.WithTimeout(ctx, b.cfg.CommitTimeout)
	defer stop()
	keys, err := b.store.Waiting(one, b.leases.Owner(), sweepLimit)
	if err != nil {
		if ctx.Err() == nil {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Sweep for waiting sessions failed")
		}
		return
	}
	for _, key := range keys {
		if b.turns.Busy(key) {
			continue // a turn answers its messages
		}
		b.outbox.Invalidate(key)
		b.turns.Wake(key)
	}
}

// listen passes on wake-ups of other replicas. It reconnects until ctx ends: at once after a connection that listened,
// otherwise after a pause.
func (b *Bot) listen(ctx context.Context) {
	const first, last = 50 * time.Millisecond, time.Second
	var heard atomic.Bool
	for pause := first; ctx.Err() == nil; pause = min(2*pause, last) {
		err := b.store.Listen(ctx, b.leases.Owner(), func(key sessions.Key) {
			heard.Store(true)
			if key == "" {
				b.stream.Changed()
				go b.sweepOnce(ctx)
				return
			}
			b.runner.Wake(key)
		})
		if ctx.Err() != nil {
			return
		}
		if heard.Swap(false) {
			pause = first
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Notifications broke off, listening again")
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
