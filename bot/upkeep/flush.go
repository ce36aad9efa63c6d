package upkeep

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/memory/extract"
	"ebb/sessions"
	"ebb/sessions/llm"
)

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

// flusher draws facts from ranges of the log.
type flusher struct {
	shared   *parts.Shared
	views    *view.Builder
	sessions Sessions
	store    Flushes
	extracts extract.Flusher // without a model's name
	locks    *locks
	marker   marker
	accuser  accuser
	charger  charger
	stats    Stats
}

// extractor is that of a session, with its model and language.
func (f *flusher) extractor(key sessions.Key) *extract.Flusher {
	x, set := f.extracts, f.shared.Current.For(key)
	x.Name, x.Context, x.Language = set.SummaryModel, set.Compaction.Window.Context, f.shared.Language(key)
	x.Talk, x.Reads = func(events []sessions.Event) []sessions.Event { return f.accuser.readable(key, events) }, f.accuser.reads(key)
	return &x
}

func (f *flusher) cycle(ctx context.Context, l sessions.Lease) (extract.Outcome, error) {
	return f.ifDue(ctx, l, flushThreshold, func(s sessions.Session) (epoch int, due bool) {
		return s.CompactionCount, s.FlushEpoch != s.CompactionCount
	})
}

// all flushes all events after the cursor. The cycle's mark stays, so that the flush before the next compaction
// still runs.
func (f *flusher) all(ctx context.Context, l sessions.Lease, trigger memory.FlushTrigger) (extract.Outcome, error) {
	return f.ifDue(ctx, l, trigger, func(s sessions.Session) (epoch int, due bool) { return s.FlushEpoch, s.FlushedSeq < s.LastSeq })
}

// ifDue marks the cycle with epoch, if as reports that a flush is due.
func (f *flusher) ifDue(
	ctx context.Context, l sessions.Lease, trigger memory.FlushTrigger, as func(sessions.Session) (epoch int, due bool),
) (extract.Outcome, error) {
	unlock, err := f.locks.lock(ctx, l.Key)
	if err != nil {
		return extract.Outcome{}, fmt.Errorf("wait for upkeep: %w", err)
	}
	defer unlock()
	s, err := f.sessions.Session(ctx, l.Key)
	if err != nil {
		return extract.Outcome{}, err
	}
	epoch, due := as(s)
	if !due {
		return extract.Outcome{}, nil
	}
	end, err := f.marker.begin(ctx, l)
	if err != nil {
		return extract.Outcome{}, err
	}
	defer end()
	if trigger == flushDebt { // a compaction resets the session's failures, but not those of the owed flush
		d, err := f.store.Owed(ctx, l.Key)
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return extract.Outcome{}, err
		}
		s.FlushFailures = max(s.FlushFailures, d.Failures)
	}
	return f.flush(ctx, l, s, epoch, s.LastSeq, trigger)
}

// flush needs the session's lock. A failure is recorded as an owed flush.
func (f *flusher) flush(
	ctx context.Context, l sessions.Lease, s sessions.Session, epoch int, through int64, trigger memory.FlushTrigger,
) (extract.Outcome, error) {
	log := zerolog.Ctx(ctx)
	log.Info().Str("trigger", string(trigger)).Int64("from", s.FlushedSeq).Int64("through", through).Int("tokens", s.TotalTokens).Msg("Executing memory flush")
	extractor := f.extractor(l.Key)
	if trigger == flushCandidates || trigger == flushEveryTurn {
		extractor.Kind = llm.KindExtract
	}
	out, err := extractor.Flush(ctx, extract.FlushRequest{
		Session: s, Lease: l, Through: through, Epoch: epoch, Trigger: trigger, Budget: f.budget(s, trigger),
	})
	f.stats.Flushed(out, err)
	for _, seq := range out.Passed {
		log.Warn().Int64("event", seq).Msg("Event passed over by a memory flush: no model reads it, the rest goes on")
	}
	f.accuser.withholdFaulted(ctx, l, out.Faulted)
	if len(out.Refused) > 0 {
		log.Info().Any("refused", out.Refused).Msg("Memory flush skipped excluded facts")
	}
	if err == nil {
		log.Info().Str("outcome", out.String()).Ints64("memories", out.Receipt.Saved).Msg("Memory flush completed")
		return out, nil
	}
	lost := sessions.Spending{Kind: sessions.SpentFlush, Usage: out.Lost, Cost: out.LostCost, Model: out.LostModel}
	if errors.Is(err, sessions.ErrLeaseLost) {
		f.charger.charge(ctx, l.Key, lost)
		return out, err
	}
	owe, stop := context.WithTimeout(context.WithoutCancel(ctx), f.shared.CommitTimeout)
	defer stop()
	failures := s.FlushFailures + 1
	switch {
	case errors.Is(context.Cause(ctx), llm.ErrStop), errors.Is(err, sessions.ErrConflict),
		out.Through > s.FlushedSeq && (errors.Is(err, extract.ErrSpent) || errors.Is(ctx.Err(), context.DeadlineExceeded)):
		failures = s.FlushFailures // interrupted, overtaken, or longer than the budget or deadline: no failure
	}
	if oweErr := f.store.Owe(owe, l, memory.Debt{Through: s.LastSeq, Failures: failures, Reason: flushFailureReason(err), Usage: lost.Usage, Cost: lost.Cost, Model: lost.Model}); oweErr != nil {
		if sessions.IsFinal(oweErr) {
			f.charger.charge(ctx, l.Key, lost)
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

// budget is 0, no limit, for flushes that people request. One outside the low-priority budget leaves half of the
// remaining day to compactions.
func (f *flusher) budget(s sessions.Session, trigger memory.FlushTrigger) int {
	daily := f.views.Choices.Settings(s).DailyTokens
	switch trigger {
	case flushManual, FlushNew:
		return 0
	case flushDebt, flushIdle, flushCandidates:
		return min(daily, max(1, daily/lowShare-s.SpentToday))
	}
	return min(daily, max(1, (daily-s.SpentToday)/2))
}

// factsDue reports whether new events are to be flushed whatever the size of the context: after each turn, or when
// enough messages are candidates. It does not replace the cycle's flush. A flush after each turn may use the whole
// daily budget, one for candidates only the low-priority part.
func (f *flusher) factsDue(s sessions.Session) bool {
	set, want := f.views.Choices.Settings(s), f.views.Memory.Remember
	if s.FlushedSeq >= s.LastSeq || s.FlushFailures >= compaction.MaxFlushFailures {
		return false
	}
	if want.EveryTurn {
		return !view.Spent(set, s)
	}
	return want.Candidates > 0 && s.Candidates >= want.Candidates && set.Policy.Flush && !lowBudgetSpent(set, s)
}

func (f *flusher) factsTrigger() memory.FlushTrigger {
	if f.views.Memory.Remember.EveryTurn {
		return flushEveryTurn
	}
	return flushCandidates
}
