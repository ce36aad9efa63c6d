package bot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"ebb/memory"
	"ebb/sessions"
)

const (
	// settleEvery is the time between two looks at what memory is owed.
	settleEvery = 30 * time.Second
	// settleLimit is how many sessions one look takes up of each kind.
	settleLimit = 100
	// idleAfter is how long nothing is said in a session before what it said last is flushed.
	idleAfter = 30 * time.Minute
)

// settle does in the background what memory needs and nobody waits for, one thing at a time: owed flushes, those that
// have waited for longest first, then flushes of sessions at rest. It ends with ctx, whose cause leaves a flush that is
// under way to the one of the stop.
func (b *Bot) settle(ctx context.Context) {
	tidy := &chores{rests: map[memory.Crowded]time.Time{}}
	t := time.NewTicker(settleEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if !b.leases.Trusted() {
			continue
		}
		b.settleDebts(ctx)
		b.flushIdle(ctx)
		b.keep(ctx, tidy)
	}
}

// settleDebts makes up for flushes that failed: their events are read from the log.
func (b *Bot) settleDebts(ctx context.Context) {
	owed, err := b.memory.DebtsDue(ctx, b.leases.Owner(), settleLimit)
	if err != nil {
		quietly(ctx, err, "Owed flushes could not be listed")
		return
	}
	for _, d := range owed {
		out, err := b.flushLow(ctx, d.Key, flushDebt, func(sessions.Session) bool { return true })
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			quietly(ctx, err, "Owed flush did not come through, it rests")
		case out.Through > 0:
			zerolog.Ctx(ctx).Info().EmbedObject(d.Key).Str("outcome", out.String()).Msg("Owed flush settled")
		}
	}
}

// flushIdle flushes sessions in which nobody has said anything for a while.
func (b *Bot) flushIdle(ctx context.Context) {
	keys, err := b.memory.Idle(ctx, b.leases.Owner(), idleAfter, settleLimit)
	if err != nil {
		quietly(ctx, err, "Sessions at rest could not be listed")
		return
	}
	for _, key := range keys {
		_, err := b.flushLow(ctx, key, flushIdle, func(s sessions.Session) bool {
			return b.settings(s).Policy.Flush && time.Since(s.LastActiveAt) >= idleAfter
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			quietly(ctx, err, "Session at rest was not flushed, its range is owed")
		}
	}
}

// flushLow flushes a session that is free or ours, at low priority: where it is wanted, within what the session may still
// spend today, and never beside a compaction of it.
func (b *Bot) flushLow(
	ctx context.Context, key sessions.Key, trigger string, wanted func(sessions.Session) bool,
) (out memory.Outcome, err error) {
	if b.upkeepLock.busy(key) {
		return out, nil
	}
	if err := b.spare.Acquire(ctx, 1); err != nil {
		return out, nil // the bot stops
	}
	defer b.spare.Release(1)
	lease, err := b.leases.Get(ctx, key)
	if errors.Is(err, sessions.ErrLeaseHeld) || errors.Is(err, sessions.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return out, fmt.Errorf("take lease of session %s: %w", key, err)
	}
	log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", lease.Term).Logger()
	ctx, stop := context.WithTimeout(log.WithContext(ctx), b.cfg.CompactDeadline)
	defer stop()
	out, err = b.flushAs(ctx, lease, trigger, func(s sessions.Session) (int, bool) {
		return s.FlushEpoch, s.FlushedSeq < s.LastSeq && !spent(b.settings(s), s) && wanted(s)
	})
	return out, b.leases.Check(key, err)
}

// quietly logs what went wrong in the background, unless the bot is stopping.
func quietly(ctx context.Context, err error, words string) {
	if ctx.Err() == nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg(words)
	}
}
