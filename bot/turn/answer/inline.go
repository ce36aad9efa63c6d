package answer

import (
	"context"

	"github.com/rs/zerolog"

	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/sessions"
)

// inlineCompactor makes room in a conversation before the model is asked.
type inlineCompactor struct {
	shared *parts.Shared
	views  *view.Builder
	store  Store
	upkeep Upkeep
}

// neededBefore is empty if no compaction must run before the answer. After a failed summary it waits for the retry
// time, unless the policy's own hard limit forces it: the emergency view fits meanwhile.
func (c inlineCompactor) neededBefore(v sessions.View, tokens int) sessions.Trigger {
	set := c.views.Choices.Settings(v.Session)
	need := c.views.Sizes.Decide(v, tokens)
	switch {
	case !set.Enabled, need.Trigger == "", view.Spent(set, v.Session):
		return ""
	case need.Forced:
		return need.Trigger
	case c.shared.Now().Before(v.Session.CompactRetryAt), need.Hard && c.backlogged(v, tokens):
		return ""
	case need.Hard, set.Policy.Inline && need.Compact:
		return need.Trigger
	}
	return ""
}

// backlogged reports whether a view stays too large after one attempt. The background then compacts it in several
// attempts.
func (c inlineCompactor) backlogged(v sessions.View, tokens int) bool {
	set := c.views.Choices.Settings(v.Session)
	if set.Policy.Mode != compaction.SummaryOnly {
		return false // shortened results may make the room
	}
	cut, partial, err := set.Policy.Part(set.Window.Counted(v.Session.CalibrationFactor), c.views.Sizes.State(v, tokens))
	return err == nil && partial && tokens-view.Calibrated(cut.Source, v.Session.CalibrationFactor) >= set.Window.Usable()
}

// neededAfterOverflow holds after a provider found the request too large, whatever our counts are.
func (c inlineCompactor) neededAfterOverflow(v sessions.View) sessions.Trigger {
	set := c.views.Choices.Settings(v.Session)
	if !set.Enabled || c.shared.Now().Before(v.Session.CompactRetryAt) || view.Spent(set, v.Session) {
		return ""
	}
	return compaction.TriggerOverflow
}

// compact compacts if needed returns a trigger, and reloads the view. A failure leaves the view as it is,
// and people do not see it.
func (c inlineCompactor) compact(ctx context.Context, q question, needed func(sessions.View) sessions.Trigger) question {
	lease := q.made.Lease
	if needed(q.made.View) == "" || c.upkeep.Busy(lease.Key) {
		return q // running upkeep may take minutes
	}
	work, stop := context.WithTimeoutCause(ctx, c.shared.InlineDeadline, view.ErrInline)
	defer stop()
	waiting := view.Calibrated(compaction.TokensOf(q.made.Asked)+q.found.room, q.made.View.Session.CalibrationFactor)
	if err := c.upkeep.Inline(work, lease, waiting, needed); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Inline compaction did not make room")
	}
	one, stop := context.WithTimeout(ctx, c.shared.CommitTimeout)
	defer stop()
	v, err := c.store.Begin(one, lease, 0)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("View could not be read again")
		return q
	}
	v.Pending, v.Runs, v.More = q.made.View.Pending, q.made.View.Runs, q.made.View.More
	c.views.Show(&v)
	q.media.attach(v.Tail)
	if v.Session.PinnedDue && q.pinned != nil {
		v.Session.Pinned = q.pinned.Text // not committed yet
	} else {
		q.pinned = nil // the compaction has pinned it
	}
	q.made.View = v
	return q
}
