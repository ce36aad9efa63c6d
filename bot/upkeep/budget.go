package upkeep

import (
	"context"
	"errors"
	"time"

	"ebb/bot/view"
	"ebb/compaction"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/periodic"
)

// Charge counts the tokens of model calls that have no row of their own.
func (u *Worker) Charge(ctx context.Context, key sessions.Key, one sessions.Spending) {
	if one.Usage == (sessions.Usage{}) && one.Cost == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), u.shared.CommitTimeout)
	defer stop()
	if err := u.store.Ledger.Charge(ctx, key, one); err != nil {
		periodic.LogFailure(ctx, err, "Tokens of model calls could not be counted")
	}
}

const lowShare = 4

// lowBudgetSpent reports whether a session has spent a quarter of its daily tokens. Owed flushes, idle flushes, flushes
// of candidates and digests do not start after that. The rest is for compactions and the flushes before them, so that
// repeated failures never stop a view from shrinking.
func lowBudgetSpent(set compaction.Settings, s sessions.Session) bool {
	return set.DailyTokens > 0 && s.SpentToday >= max(1, set.DailyTokens/lowShare)
}

// flushBudget is 0, no limit, for flushes that people request. One outside the low-priority budget leaves half of the
// remaining day to compactions.
func (u *Worker) flushBudget(s sessions.Session, trigger memory.FlushTrigger) int {
	daily := u.views.Settings(s).DailyTokens
	switch trigger {
	case flushManual, FlushNew:
		return 0
	case flushDebt, flushIdle, flushCandidates:
		return min(daily, max(1, daily/lowShare-s.SpentToday))
	}
	return min(daily, max(1, (daily-s.SpentToday)/2))
}

type unboundedKey struct{}

// attemptContext has the deadline of one attempt, which [run.extendDeadline] may extend.
func attemptContext(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithValue(ctx, unboundedKey{}, ctx), limit)
}

// extendDeadline adds the time of an attempt for each further chunk that offloaded results make. An answer that waits for
// a compaction keeps its deadline.
func (r *run) extendDeadline(ctx context.Context, cut compaction.Cut) (context.Context, context.CancelFunc) {
	whole, extends := ctx.Value(unboundedKey{}).(context.Context)
	more := (cut.Whole - cut.Source) / max(1, r.set.Window.Context/4)
	if more < 1 || !extends {
		return context.WithCancel(ctx)
	}
	limit := time.Duration(1+more) * r.worker.shared.CompactDeadline
	_ = r.worker.store.Jobs.MarkUpkeep(ctx, r.lease, limit) // without it the mark ends early
	return context.WithTimeout(whole, limit)
}

// isCut reports whether a stop ended an attempt, or the answer that waited for it. The deadline of an extended attempt is
// later than that of its context, which then does not have the cause.
func isCut(ctx context.Context) bool {
	if whole, extends := ctx.Value(unboundedKey{}).(context.Context); extends {
		ctx = whole
	}
	cause := context.Cause(ctx)
	return errors.Is(cause, llm.ErrStop) || errors.Is(cause, view.ErrInline)
}

// paidContext outlives ctx: a summary that a model wrote is not lost.
func (r *run) paidContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 2*r.worker.shared.CommitTimeout)
}
