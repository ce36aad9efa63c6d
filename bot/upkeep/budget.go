package upkeep

import (
	"context"
	"errors"
	"time"

	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/periodic"
)

// charger counts spending in the ledger.
type charger struct {
	shared *parts.Shared
	ledger Ledger
}

// charge counts the tokens of model calls that have no row of their own.
func (c charger) charge(ctx context.Context, key sessions.Key, one sessions.Spending) {
	if one.Usage == (sessions.Usage{}) && one.Cost == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), c.shared.CommitTimeout)
	defer stop()
	if err := c.ledger.Charge(ctx, key, one); err != nil {
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

type unboundedKey struct{}

// attemptContext has the deadline of one attempt, which [attempt.extendDeadline] may extend.
func attemptContext(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithValue(ctx, unboundedKey{}, ctx), limit)
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
