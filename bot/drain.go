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

// drain finishes what is in hand after intake has ended: turns in flight and their replies within one deadline, then
// the flush of active sessions within another. What is left stays in the storage: pending messages, unsent replies,
// owed flushes.
func (b *Bot) drain(ctx context.Context, stop stops) {
	close(b.draining)
	log := zerolog.Ctx(ctx)
	began := time.Now()
	log.Info().Int("turns", b.turns.Live()).Int("replies", b.outbox.waiting()).Msg("Draining")
	b.turns.Close()
	b.upkeep.Close()
	finish(ctx, b.cfg.Drain, stop.turns, b.cfg.CommitTimeout, b.turns.Wait)
	b.outbox.close()
	finish(ctx, max(time.Second, b.cfg.Drain-time.Since(began)), stop.outbox, b.cfg.CommitTimeout, b.outbox.wait)
	finish(ctx, upkeepGrace, stop.upkeep, b.cfg.CommitTimeout, b.upkeep.Wait)
	log.Info().Dur("took", time.Since(began)).Int("turns_left", b.turns.Live()).Int("replies_left", b.outbox.waiting()).Msg("Drained")
	b.flushActive(ctx)
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

// flushActive flushes every session of this replica that said something since its last flush, the most unsaved first.
func (b *Bot) flushActive(ctx context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(b.cfg.Flush, func() { cancel(ErrStop) })
	defer timer.Stop()
	defer cancel(ErrStop)
	began := time.Now()
	log := zerolog.Ctx(ctx)
	active, err := b.memory.Unflushed(ctx, b.leases.Owner())
	if err != nil {
		log.Error().Err(err).Msg("Sessions to flush could not be listed; their cursors stand, the next process reads them")
	}
	var saved, nothing, owed, rows atomic.Int64
	var g errgroup.Group
	g.SetLimit(maxShutdownFlushes)
	for _, u := range active {
		g.Go(func() error {
			n, err := b.flushAtStop(ctx, u.Key)
			switch {
			case err != nil:
				owed.Add(1)
				log.Warn().EmbedObject(u.Key).Int("tokens", u.Tokens).Err(err).Msg("Session not flushed at the stop, range is owed")
			case n == 0:
				nothing.Add(1)
			default:
				saved.Add(1)
				rows.Add(int64(n))
			}
			return nil
		})
	}
	_ = g.Wait() // its functions return no errors
	log.Info().Int("sessions", len(active)).Int64("flushed", saved.Load()+nothing.Load()).Int64("saved", saved.Load()).Int64("nothing_to_save", nothing.Load()).
		Int64("owed", owed.Load()).Int64("memories", rows.Load()).Dur("took", time.Since(began)).Msg("Shutdown memory flush summary")
}

// flushAtStop flushes one session, whatever its cycle says: the mark of the cycle stays, for a short talk must not
// use up the flush that comes before its compaction.
func (b *Bot) flushAtStop(ctx context.Context, key sessions.Key) (rows int, err error) {
	lease, err := b.leases.Get(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("take lease of session %s: %w", key, err)
	}
	log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", lease.Term).Logger()
	ctx = log.WithContext(ctx)
	s, err := b.store.Session(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("read session %s: %w", key, err)
	}
	out, err := b.flush(ctx, lease, s, s.FlushEpoch)
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
