package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/llm"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/memory/extract"
	"ebb/sessions"
)

// What people do, as the compaction log tells it.
const (
	TriggerManual = "manual"
	TriggerUndo   = "undo"
)

// lowShare is the part of a day's tokens that work of low priority leaves the rest to.
const lowShare = 4

// spentLow reports whether a session has used up what owed and idle flushes, those of candidates, and digests may begin
// with: a quarter of the day's tokens, whatever took them. The rest is for compactions and the flushes before them, so
// that a debt that can't be settled, tried again and again, never keeps a view from getting shorter.
func spentLow(set compaction.Settings, s sessions.Session) bool {
	return set.DailyTokens > 0 && s.SpentToday >= max(1, set.DailyTokens/lowShare)
}

// soft is what a view at so many tokens calls for when no answer waits for it.
func (u *Worker) soft(v sessions.View, tokens int) compaction.Need {
	if set := u.views.Settings(v.Session); !set.Enabled || view.Spent(set, v.Session) {
		return compaction.Need{}
	}
	need := u.views.Decide(v, tokens)
	if need.Forced && u.now().Before(v.Session.CompactRetryAt) {
		need.Compact, need.Trigger = false, "" // the next turn tries it again: once a turn is enough
	}
	return need
}

// Due reports whether a view at so many tokens calls for maintenance.
func (u *Worker) Due(v sessions.View, tokens int) bool {
	need := u.soft(v, tokens)
	return need.Flush || need.Compact || u.rewriteDue(v)
}

// maxRounds bounds the compactions of one session in a row. What is due after that waits its turn behind others.
const maxRounds = 5

// Maintain is steps 9 to 11 for one session, after its reply was sent: it flushes and compacts what the context calls
// for. Its failures are logged and tried again later; they never reach the group.
func (u *Worker) Maintain(ctx context.Context, key sessions.Key) (more bool, err error) {
	if err := u.spare.Acquire(ctx, 1); err != nil {
		return false, nil
	}
	defer u.spare.Release(1)
	lease, err := u.leases.Get(ctx, key)
	if err != nil {
		return false, fmt.Errorf("take lease of session %s: %w", key, err)
	}
	log := zerolog.Ctx(ctx).With().EmbedObject(key).Int64("term", lease.Term).Logger()
	ctx = log.WithContext(ctx)
	for range maxRounds {
		again, err := u.maintainOnce(ctx, lease)
		if err != nil {
			log.Warn().Err(u.leases.Check(key, err)).Msg("Upkeep did not finish")
			return false, nil
		}
		if !again {
			return false, nil
		}
	}
	return true, nil
}

// maintainOnce does the one thing that the session needs first, and reports whether there may be another.
func (u *Worker) maintainOnce(ctx context.Context, l sessions.Lease) (again bool, err error) {
	ctx, stop := context.WithTimeout(ctx, u.cfg.CompactDeadline)
	defer stop()
	v, err := u.store.Begin(ctx, l, 0)
	if err != nil {
		return false, fmt.Errorf("read session %s: %w", l.Key, err)
	}
	u.views.Show(&v)
	switch need := u.soft(v, u.views.ContextSize(v)); {
	case u.rewriteDue(v):
		return true, u.rewrite(ctx, l)
	case need.Compact:
		done, err := u.Compact(ctx, l, "", 0, func(v sessions.View) string { return u.soft(v, u.views.ContextSize(v)).Trigger })
		switch {
		case err != nil && !NothingToCompact(err):
			return false, err
		case done.Outcome == OutcomeCommitted && done.EndSeq >= done.StartSeq:
			return true, nil
		case need.Flush: // nothing could leave, or results were only moved out: what is due besides is done all the same
			_, err = u.flushCycle(ctx, l)
			return false, err
		}
		return false, nil
	case need.Flush:
		_, err = u.flushCycle(ctx, l)
	case u.FactsDue(v.Session):
		_, err = u.FlushAll(ctx, l, u.factsTrigger())
	default:
		u.idle.note(v.Session, u.views.Settings(v.Session), u.now())
	}
	return false, err
}

// flushCycle makes the cycle's one flush, unless a run that was under way has made it.
func (u *Worker) flushCycle(ctx context.Context, l sessions.Lease) (extract.Outcome, error) {
	return u.flushAs(ctx, l, flushThreshold, func(s sessions.Session) (epoch int, due bool) {
		return s.CompactionCount, s.FlushEpoch != s.CompactionCount
	})
}

// FlushAll flushes what is not flushed yet, whatever the cycle says. The mark of the cycle stays: a short talk must not
// use up the flush that comes before its compaction.
func (u *Worker) FlushAll(ctx context.Context, l sessions.Lease, trigger string) (extract.Outcome, error) {
	return u.flushAs(ctx, l, trigger, func(s sessions.Session) (epoch int, due bool) { return s.FlushEpoch, s.FlushedSeq < s.LastSeq })
}

// flushAs flushes the session once it is ours, where it is due, and marks the cycle with epoch.
func (u *Worker) flushAs(
	ctx context.Context, l sessions.Lease, trigger string, as func(sessions.Session) (epoch int, due bool),
) (extract.Outcome, error) {
	unlock, err := u.Locks.lock(ctx, l.Key)
	if err != nil {
		return extract.Outcome{}, fmt.Errorf("wait for upkeep of session %s: %w", l.Key, err)
	}
	defer unlock()
	s, err := u.store.Session(ctx, l.Key)
	if err != nil {
		return extract.Outcome{}, fmt.Errorf("read session %s: %w", l.Key, err)
	}
	epoch, due := as(s)
	if !due {
		return extract.Outcome{}, nil
	}
	if trigger == flushDebt { // a compaction has forgiven the session, but not the debt
		d, err := u.memory.Owed(ctx, l.Key)
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return extract.Outcome{}, fmt.Errorf("read what session %s owes: %w", l.Key, err)
		}
		s.FlushFailures = max(s.FlushFailures, d.Failures)
	}
	return u.flush(ctx, l, s, epoch, s.LastSeq, trigger)
}

// What asks for a flush, as its receipt tells it.
const (
	flushThreshold  = "threshold"
	flushCompaction = "compaction"
	flushOverflow   = "overflow"
	flushManual     = "manual"
	FlushNew        = "new"
	flushIdle       = "idle"
	FlushShutdown   = "shutdown"
	flushDebt       = "debt"
	flushCandidates = "candidates"
	flushEveryTurn  = "every_turn"
)

// flush saves what matters of the session's events up to through, whatever asked for it: every path to memory comes through
// here, with the session's upkeep locked. What fails is recorded as owed.
func (u *Worker) flush(
	ctx context.Context, l sessions.Lease, s sessions.Session, epoch int, through int64, trigger string,
) (extract.Outcome, error) {
	log := zerolog.Ctx(ctx)
	log.Info().Str("trigger", trigger).Int64("from", s.FlushedSeq).Int64("through", through).Int("tokens", s.TotalTokens).Msg("Executing memory flush")
	flusher := *u.flusher
	if trigger == flushCandidates || trigger == flushEveryTurn {
		flusher.Model = llm.Plain{Model: u.model, Kind: llm.KindExtract}
	}
	out, err := flusher.Flush(ctx, extract.FlushRequest{
		Session: s, Lease: l, Through: through, Epoch: epoch, Trigger: trigger, Budget: u.flushBudget(s, trigger),
	})
	u.stats.Flushed(out, err)
	for _, seq := range out.Passed {
		log.Warn().Int64("event", seq).Msg("Event passed over by a memory flush: no model reads it, the rest goes on")
	}
	if len(out.Refused) > 0 {
		log.Info().Any("refused", out.Refused).Msg("Memory flush left out what is never kept")
	}
	if err == nil {
		log.Info().Str("outcome", out.String()).Ints64("memories", out.Receipt.Saved).Msg("Memory flush completed")
		return out, nil
	}
	lost := sessions.Spending{Kind: sessions.SpentFlush, Usage: out.Lost, Cost: out.LostCost}
	if errors.Is(err, sessions.ErrLeaseLost) {
		u.Charge(ctx, l.Key, lost)
		return out, err
	}
	owe, stop := context.WithTimeout(context.WithoutCancel(ctx), u.cfg.CommitTimeout)
	defer stop()
	failures := s.FlushFailures + 1
	switch {
	case errors.Is(context.Cause(ctx), llm.ErrStop), errors.Is(err, sessions.ErrConflict),
		out.Through > s.FlushedSeq && (errors.Is(err, extract.ErrSpent) || errors.Is(ctx.Err(), context.DeadlineExceeded)):
		failures = s.FlushFailures // cut off, the cursor was moved by another, or the range is longer than day or deadline: not failed
	}
	if oweErr := u.memory.Owe(owe, l, memory.Debt{Through: s.LastSeq, Failures: failures, Reason: FlushTrouble(err), Usage: lost.Usage, Cost: lost.Cost}); oweErr != nil {
		if sessions.IsFinal(oweErr) {
			u.Charge(ctx, l.Key, lost)
		}
		err = errors.Join(err, fmt.Errorf("record flush as owed: %w", oweErr))
	} else if failures == compaction.MaxFlushFailures && failures > s.FlushFailures {
		log.Warn().Str("reason", FlushTrouble(err)).Int64("from", s.FlushedSeq).Int64("through", s.LastSeq).
			Msg("Memory flush failed three times in a row: nothing is lost, the range is owed and tried again in the background")
	}
	return out, err
}

// flushBudget is what a flush may take of tokens; 0 for any number, where people ask for it. One of low priority ends where
// such work may not begin any more, and every other leaves half of the rest of the day to compactions.
func (u *Worker) flushBudget(s sessions.Session, trigger string) int {
	daily := u.views.Settings(s).DailyTokens
	switch trigger {
	case flushManual, FlushNew:
		return 0
	case flushDebt, flushIdle, flushCandidates:
		return min(daily, max(1, daily/lowShare-s.SpentToday))
	}
	return min(daily, max(1, (daily-s.SpentToday)/2))
}

// FlushTrouble is why a flush failed, in words that may stand in a table: never the provider's own.
func FlushTrouble(err error) string {
	switch {
	case errors.Is(err, draft.ErrNotSaved):
		return draft.ErrNotSaved.Error()
	case errors.Is(err, extract.ErrSpent):
		return extract.ErrSpent.Error()
	case errors.Is(err, extract.ErrUnusable):
		return extract.ErrUnusable.Error()
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "ran out of time"
	case errors.Is(err, sessions.ErrConflict):
		return "session changed meanwhile"
	case errors.Is(err, extract.ErrStorage):
		return "storage"
	}
	return "model error: " + string(llm.ClassOf(err))
}

// flushFirst makes sure that the cycle was flushed, as far as the events that are to leave the view, and says how that
// went. A conversation may have grown long past its flush while a summary was slow. A flush that fails does not hold
// the compaction up: its range stays owed and is read from the log later.
func (r *run) flushFirst(ctx context.Context, through int64) string {
	s, p, to := r.view.Session, r.set.Policy, r.flushTo(through)
	switch {
	case !p.Flush:
		return "off"
	case s.FlushedSeq >= through && (s.FlushEpoch == s.CompactionCount || to < s.LastSeq):
		return "done before"
	case s.FlushFailures >= compaction.MaxFlushFailures:
		return "owed"
	case p.FlushLag > 0 && r.unflushed() < p.FlushLag:
		return "later"
	}
	// Half of the time is the summary's: a flush that is late can be made up for, an answer that is late can't.
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
	out, err := r.flush(ctx, r.lease, s, s.CompactionCount, to, trigger)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Memory flush did not come through, range is owed")
		return "owed"
	}
	r.Facts, r.saved = out.Facts, out.Receipt.Saved
	return out.String()
}

// flushTo is the last event that the flush of an attempt reads: the newest, or of a backlog as much as one part tells and
// all that leaves. The rest is read with the parts to come.
func (r *run) flushTo(through int64) int64 {
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

// unflushed is about how many tokens the log holds after the flush cursor. What left the view is taken to be like what
// is in it.
func (r *run) unflushed() int {
	if len(r.whole) == 0 {
		return 0
	}
	each := compaction.TokensOf(r.whole) / len(r.whole)
	return each * int(r.view.Session.LastSeq-r.view.Session.FlushedSeq)
}
