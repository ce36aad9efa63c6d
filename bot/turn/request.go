package turn

import (
	"context"
	"errors"
	"slices"

	"github.com/rs/zerolog"

	"ebb/bot/llm"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// fitRequest first compacts, within a deadline, a context that would overflow or that its policy limits before an
// answer. If that frees too little, the request shows the emergency view.
func (r *Runner) fitRequest(ctx context.Context, t *Turn) []llm.Message {
	usable := r.views.Settings(t.View.Session).Window.Usable()
	view.Shrink(t.Asked, usable, t.next())
	t.shownShare = view.ShownShare(t.View.Pending, t.Asked)
	r.readPinned(ctx, t)
	r.searchMemory(ctx, t)
	projected := func(v sessions.View) int {
		return r.views.ContextSize(v) + view.Calibrated(compaction.TokensOf(t.Asked)+t.recallRoom, v.Session.CalibrationFactor)
	}
	r.compactInline(ctx, t, func(v sessions.View) string { return r.inlineTrigger(v, projected(v)) })
	// The check covers the whole request: counts of events have no names and fences.
	cal := t.View.Session.CalibrationFactor
	v := r.views.TrimToPolicy(t.View)
	if projected(t.View) < usable && view.Calibrated(r.views.Estimate(v, t.Asked)+t.recallRoom, cal) < usable {
		return r.buildRequest(t, v)
	}
	v = r.views.TrimToFit(v, func(v sessions.View) bool {
		return view.Calibrated(r.views.Estimate(v, t.Asked)+t.recallRoom, max(1, cal)) < usable
	})
	t.partial = true
	zerolog.Ctx(ctx).Warn().Int("left_out", len(t.View.Tail)-len(v.Tail)).Msg("Context does not fit, oldest turns left out of the view")
	return r.buildRequest(t, v)
}

func (r *Runner) frame(t *Turn) *view.Frame { return r.views.FrameOf(t.View.Session) }

func (r *Runner) buildRequest(t *Turn, v sessions.View) []llm.Message {
	recalled := r.writeRecalled(t, v)
	v, asked, suspected := r.views.WithoutSuspects(v, t.Asked)
	t.recalledTokens, t.refusals.shown, t.partial = 0, v, t.partial || suspected
	if recalled != "" {
		t.recalledTokens = r.counter.Count(recalled) + tokens.MessageOverhead
	}
	t.size = r.views.Estimate(v, asked) + t.recalledTokens
	t.refusals.asked = r.views.FrameOf(v.Session).Assemble(v, r.views.Settings(v.Session).Policy, recalled, asked)
	return slices.Clone(t.refusals.asked)
}

// inlineTrigger is empty if no compaction must run before the answer. After a failed summary it waits for the retry
// time, unless the policy's own hard limit forces it: the emergency view fits meanwhile.
func (r *Runner) inlineTrigger(v sessions.View, tokens int) string {
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

// backlogged reports whether a view stays too large after one attempt. The background then compacts it in several
// attempts.
func (r *Runner) backlogged(v sessions.View, tokens int) bool {
	set := r.views.Settings(v.Session)
	if set.Policy.Mode != compaction.SummaryOnly {
		return false // shortened results may make the room
	}
	cut, partial, err := set.Policy.Part(set.Window.Counted(v.Session.CalibrationFactor), r.views.State(v, tokens))
	return err == nil && partial && tokens-view.Calibrated(cut.Source, v.Session.CalibrationFactor) >= set.Window.Usable()
}

// compactInline compacts if needed returns a trigger, and reloads the turn's view. A failure leaves the view as it is,
// and people do not see it.
func (r *Runner) compactInline(ctx context.Context, t *Turn, needed func(sessions.View) string) {
	if needed(t.View) == "" || r.worker.Busy(t.Key) {
		return // running upkeep may take minutes
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

// isTooLarge takes an unexplained refusal of a large request for an overflow. A small one has another fault.
func isTooLarge(err error, size int, w compaction.Window) bool {
	fault, ok := errors.AsType[*llm.CallError](err)
	return ok && (fault.Overflow() || fault.MayOverflow() && size > w.Context/4)
}

// overflowTrigger holds after a provider found the request too large, whatever our counts are.
func (r *Runner) overflowTrigger(v sessions.View) string {
	set := r.views.Settings(v.Session)
	if !set.Enabled || r.now().Before(v.Session.CompactRetryAt) || view.Spent(set, v.Session) {
		return ""
	}
	return compaction.TriggerOverflow
}
