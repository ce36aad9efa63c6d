package bot

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ebb/bot/parts"
	"ebb/bot/upkeep"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
)

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
	shared  *parts.Shared
	flushes memory.Flushes
	leases  sessions.Leases
	worker  *upkeep.Worker

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

func newLastFlush(s *parts.Shared, flushes memory.Flushes, leases sessions.Leases, w *upkeep.Worker) *lastFlush {
	f := &lastFlush{shared: s, flushes: flushes, leases: leases, worker: w, begun: map[sessions.Key]*oneFlush{}}
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
func (f *lastFlush) flushActive(ctx context.Context, skip func(sessions.Key) bool) {
	log := zerolog.Ctx(ctx)
	active, err := f.flushes.Unflushed(ctx, f.shared.Leases.Owner())
	if err != nil {
		log.Error().Err(err).Msg("Failed to list unflushed sessions; the next process flushes them")
	}
	for _, u := range active {
		if skip(u.Key) {
			continue
		}
		f.work.Go(func() error {
			if ctx.Err() != nil || skip(u.Key) { // ctx may have ended while the flush waited for a slot
				return nil
			}
			if one, first := f.begin(ctx, u.Key); first {
				defer one.end()
				f.flushOne(ctx, one, u)
			}
			return nil
		})
	}
}

// flushOne flushes a session and hands it over. If ctx ends first, the flush is owed, and the lease handed over with all others.
func (f *lastFlush) flushOne(ctx context.Context, one *oneFlush, u memory.UnflushedSession) {
	sum := &f.sum
	receipt, err := f.flushAtStop(one.ctx, u.Key)
	switch {
	case err != nil && ctx.Err() != nil:
		return
	case errors.Is(err, sessions.ErrLeaseHeld), errors.Is(err, sessions.ErrNotFound):
		return // another replica owns the session by now, or it was deleted
	case err != nil:
		owed := f.recordOwed(ctx, u.Key)
		if f.handOver(ctx, u.Key) && owed > 0 {
			sum.owed.Add(1)
			zerolog.Ctx(ctx).Warn().EmbedObject(u.Key).Int("tokens", u.Tokens).Err(err).Msg("Session not flushed at the stop, range is owed")
		}
		return
	}
	sum.add(receipt)
	f.handOver(ctx, u.Key)
}

// recordOwed lets another replica repeat unfinished flushes soon. It returns their number. An empty key means all
// sessions that this replica holds.
func (f *lastFlush) recordOwed(ctx context.Context, key sessions.Key) int {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), f.shared.CommitTimeout)
	defer stop()
	n, err := f.flushes.OweUnflushed(ctx, f.shared.Leases.Owner(), key)
	if err != nil {
		zerolog.Ctx(ctx).Error().Err(err).Msg("Failed to record owed flushes; the cursors stand")
	}
	return n
}

// handOver releases a lease, also one whose term an erasure ended: another replica answers at once. It reports whether
// the release is stored.
func (f *lastFlush) handOver(ctx context.Context, key sessions.Key) bool {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), f.shared.CommitTimeout)
	defer stop()
	if !f.shared.Leases.Holds(key) {
		return false
	}
	err := f.shared.Leases.Do(ctx, key, func(l sessions.Lease) error { return f.leases.Release(ctx, l) })
	f.shared.Leases.Drop(key)
	if errors.Is(err, sessions.ErrLeaseHeld) || errors.Is(err, sessions.ErrNotFound) {
		return false // another replica owns the session by now, or it was deleted
	}
	if err != nil {
		zerolog.Ctx(ctx).Warn().EmbedObject(key).Err(err).Msg("Failed to hand over a lease; it is released with the others")
		return false
	}
	return true
}

func (f *lastFlush) flushAtStop(ctx context.Context, key sessions.Key) (receipt memory.Receipt, err error) {
	ctx = llm.WithWaiter(ctx, key) // a last flush has the priority of a turn
	err = f.shared.Leases.Do(ctx, key, func(l sessions.Lease) error {
		log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", l.Term).Logger()
		out, err := f.worker.FlushAll(log.WithContext(ctx), l, upkeep.FlushShutdown)
		receipt = out.Receipt
		return err
	})
	return receipt, err
}
