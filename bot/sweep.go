package bot

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
	"ebb/sessions/periodic"
	"ebb/sessions/retry"
)

// firstBeat retries while the database is unavailable. It returns false if ctx ends first.
func (b *Bot) firstBeat(ctx context.Context) bool {
	err := retry.Do(ctx, retry.Pauses{First: 100 * time.Millisecond, Max: time.Second}, func() error {
		one, stop := context.WithTimeout(ctx, b.cfg.CommitTimeout)
		defer stop()
		err := b.leases.Beat(one)
		if err != nil {
			periodic.LogFailure(ctx, err, "Failed to write the first heartbeat, trying again")
		}
		return err
	})
	return err == nil
}

// The sweep makes up for lost wake-ups.
const (
	sweepEvery = time.Second
	sweepLimit = 200

	sweepFailed = "Sweep for waiting sessions failed"
)

func (b *Bot) sweep(ctx context.Context) error {
	keys, err := b.store.Waiting(ctx, b.leases.Owner(), sweepLimit)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if b.turns.Busy(key) {
			continue // a turn answers its messages
		}
		b.outbox.Invalidate(key)
		b.turns.Wake(key)
	}
	return nil
}

func (b *Bot) sweepNow(ctx context.Context) {
	one, stop := context.WithTimeout(ctx, b.cfg.CommitTimeout)
	defer stop()
	if err := b.sweep(one); err != nil {
		periodic.LogFailure(ctx, err, sweepFailed)
	}
}

// listen passes on wake-ups of other replicas. It reconnects at once after a connection that listened, otherwise after
// a pause.
func (b *Bot) listen(ctx context.Context) {
	pauses := retry.Storage.Start()
	var heard atomic.Bool
	for {
		err := b.store.Listen(ctx, b.leases.Owner(), func(key sessions.Key) {
			heard.Store(true)
			if key == "" {
				b.stream.Changed()
				go b.sweepNow(ctx)
				return
			}
			b.runner.Wake(key)
		})
		if ctx.Err() != nil {
			return
		}
		if heard.Swap(false) {
			pauses.Reset()
		}
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Notifications broke off, listening again")
		if !retry.Sleep(ctx, pauses.NextBackOff()) {
			return
		}
	}
}
