package bot

import (
	"context"
	"sync/atomic"
	"time"

	"ebb/sessions"

	"github.com/rs/zerolog"
)

// firstBeat says that the replica lives, and waits for a database that is away. It reports false where ctx ends before.
func (b *Bot) firstBeat(ctx context.Context) bool {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		one, stop := context.WithTimeout(ctx, b.cfg.CommitTimeout)
		err := b.leases.Beat(one)
		stop()
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg("First heartbeat not written, trying again")
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// The sweep makes up for every wake-up that was lost.
const (
	sweepEvery = time.Second
	sweepLimit = 200
)

// sweep wakes the sessions that have work waiting, those of dead replicas too.
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
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Sweep for waiting sessions did not come through")
		}
		return
	}
	for _, key := range keys {
		if b.turns.Busy(key) {
			continue // its messages are being answered
		}
		b.outbox.Doubt(key)
		b.turns.Wake(key)
	}
}

// listen passes on the wake-ups of other replicas, and reconnects for as long as ctx lives: at once where it had listened,
// and with pauses where it can't.
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
