package bot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ebb/bot/llm"
	"ebb/bot/upkeep"
	"ebb/memory"
	"ebb/sessions"
)

// drain finishes what is in hand after intake has ended: turns in flight and their replies within one deadline, the
// flush of active sessions within another. Sessions without a turn do not wait for those with one: they are flushed and
// handed over at once, and only when the turns are done the second deadline begins. What is left stays in the storage:
// pending messages, unsent replies, owed flushes.
func (b *Bot) drain(ctx context.Context, stop stops) {
	close(b.draining)
	log := zerolog.Ctx(ctx)
	began := time.Now()
	log.Info().Int("turns", b.turns.Live()).Int("replies", b.outbox.Waiting()).Msg("Draining")
	b.turns.Close(b.leave)
	b.upkeep.Close(func(sessions.Key) {}) // the flush of active sessions is all that is done now
	last := b.last
	flush, cut := context.WithCancelCause(ctx)
	defer cut(llm.ErrStop)
	var drained atomic.Bool
	var idle, handing errgroup.Group
	leaving, stopLeaving := context.WithCancel(ctx)
	defer stopLeaving()
	handing.Go(func() error { b.handOvers(leaving, flush); return nil })
	idle.Go(func() error {
		// From then on all that are left are flushed in one order.
		b.flushActive(flush, func(key sessions.Key) bool { return drained.Load() || b.turns.Busy(key) || b.outbox.Holds(key) })
		return nil
	})
	left := 0
	finish(ctx, b.cfg.Drain, func(cause error) { left = b.turns.Live(); stop.turns(cause) }, b.cfg.CommitTimeout, b.turns.Wait)
	b.outbox.Close()
	if finish(ctx, max(time.Second, b.cfg.Drain-time.Since(began)), stop.outbox, b.cfg.CommitTimeout, b.outbox.Wait) {
		b.putDown(ctx)
	}
	finish(ctx, upkeepGrace, stop.upkeep, b.cfg.CommitTimeout, b.upkeep.Wait)
	log.Info().Dur("took_ms", time.Since(began)).Int("turns_left", left).Int("replies_left", b.outbox.Waiting()).Msg("Drained")
	drained.Store(true)
	defer time.AfterFunc(b.cfg.Flush, func() { cut(llm.ErrStop) }).Stop()
	b.flushActive(flush, func(sessions.Key) bool { return false })
	stopLeaving()
	for _, g := range []*errgroup.Group{&idle, &last.work, &handing} {
		_ = g.Wait() // its functions return no errors
	}
	sum := &last.sum
	sum.owed.Add(int64(b.owe(ctx, "")))
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

// putDown tells the next process that no reply is on its way: else it had to take each that is due for one that may have
// arrived. Where the storage does not know of a try, that is what it has to do.
func (b *Bot) putDown(ctx context.Context) {
	if b.outbox.Unmarked() {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CommitTimeout)
	defer stop()
	if err := b.store.PutDown(ctx, b.leases.Owner()); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Replies not put down; those that are due count as perhaps sent")
	}
}

// finish waits for work until its deadline, then cancels it and waits a moment for it to clean up. It reports whether
// nothing had to be cancelled.
func finish(ctx context.Context, deadline time.Duration, cancel context.CancelCauseFunc, grace time.Duration, wait func(context.Context) error) bool {
	soft, stop := context.WithTimeout(ctx, deadline)
	defer stop()
	if wait(soft) == nil {
		return true
	}
	cancel(llm.ErrStop)
	hard, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer stop()
	_ = wait(hard) // what does not end even now ends with the process
	return false
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

// lastFlush is the flush of a stop: each session's once.
type lastFlush struct {
	sum   flushSum
	work  errgroup.Group
	mu    sync.Mutex
	begun map[sessions.Key]*oneFlush
}

// oneFlush is the flush of one session, which may be cut off alone.
type oneFlush struct {
	ctx  context.Context
	cut  context.CancelCauseFunc
	done chan struct{}
}

// end tells who waits for the flush that it is over.
func (o *oneFlush) end() {
	o.cut(nil)
	close(o.done)
}

func newLastFlush() *lastFlush {
	f := &lastFlush{begun: map[sessions.Key]*oneFlush{}}
	f.work.SetLimit(maxShutdownFlushes)
	return f
}

// begin returns the flush of a session, and whether the caller is the first to ask for it, who does it.
func (f *lastFlush) begin(ctx context.Context, key sessions.Key) (one *oneFlush, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one = f.begun[key]; one != nil {
		return one, false
	}
	one = &oneFlush{done: make(chan struct{})}
	one.ctx, one.cut = context.WithCancelCause(ctx)
	f.begun[key] = one
	return one, true
}

// flushActive begins the flush of the sessions of this replica that said something since their last flush, the most
// unsaved first; those that skip names are left for later, and so is what is not done when ctx ends.
func (b *Bot) flushActive(ctx context.Context, skip func(sessions.Key) bool) {
	log := zerolog.Ctx(ctx)
	active, err := b.memory.Unflushed(ctx, b.leases.Owner())
	if err != nil {
		log.Error().Err(err).Msg("Sessions to flush could not be listed; their cursors stand, the next process reads them")
	}
	for _, u := range active {
		if skip(u.Key) {
			continue
		}
		b.last.work.Go(func() error {
			if ctx.Err() != nil || skip(u.Key) { // it may have waited for its turn
				return nil
			}
			if one, first := b.last.begin(ctx, u.Key); first {
				defer one.end()
				b.flushLast(ctx, one, u)
			}
			return nil
		})
	}
}

// flushLast flushes one session at a stop and hands it over. What is cut off with all the others, when ctx ends, is owed and
// handed over with them, and so is what could not be handed over alone.
func (b *Bot) flushLast(ctx context.Context, one *oneFlush, u memory.UnflushedSession) {
	sum := &b.last.sum
	n, err := b.flushAtStop(one.ctx, u.Key)
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case errors.Is(err, sessions.ErrLeaseLost), errors.Is(err, sessions.ErrLeaseHeld):
		return // it is another replica's by now
	case err != nil:
		owed := b.owe(ctx, u.Key)
		if b.handOver(ctx, u.Key) && owed > 0 {
			sum.owed.Add(1)
			zerolog.Ctx(ctx).Warn().EmbedObject(u.Key).Int("tokens", u.Tokens).Err(err).Msg("Session not flushed at the stop, range is owed")
		}
		return
	case n == 0:
		sum.nothing.Add(1)
	default:
		sum.saved.Add(1)
		sum.rows.Add(int64(n))
	}
	b.handOver(ctx, u.Key)
}

// owe records what no flush of the stop came to as owed, so that any replica makes up for it soon: of one session, or of all
// that this replica still holds where key is empty. It returns of how many.
func (b *Bot) owe(ctx context.Context, key sessions.Key) int {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CommitTimeout)
	defer stop()
	n, err := b.memory.OweUnflushed(ctx, b.leases.Owner(), key)
	if err != nil {
		zerolog.Ctx(ctx).Error().Err(err).Msg("Flushes that are left could not be recorded as owed; the cursors stand")
	}
	return n
}

// handOver gives up the lease of a session that this replica is done with, so that another answers at once. It reports whether
// that is stored.
func (b *Bot) handOver(ctx context.Context, key sessions.Key) bool {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.CommitTimeout)
	defer stop()
	lease, ok := b.leases.Drop(key)
	if !ok {
		return false
	}
	if err := b.store.Release(ctx, lease); err != nil {
		zerolog.Ctx(ctx).Warn().EmbedObject(key).Err(err).Msg("Lease not handed over; it goes with the others")
		return false
	}
	return true
}

// flushAtStop flushes one session and says how many rows hold what it saved.
func (b *Bot) flushAtStop(ctx context.Context, key sessions.Key) (rows int, err error) {
	lease, err := b.leases.Get(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("take lease of session %s: %w", key, err)
	}
	log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", lease.Term).Logger()
	ctx = llm.WithWaiter(log.WithContext(ctx), key) // nobody needs the model more now
	out, err := b.worker.FlushAll(ctx, lease, upkeep.FlushShutdown)
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
