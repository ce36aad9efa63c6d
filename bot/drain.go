package bot

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ebb/sessions"
)

// drain finishes what is in hand after intake has ended: turns in flight and their replies within one deadline, the
// flush of active sessions within another. Sessions without a turn do not wait for those with one: they are flushed and
// handed over at once. What is left stays in the storage: pending messages, unsent replies, owed flushes.
func (b *Bot) drain(ctx context.Context, stop stops) {
	close(b.draining)
	log := zerolog.Ctx(ctx)
	began := time.Now()
	log.Info().Int("turns", b.turns.Live()).Int("replies", b.outbox.waiting()).Msg("Draining")
	b.turns.Close()
	b.upkeep.Close()
	var sum flushSum
	var idle errgroup.Group
	idle.Go(func() error {
		b.flushActive(ctx, &sum, func(key sessions.Key) bool { return b.turns.Busy(key) || b.outbox.holds(key) })
		return nil
	})
	finish(ctx, b.cfg.Drain, stop.turns, b.cfg.CommitTimeout, b.turns.Wait)
	b.outbox.close()
	finish(ctx, max(time.Second, b.cfg.Drain-time.Since(began)), stop.outbox, b.cfg.CommitTimeout, b.outbox.wait)
	finish(ctx, upkeepGrace, stop.upkeep, b.cfg.CommitTimeout, b.upkeep.Wait)
	log.Info().Dur("took_ms", time.Since(began)).Int("turns_left", b.turns.Live()).Int("replies_left", b.outbox.waiting()).Msg("Drained")
	_ = idle.Wait() // its function returns no error
	b.flushActive(ctx, &sum, func(sessions.Key) bool { return false })
	b.tally.flushed.Store(sum.saved.Load() + sum.nothing.Load())
	b.tally.debt.Store(sum.owed.Load())
	sum.log(log, time.Since(began))
}

// stopping reports whether a stop has begun.
func (b *Bot) stopping() bool {
	select {
	case <-b.draining:
		return true
	default:
		return false
	}
}

// stops cancel what is in hand, each with ErrStop.
type stops struct{ turns, upkeep, outbox context.CancelCauseFunc }

// upkeepGrace is how long a flush or a compaction that is under way may go on when the turns are done. Cut off, it
// changes nothing: the flush of active sessions reads the same events.
const upkeepGrace = 2 * time.Second

// finish waits for work until its deadline, then cancels it and waits a moment for it to clean up.
func finish(ctx context.Context, deadline time.Duration, cancel context.CancelCauseFunc, grace time.Duration, wait func(context.Context) error) {
	soft, stop := context.WithTimeout(ctx, deadline)
	defer stop()
	if wait(soft) == nil {
		return
	}
	cancel(ErrStop)
	hard, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer stop()
	_ = wait(hard) // what does not end even now ends with the process
}

// maxShutdownFlushes is how many sessions are flushed at once at a stop.
const maxShutdownFlushes = 16

// flushSum is what the flushes of a stop came to.
type flushSum struct{ saved, nothing, owed, rows atomic.Int64 }

// log writes the line that operators look for after a restart.
func (s *flushSum) log(log *zerolog.Logger, took time.Duration) {
	flushed := s.saved.Load() + s.nothing.Load()
	log.Info().Int64("sessions", flushed+s.owed.Load()).Int64("flushed", flushed).Int64("saved", s.saved.Load()).
		Int64("nothing_to_save", s.nothing.Load()).Int64("owed", s.owed.Load()).Int64("memories", s.rows.Load()).
		Dur("took_ms", took).Msg("Shutdown memory flush summary")
}

// flushActive flushes the sessions of this replica that said something since their last flush, the most unsaved first,
// and hands each over when it is done; those that skip names are left for later.
func (b *Bot) flushActive(ctx context.Context, sum *flushSum, skip func(sessions.Key) bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(b.cfg.Flush, func() { cancel(ErrStop) })
	defer timer.Stop()
	defer cancel(ErrStop)
	log := zerolog.Ctx(ctx)
	active, err := b.memory.Unflushed(ctx, b.leases.Owner())
	if err != nil {
		log.Error().Err(err).Msg("Sessions to flush could not be listed; their cursors stand, the next process reads them")
	}
	var g errgroup.Group
	g.SetLimit(maxShutdownFlushes)
	for _, u := range active {
		if skip(u.Key) {
			continue
		}
		g.Go(func() error {
			n, err := b.flushAtStop(ctx, u.Key)
			switch {
			case err != nil:
				sum.owed.Add(1)
				log.Warn().EmbedObject(u.Key).Int("tokens", u.Tokens).Err(err).Msg("Session not flushed at the stop, range is owed")
			case n == 0:
				sum.nothing.Add(1)
			default:
				sum.saved.Add(1)
				sum.rows.Add(int64(n))
			}
			b.handOver(ctx, u.Key)
			return nil
		})
	}
	_ = g.Wait() // its functions return no errors
}

// handOver gives up the lease of a session that this replica is done with, so that another answers at once.
func (b *Bot) handOver(ctx context.Context, key sessions.Key) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CommitTimeout)
	defer stop()
	lease, ok := b.leases.Drop(key)
	if !ok {
		return
	}
	if err := b.store.Release(ctx, lease); err != nil {
		zerolog.Ctx(ctx).Warn().EmbedObject(key).Err(err).Msg("Lease not handed over; it goes with the others")
	}
}

// flushAtStop flushes one session and says how many rows hold what it saved.
func (b *Bot) flushAtStop(ctx context.Context, key sessions.Key) (rows int, err error) {
	lease, err := b.leases.Get(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("take lease of session %s: %w", key, err)
	}
	log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", lease.Term).Logger()
	out, err := b.flushAll(log.WithContext(ctx), lease, flushShutdown)
	return out.Receipt.Rows(), err
}

// resign hands the leases over, so that another replica goes on at once.
func (b *Bot) resign(ctx context.Context) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CommitTimeout)
	defer stop()
	n, err := b.store.Resign(ctx, b.leases.Owner())
	if err != nil {
		// The heartbeat ends with the process: others take over when it is stale.
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Leases not released")
		return nil
	}
	zerolog.Ctx(ctx).Info().Int("leases", n).Msg("Leases released")
	return nil
}
