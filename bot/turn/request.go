package turn

import (
	"context"

	"ebb/bot/llm"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"

	"github.com/rs/zerolog"
)

// fit assembles the turn's request. A context that would overflow, or that its policy wants smaller before the next
// answer, is compacted first, within a deadline; where that does not make room, the emergency view does.
func (r *Runner) fit(ctx context.Context, t *Turn) []llm.Message {
	usable := r.views.Settings(t.View.Session).Window.Usable()
	view.Shrink(t.Asked, usable, t.next())
	t.seen = view.ShownShare(t.View.Pending, t.Asked)
	r.pin(ctx, t)
	r.recall(ctx, t)
	projected := func(v sessions.View) int {
		return r.views.ContextSize(v) + view.Calibrated(compaction.TokensOf(t.Asked)+t.recallRoom, v.Session.CalibrationFactor)
	}
	r.inline(ctx, t, func(v sessions.View) string { return r.pressing(v, projected(v)) })
	// The whole request is looked at too: names and fences are not in the counts of events.
	cal := t.View.Session.CalibrationFactor
	v := r.views.TrimToPolicy(t.View)
	if projected(t.View) < usable && view.Calibrated(r.views.Estimate(v, t.Asked)+t.recallRoom, cal) < usable {
		return r.Request(t, v)
	}
	v = r.views.TrimToFit(v, func(v sessions.View) bool {
		return view.Calibrated(r.views.Estimate(v, t.Asked)+t.recallRoom, max(1, cal)) < usable
	})
	t.cut = true
	zerolog.Ctx(ctx).Warn().Int("left_out", len(t.View.Tail)-len(v.Tail)).Msg("Context does not fit, oldest turns left out of the view")
	return r.Request(t, v)
}

// Request assembles the turn's request on a view and notes its size. The order says where recalled memory stands in it.
func (r *Runner) Request(t *Turn, v sessions.View) []llm.Message {
	recalled := r.beside(t, v)
	t.recalledTokens = 0
	if recalled != "" {
		t.recalledTokens = r.counter.Count(recalled) + tokens.MessageOverhead
	}
	t.size = r.views.Estimate(v, t.Asked) + t.recalledTokens
	return r.views.Frame.Assemble(v, r.views.Settings(v.Session).Policy, recalled, t.Asked)
}

// pressing is the trigger of a compaction that can't wait until the answer is sent; empty for none. Nobody waits for a
// summariser that has just failed, unless the policy's own hard limit says so: the emergency view is there.
func (r *Runner) pressing(v sessions.View, tokens int) string {
	set := r.views.Settings(v.Session)
	need := r.views.Decide(v, tokens)
	switch {
	case !set.Enabled, need.Trigger == "", view.Spent(set, v.Session):
		return ""
	case need.Forced:
		return need.Trigger
	case r.now().Before(v.Session.CompactRetryAt), need.Hard && r.backlogged(v, tokens):
		return ""
	case need.Hard, set.Policy.Inline && need.Compact:
		return need.Trigger
	}
	return ""
}

// backlogged reports whether a view that takes so many tokens is too large even after one attempt: then no answer waits for
// the first of many. They are made in the background, and the emergency view stands in meanwhile.
func (r *Runner) backlogged(v sessions.View, tokens int) bool {
	set := r.views.Settings(v.Session)
	if set.Policy.Mode != compaction.SummaryOnly {
		return false // shortened results may make the room
	}
	cut, partial, err := set.Policy.Part(set.Window.Counted(v.Session.CalibrationFactor), r.views.State(v, tokens))
	return err == nil && partial && tokens-view.Calibrated(cut.Source, v.Session.CalibrationFactor) >= set.Window.Usable()
}

// inline compacts before the model is asked where needed says so, and reloads the turn's view. A compaction that fails
// or takes too long leaves the view as it is: that is for the emergency view to mend, never for the people to read.
func (r *Runner) inline(ctx context.Context, t *Turn, needed func(sessions.View) string) {
	if needed(t.View) == "" || r.worker.Busy(t.Key) {
		return // upkeep that is under way may take minutes
	}
	work, stop := context.WithTimeoutCause(ctx, r.cfg.InlineDeadline, view.ErrInline)
	defer stop()
	waiting := view.Calibrated(compaction.TokensOf(t.Asked)+t.recallRoom, t.View.Session.CalibrationFactor)
	if err := r.worker.Inline(work, t.Lease, waiting, needed); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Inline compaction did not make room")
	}
	v, err := r.store.Begin(ctx, t.Lease, 0)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("View could not be read again")
		return
	}
	v.Pending, v.Runs, v.More = t.View.Pending, t.View.Runs, t.View.More
	r.views.Show(&v)
	if v.Session.PinnedDue && t.Pinned != nil {
		v.Session.Pinned = t.Pinned.Text // not committed yet
	} else {
		t.Pinned = nil // the compaction has pinned it
	}
	t.View = v
}

// overflowed is what needs a compaction after a provider found the request too large, whatever our counts say.
func (r *Runner) overflowed(v sessions.View) string {
	set := r.views.Settings(v.Session)
	if !set.Enabled || r.now().Before(v.Session.CompactRetryAt) || view.Spent(set, v.Session) {
		return ""
	}
	return compaction.TriggerOverflow
}
