package bot

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"ebb/bot/outbox"
	"ebb/bot/parts"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/serial"
)

// drain is the stop of a replica.
type drain struct {
	shared   *parts.Shared
	began    chan struct{} // closed at the beginning
	turns    *serial.Mailboxes
	upkeep   *serial.Mailboxes
	outbox   *outbox.Outbox
	replies  sessions.Outbox
	leases   sessions.Leases
	refusals func(context.Context) error // waits for refusals in delivery
	alarms   func(context.Context) error // waits for notices to administrators
	last     *lastFlush
	leaving  *handover
	restarts *restartStats
	// turnTime is for turns in flight, and flushTime for flushes after that.
	turnTime, flushTime time.Duration
}

// run finishes the work in progress after intake has ended. Turns and their replies have one deadline. Flushes of
// active sessions have another, which begins when the turns are done. Sessions without a turn are flushed and handed
// over at once. Pending messages, unsent replies and owed flushes stay in the storage.
func (d *drain) run(ctx context.Context, stop stops) {
	close(d.began)
	log := zerolog.Ctx(ctx)
	began := time.Now()
	log.Info().Int("turns", d.turns.Live()).Int("replies", d.outbox.Waiting()).Msg("Draining")
	d.turns.Close(d.leaving.noteWaiting)
	d.upkeep.Close(func(sessions.Key) {}) // only flushes of active sessions run from here on
	flush, cut := context.WithCancelCause(ctx)
	defer cut(llm.ErrStop)
	var drained atomic.Bool
	var idle, handing errgroup.Group
	leaving, stopLeaving := context.WithCancel(ctx)
	defer stopLeaving()
	handing.Go(func() error { d.leaving.handOverWaiting(leaving, flush); return nil })
	idle.Go(func() error {
		// All sessions that remain are flushed in one order.
		d.last.flushActive(flush, func(key sessions.Key) bool { return drained.Load() || d.turns.Busy(key) || d.outbox.Holds(key) })
		return nil
	})
	left := 0
	finish(ctx, d.turnTime, func(cause error) { left = d.turns.Live(); stop.turns(cause) }, d.shared.CommitTimeout, d.turns.Wait)
	d.outbox.Close()
	if finish(ctx, max(time.Second, d.turnTime-time.Since(began)), stop.outbox, d.shared.CommitTimeout, d.outbox.Wait) {
		d.releaseReplies(ctx)
	}
	finish(ctx, time.Second, stop.outbox, d.shared.CommitTimeout, d.refusals)
	finish(ctx, upkeepGrace, stop.upkeep, d.shared.CommitTimeout, d.upkeep.Wait)
	log.Info().Dur("took_ms", time.Since(began)).Int("turns_left", left).Int("replies_left", d.outbox.Waiting()).Msg("Drained")
	drained.Store(true)
	defer time.AfterFunc(d.flushTime, func() { cut(llm.ErrStop) }).Stop()
	d.last.flushActive(flush, func(sessions.Key) bool { return false })
	stopLeaving()
	for _, g := range []*errgroup.Group{&idle, &d.last.work, &handing} {
		_ = g.Wait() // its functions return no errors
	}
	finish(ctx, time.Second, func(error) {}, d.shared.CommitTimeout, d.alarms) // flushes ask models too
	sum := &d.last.sum
	sum.owed.Add(int64(d.last.recordOwed(ctx, "")))
	d.restarts.flushed.Store(sum.saved.Load() + sum.nothing.Load())
	d.restarts.debt.Store(sum.owed.Load())
	sum.log(log, time.Since(began))
}

type stops struct{ turns, upkeep, outbox context.CancelCauseFunc }

// upkeepGrace is how long a running flush or compaction may continue after the turns. A cancelled one changes nothing:
// the flush at the stop reads the same events.
const upkeepGrace = 2 * time.Second

// releaseReplies marks the queued replies as not being sent, or the next process would count each as possibly
// delivered. It does nothing while an attempt is not recorded.
func (d *drain) releaseReplies(ctx context.Context) {
	if d.outbox.HasUnmarked() {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), d.shared.CommitTimeout)
	defer stop()
	if err := d.replies.PutDown(ctx, d.shared.Leases.Owner()); err != nil {
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

func (d *drain) resign(ctx context.Context) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), d.shared.CommitTimeout)
	defer stop()
	n, err := d.leases.Resign(ctx, d.shared.Leases.Owner())
	if err != nil {
		// The heartbeat ends with the process; others take over when it is stale.
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to release the leases")
		return nil
	}
	zerolog.Ctx(ctx).Info().Int("leases", n).Msg("Leases released")
	return nil
}
