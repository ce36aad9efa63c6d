package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/memory/extract"
	"ebb/sessions"
	"ebb/sessions/llm"
)

func (u *Worker) flushCycle(ctx context.Context, l sessions.Lease) (extract.Outcome, error) {
	return u.flushIfDue(ctx, l, flushThreshold, func(s sessions.Session) (epoch int, due bool) {
		return s.CompactionCount, s.FlushEpoch != s.CompactionCount
	})
}

// FlushAll flushes all events after the cursor. The cycle's mark stays, so that the flush before the next compaction
// still runs.
func (u *Worker) FlushAll(ctx context.Context, l sessions.Lease, trigger memory.FlushTrigger) (extract.Outcome, error) {
	return u.flushIfDue(ctx, l, trigger, func(s sessions.Session) (epoch int, due bool) { return s.FlushEpoch, s.FlushedSeq < s.LastSeq })
}

// flushIfDue marks the cycle with epoch, if as reports that a flush is due.
func (u *Worker) flushIfDue(
	ctx context.Context, l sessions.Lease, trigger memory.FlushTrigger, as func(sessions.Session) (epoch int, due bool),
) (extract.Outcome, error) {
	unlock, err := u.locks.lock(ctx, l.Key)
	if err != nil {
		return extract.Outcome{}, fmt.Errorf("wait for upkeep: %w", err)
	}
	defer unlock()
	s, err := u.store.Sessions.Session(ctx, l.Key)
	if err != nil {
		return extract.Outcome{}, err
	}
	epoch, due := as(s)
	if !due {
		return extract.Outcome{}, nil
	}
	end, err := u.markUpkeep(ctx, l)
	if err != nil {
		return extract.Outcome{}, err
	}
	defer end()
	if trigger == flushDebt { // a compaction resets the session's failures, but not those of the owed flush
		d, err := u.memory.Flushes.Owed(ctx, l.Key)
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return extract.Outcome{}, err
		}
		s.FlushFailures = max(s.FlushFailures, d.Failures)
	}
	return u.flush(ctx, l, s, epoch, s.LastSeq, trigger)
}

// The triggers of flushes in their receipts.
const (
	flushThreshold  memory.FlushTrigger = "threshold"
	flushCompaction memory.FlushTrigger = "compaction"
	flushOverflow   memory.FlushTrigger = "overflow"
	flushManual     memory.FlushTrigger = "manual"
	FlushNew        memory.FlushTrigger = "new"
	flushIdle       memory.FlushTrigger = "idle"
	FlushShutdown   memory.FlushTrigger = "shutdown"
	flushDebt       memory.FlushTrigger = "debt"
	flushCandidates memory.FlushTrigger = "candidates"
	flushEveryTurn  memory.FlushTrigger = "every_turn"
)

// flush needs the session's lock. A failure is recorded as an owed flush.
func (u *Worker) flush(
	ctx context.Context, l sessions.Lease, s sessions.Session, epoch int, through int64, trigger memory.FlushTrigger,
) (extract.Outcome, error) {
	log := zerolog.Ctx(ctx)
	log.Info().Str("trigger", string(trigger)).Int64("from", s.FlushedSeq).Int64("through", through).Int("tokens", s.TotalTokens).Msg("Executing memory flush")
	flusher := u.flushes(l.Key)
	if trigger == flushCandidates || trigger == flushEveryTurn {
		flusher.Kind = llm.KindExtract
	}
	out, err := flusher.Flush(ctx, extract.FlushRequest{
		Session: s, Lease: l, Through: through, Epoch: epoch, Trigger: trigger, Budget: u.flushBudget(s, trigger),
	})
	u.stats.Flushed(out, err)
	for _, seq := range out.Passed {
		log.Warn().Int64("event", seq).Msg("Event passed over by a memory flush: no model reads it, the rest goes on")
	}
	u.accuser.withholdFaulted(ctx, l, out.Faulted)
	if len(out.Refused) > 0 {
		log.Info().Any("refused", out.Refused).Msg("Memory flush skipped excluded facts")
	}
	if err == nil {
		log.Info().Str("outcome", out.String()).Ints64("memories", out.Receipt.Saved).Msg("Memory flush completed")
		return out, nil
	}
	lost := sessions.Spending{Kind: sessions.SpentFlush, Usage: out.Lost, Cost: out.LostCost, Model: out.LostModel}
	if errors.Is(err, sessions.ErrLeaseLost) {
		u.Charge(ctx, l.Key, lost)
		return out, err
	}
	owe, stop := context.WithTimeout(context.WithoutCancel(ctx), u.shared.CommitTimeout)
	defer stop()
	failures := s.FlushFailures + 1
	switch {
	case errors.Is(context.Cause(ctx), llm.ErrStop), errors.Is(err, sessions.ErrConflict),
		out.Through > s.FlushedSeq && (errors.Is(err, extract.ErrSpent) || errors.Is(ctx.Err(), context.DeadlineExceeded)):
		failures = s.FlushFailures // interrupted, overtaken, or longer than the budget or deadline: no failure
	}
	if oweErr := u.memory.Flushes.Owe(owe, l, memory.Debt{Through: s.LastSeq, Failures: failures, Reason: flushFailureReason(err), Usage: lost.Usage, Cost: lost.Cost, Model: lost.Model}); oweErr != nil {
		if sessions.IsFinal(oweErr) {
			u.Charge(ctx, l.Key, lost)
		}
		err = errors.Join(err, fmt.Errorf("record flush as owed: %w", oweErr))
	} else if failures == compaction.MaxFlushFailures && failures > s.FlushFailures {
		log.Warn().Str("reason", flushFailureReason(err)).Int64("from", s.FlushedSeq).Int64("through", s.LastSeq).
			Msg("Memory flush failed three times in a row: nothing is lost, the range is owed and tried again in the background")
	}
	return out, err
}

// The reasons besides errors of models and of package extract.
const (
	owedTime    = "ran out of time"
	owedChanged = "session changed meanwhile"
	owedStorage = "storage"
)

// flushFailureReason leaves out a provider's own text.
func flushFailureReason(err error) string {
	switch {
	case errors.Is(err, draft.ErrNotSaved):
		return draft.ErrNotSaved.Error()
	case errors.Is(err, extract.ErrSpent):
		return extract.ErrSpent.Error()
	case errors.Is(err, extract.ErrUnusable):
		return extract.ErrUnusable.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return owedTime
	case errors.Is(err, sessions.ErrConflict):
		return owedChanged
	case errors.Is(err, extract.ErrStorage):
		return owedStorage
	}
	return "model error: " + string(llm.ClassOf(err))
}

// The outcomes of a flush before a cut, besides those of [extract.Outcome].
const (
	FlushedOff    sessions.FlushOutcome = "off"
	FlushedBefore sessions.FlushOutcome = "done before"
	FlushedOwed   sessions.FlushOutcome = "owed"
	FlushedLater  sessions.FlushOutcome = "later"
)

// flushBeforeCut flushes the events that are to leave the view. A failure does not delay the compaction: the range
// stays owed and is read from the log later.
func (r *run) flushBeforeCut(ctx context.Context, through int64) sessions.FlushOutcome {
	s, p, to := r.view.Session, r.set.Policy, r.flushEnd(through)
	switch {
	case !p.Flush:
		return FlushedOff
	case s.FlushedSeq >= through && (s.FlushEpoch == s.CompactionCount || to < s.LastSeq):
		return FlushedBefore
	case s.FlushFailures >= compaction.MaxFlushFailures:
		return FlushedOwed
	case p.FlushLag > 0 && r.unflushedTokens() < p.FlushLag:
		return FlushedLater
	}
	// The summary gets half of the time: a late flush can be repeated, a late answer can't.
	if deadline, ok := ctx.Deadline(); ok {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer stop()
	}
	trigger := flushCompaction
	switch r.Trigger {
	case TriggerManual:
		trigger = flushManual
	case compaction.TriggerOverflow:
		trigger = flushOverflow
	}
	out, err := r.worker.flush(ctx, r.lease, s, s.CompactionCount, to, trigger)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory flush failed, range is owed")
		return FlushedOwed
	}
	r.Memory = out.Receipt
	return sessions.FlushOutcome(out.String())
}

// flushEnd is the newest event, or in a backlog as much as one part summarizes, and at least through.
func (r *run) flushEnd(through int64) int64 {
	s := r.view.Session
	room, to := r.set.Window.Counted(s.CalibrationFactor).Context/2, through
	for _, e := range r.whole {
		if e.Seq <= s.FlushedSeq {
			continue
		}
		if room -= e.Tokens + tokens.MessageOverhead; room < 0 && e.Seq > through {
			return to
		}
		to = max(to, e.Seq)
	}
	return s.LastSeq
}

// unflushedTokens is an estimate from the average event of the view.
func (r *run) unflushedTokens() int {
	if len(r.whole) == 0 {
		return 0
	}
	each := compaction.TokensOf(r.whole) / len(r.whole)
	return each * int(r.view.Session.LastSeq-r.view.Session.FlushedSeq)
}
