package bot

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ebb/bot/upkeep"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// drain finishes the work in progress after intake has ended. Turns and their replies have one deadline. Flushes of
// active sessions have another, which begins when the turns are done. Sessions without a turn are flushed and handed
// over at once. Pending messages, unsent replies and owed flushes stay in the storage.
func (b *Bot) drain(ctx context.Context, stop stops) {
	close(b.draining)
	log := zerolog.Ctx(ctx)
	began := time.Now()
	log.Info().Int("turns", b.turns.Live()).Int("replies", b.outbox.Waiting()).Msg("Draining")
	b.turns.Close(b.noteWaiting)
	b.upkeep.Close(func(sessions.Key) {}) // only flushes of active sessions run from here on
	last := b.last
	flush, cut := context.WithCancelCause(ctx)
	defer cut(llm.ErrStop)
	var drained atomic.Bool
	var idle, handing errgroup.Group
	leaving, stopLeaving := context.WithCancel(ctx)
	defer stopLeaving()
	handing.Go(func() error { b.handOverWaiting(leaving, flush); return nil })
	idle.Go(func() error {
		// All sessions that remain are flushed in one order.
		b.flushActive(flush, func(key sessions.Key) bool { return drained.Load() || b.turns.Busy(key) || b.outbox.Holds(key) })
		return nil
	})
	left := 0
	finish(ctx, b.cfg.Drain, func(cause error) { left = b.turns.Live(); stop.turns(cause) }, b.shared.CommitTimeout, b.turns.Wait)
	b.outbox.Close()
	if finish(ctx, max(time.Second, b.cfg.Drain-time.Since(began)), stop.outbox, b.shared.CommitTimeout, b.outbox.Wait) {
		b.releaseReplies(ctx)
	}
	finish(ctx, time.Second, stop.outbox, b.shared.CommitTimeout, b.refuser.Wait)
	finish(ctx, time.Second, stop.outbox, b.shared.CommitTimeout, b.alarm.Wait)
	finish(ctx, upkeepGrace, stop.upkeep, b.shared.CommitTimeout, b.upkeep.Wait)
	log.Info().Dur("took_ms", time.Since(began)).Int("turns_left", left).Int("replies_left", b.outbox.Waiting()).Msg("Drained")
	drained.Store(true)
	defer time.AfterFunc(b.cfg.Flush, func() { cut(llm.ErrStop) }).Stop()
	b.flushActive(flush, func(sessions.Key) bool { return false })
	stopLeaving()
	for _, g := range []*errgroup.Group{&idle, &last.work, &handing} {
		_ = g.Wait() // its functions return no errors
	}
	sum := &last.sum
	sum.owed.Add(int64(b.recordOwed(ctx, "")))
	b.restarts.flushed.Store(sum.saved.Load() + sum.nothing.Load())
	b.restarts.debt.Store(sum.owed.Load())
	sum.log(log, time.Since(began))
}

type stops struct{ turns, upkeep, outbox context.CancelCauseFunc }

// upkeepGrace is how long a running flush or compaction may continue after the turns. A cancelled one changes nothing:
// the flush at the stop reads the same events.
const upkeepGrace = 2 * time.Second

// releaseReplies marks the queued replies as not being sent, or the next process would count each as possibly
// delivered. It does nothing while an attempt is not recorded.
func (b *Bot) releaseReplies(ctx context.Context) {
	if b.outbox.HasUnmarked() {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), b.shared.CommitTimeout)
	defer stop()
	if err := b.store.Outbox.PutDown(ctx, b.shared.Leases.Owner()); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to release queued replies; they may be sent twice")
	}
}

// finish cancels work at its deadline, and waits briefly for its cleanup. It reports whether nothing was cancelled.
func finish(ctx context.Context, deadline time.Duration, cancel context.CancelCauseFunc, grace time.Duration, wait func(context.Context) error) bool {
	soft, stop := context.WithTimeout(ctx, deadline)
	defer stop()
	if wait(soft) == nil {
		return true
	}
	cancel(llm.ErrStop)
	hard, stop := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer stop()
	_ = wait(hard) // work that ignores the cancellation ends with the process
	return false
}

const maxShutdownFlushes = 16

// saved counts flushes that rows prove, new ones or known ones. facts are new, and known are those that memory had already.
type flushSum struct{ saved, nothing, owed, facts, known atomic.Int64 }

// add counts a flush by its receipt.
func (s *flushSum) add(r memory.Receipt) {
	if r.Rows() > 0 {
		s.saved.Add(1)
	} else {
		s.nothing.Add(1)
	}
	s.facts.Add(int64(len(r.Saved)))
	s.known.Add(int64(len(r.Duplicate)))
}

func (s *flushSum) log(log *zerolog.Logger, took time.Duration) {
	flushed := s.saved.Load() + s.nothing.Load()
	log.Info().Int64("sessions", flushed+s.owed.Load()).Int64("flushed", flushed).Int64("saved", s.saved.Load()).
		Int64("nothing_to_save", s.nothing.Load()).Int64("owed", s.owed.Load()).Int64("memories", s.facts.Load()).
		Int64("known", s.known.Load()).
		Dur("took_ms", took).Msg("Shutdown memory flush summary")
}

// lastFlush flushes each session at a stop once.
type lastFlush struct {
	sum   flushSum
	work  errgroup.Group
	mu    sync.Mutex
	begun map[sessions.Key]*oneFlush
}

type oneFlush struct {
	ctx  context.Context
	cut  context.CancelCauseFunc
	done chan struct{}
}

func (o *oneFlush) end() {
	o.cut(nil)
	close(o.done)
}

func newLastFlush() *lastFlush {
	f := &lastFlush{begun: map[sessions.Key]*oneFlush{}}
	f.work.SetLimit(maxShutdownFlushes)
	return f
}

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

// flushActive starts with the most unflushed session. It omits sessions to skip, and those not started when ctx ends.
func (b *Bot) flushActive(ctx context.Context, skip func(sessions.Key) bool) {
	log := zerolog.Ctx(ctx)
	active, err := b.memory.Flushes.Unflushed(ctx, b.shared.Leases.Owner())
	if err != nil {
		log.Error().Err(err).Msg("Failed to list unflushed sessions; the next process flushes them")
	}
	for _, u := range active {
		if skip(u.Key) {
			continue
		}
		b.last.work.Go(func() error {
			if ctx.Err() != nil || skip(u.Key) { // ctx may have ended while the flush waited for a slot
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

// If ctx ends first, the flush is owed, and the lease handed over with all others.
func (b *Bot) flushLast(ctx context.Context, one *oneFlush, u memory.UnflushedSession) {
	sum := &b.last.sum
	receipt, err := b.flushAtStop(one.ctx, u.Key)
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case errors.Is(err, sessions.ErrLeaseHeld), errors.Is(err, sessions.ErrNotFound):
		return // another replica owns the session by now, or it was deleted
	case err != nil:
		owed := b.recordOwed(ctx, u.Key)
		if b.handOver(ctx, u.Key) && owed > 0 {
			sum.owed.Add(1)
			zerolog.Ctx(ctx).Warn().EmbedObject(u.Key).Int("tokens", u.Tokens).Err(err).Msg("Session not flushed at the stop, range is owed")
		}
		return
	}
	sum.add(receipt)
	b.handOver(ctx, u.Key)
}

// recordOwed lets another replica repeat unfinished flushes soon. It returns their number. An empty key means all
// sessions that this replica holds.
func (b *Bot) recordOwed(ctx context.Context, key sessions.Key) int {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), b.shared.CommitTimeout)
	defer stop()
	n, err := b.memory.Flushes.OweUnflushed(ctx, b.shared.Leases.Owner(), key)
	if err != nil {
		zerolog.Ctx(ctx).Error().Err(err).Msg("Failed to record owed flushes; the cursors stand")
	}
	return n
}

// handOver releases a lease, also one whose term an erasure ended: another replica answers at once. It reports whether
// the release is stored.
func (b *Bot) handOver(ctx context.Context, key sessions.Key) bool {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), b.shared.CommitTimeout)
	defer stop()
	if !b.shared.Leases.Holds(key) {
		return false
	}
	err := b.shared.Leases.Do(ctx, key, func(l sessions.Lease) error { return b.store.Leases.Release(ctx, l) })
	b.shared.Leases.Drop(key)
	if errors.Is(err, sessions.ErrLeaseHeld) || errors.Is(err, sessions.ErrNotFound) {
		return false // another replica owns the session by now, or it was deleted
	}
	if err != nil {
		zerolog.Ctx(ctx).Warn().EmbedObject(key).Err(err).Msg("Failed to hand over a lease; it is released with the others")
		return false
	}
	return true
}

func (b *Bot) flushAtStop(ctx context.Context, key sessions.Key) (receipt memory.Receipt, err error) {
	ctx = llm.WithWaiter(ctx, key) // a last flush has the priority of a turn
	err = b.shared.Leases.Do(ctx, key, func(l sessions.Lease) error {
		log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", l.Term).Logger()
		out, err := b.worker.FlushAll(log.WithContext(ctx), l, upkeep.FlushShutdown)
		receipt = out.Receipt
		return err
	})
	return receipt, err
}

func (b *Bot) resign(ctx context.Context) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), b.shared.CommitTimeout)
	defer stop()
	n, err := b.store.Leases.Resign(ctx, b.shared.Leases.Owner())
	if err != nil {
		// The heartbeat ends with the process; others take over when it is stale.
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to release the leases")
		return nil
	}
	zerolog.Ctx(ctx).Info().Int("leases", n).Msg("Leases released")
	return nil
}
