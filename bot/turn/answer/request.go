package answer

import (
	"context"
	"errors"
	"slices"

	"github.com/rs/zerolog"

	"ebb/bot/llm"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/memory/draft"
	"ebb/sessions"
)

// request is a request of a question, before the rounds of the model and its tools.
type request struct {
	messages []llm.Message
	view     sessions.View // it shows this besides the question
	recalled recalled
	size     int  // our own count, not calibrated
	partial  bool // it shows a part of the conversation's view
}

// fit makes the first request. A context that would overflow, or that its policy limits before an answer, is compacted first, within a
// deadline. If that frees too little, the request shows the emergency view.
func (q *question) fit(ctx context.Context) request {
	views := q.asker.cfg.Views
	usable := views.Settings(q.made.View.Session).Window.Usable()
	views.Shrink(q.made.View.Session, q.made.Asked, q.made.Next())
	q.share = view.ShownShare(q.made.View.Pending, q.made.Asked)
	q.readPinned(ctx)
	q.found = q.searchMemory(ctx)
	projected := func(v sessions.View) int {
		return views.ContextSize(v) + view.Calibrated(compaction.TokensOf(q.made.Asked)+q.found.room, v.Session.CalibrationFactor)
	}
	q.compactInline(ctx, func(v sessions.View) string { return q.asker.inlineTrigger(v, projected(v)) })
	// The check covers the whole request: counts of events have no names and fences.
	cal := q.made.View.Session.CalibrationFactor
	v := views.TrimToPolicy(q.made.View)
	if projected(q.made.View) < usable && view.Calibrated(views.Estimate(v, q.made.Asked)+q.found.room, cal) < usable {
		return q.build(v, false)
	}
	v = views.TrimToFit(v, func(v sessions.View) bool {
		return view.Calibrated(views.Estimate(v, q.made.Asked)+q.found.room, max(1, cal)) < usable
	})
	zerolog.Ctx(ctx).Warn().Int("left_out", len(q.made.View.Tail)-len(v.Tail)).Msg("Context does not fit, oldest turns left out of the view")
	return q.build(v, true)
}

// halve makes a request of half the window after the provider found one too large, or may have done so.
func (q *question) halve(ctx context.Context, err error) request {
	zerolog.Ctx(ctx).Warn().Err(err).Msg("Context overflowed, compacting")
	if llm.ClassOf(err) == llm.Overflow {
		q.compactInline(ctx, q.asker.overflowTrigger)
	}
	q.half = true
	if q.refusals.most > 0 {
		q.refusals.most = max(q.refusals.most, q.refusals.made+2) // the half, and the question alone
	}
	views := q.asker.cfg.Views
	half := views.Settings(q.made.View.Session).Window.Usable() / 2
	v := views.TrimToFit(views.TrimToPolicy(q.made.View), func(v sessions.View) bool { return views.Estimate(v, q.made.Asked)+q.found.room <= half })
	return q.build(v, true)
}

func (q *question) build(v sessions.View, partial bool) request {
	views := q.asker.cfg.Views
	r := request{recalled: q.recall(v)}
	v, asked, suspected := views.WithoutSuspects(v, q.made.Asked)
	r.view, r.partial = v, partial || suspected
	r.size = views.Estimate(v, asked) + r.recalled.tokens
	r.messages = views.FrameOf(v.Session).Assemble(v, views.Settings(v.Session).Policy, r.recalled.text, asked)
	q.sent = r
	return r
}

func (q *question) frame() *view.Frame { return q.asker.cfg.Views.FrameOf(q.made.View.Session) }

// chat lists texts of tools, summaries and recalled memory: a fact from them alone is no member's own statement. events are the turn's own
// so far.
func (q *question) chat(events []sessions.Event) draft.Chat {
	c := view.ChatOf(q.made.View, q.made.Asked, events)
	for _, h := range q.found.hits {
		c.Retold = append(c.Retold, h.Content)
	}
	return c
}

// current numbers the events of the running turn as its commit will.
func (q *question) current(events []sessions.Event) []sessions.Event {
	events = slices.Concat(q.made.View.Pending[:len(q.made.Asked)], events)
	for i := range events {
		events[i].Seq = q.made.Next() + int64(i)
	}
	return events
}

// inlineTrigger is empty if no compaction must run before the answer. After a failed summary it waits for the retry
// time, unless the policy's own hard limit forces it: the emergency view fits meanwhile.
func (k *Asker) inlineTrigger(v sessions.View, tokens int) string {
	set := k.cfg.Views.Settings(v.Session)
	need := k.cfg.Views.Decide(v, tokens)
	switch {
	case !set.Enabled, need.Trigger == "", view.Spent(set, v.Session):
		return ""
	case need.Forced:
		return need.Trigger
	case k.cfg.Shared.Now().Before(v.Session.CompactRetryAt), need.Hard && k.backlogged(v, tokens):
		return ""
	case need.Hard, set.Policy.Inline && need.Compact:
		return need.Trigger
	}
	return ""
}

// backlogged reports whether a view stays too large after one attempt. The background then compacts it in several
// attempts.
func (k *Asker) backlogged(v sessions.View, tokens int) bool {
	set := k.cfg.Views.Settings(v.Session)
	if set.Policy.Mode != compaction.SummaryOnly {
		return false // shortened results may make the room
	}
	cut, partial, err := set.Policy.Part(set.Window.Counted(v.Session.CalibrationFactor), k.cfg.Views.State(v, tokens))
	return err == nil && partial && tokens-view.Calibrated(cut.Source, v.Session.CalibrationFactor) >= set.Window.Usable()
}

// overflowTrigger holds after a provider found the request too large, whatever our counts are.
func (k *Asker) overflowTrigger(v sessions.View) string {
	set := k.cfg.Views.Settings(v.Session)
	if !set.Enabled || k.cfg.Shared.Now().Before(v.Session.CompactRetryAt) || view.Spent(set, v.Session) {
		return ""
	}
	return compaction.TriggerOverflow
}

// compactInline compacts if needed returns a trigger, and reloads the view. A failure leaves the view as it is,
// and people do not see it.
func (q *question) compactInline(ctx context.Context, needed func(sessions.View) string) {
	cfg, lease := &q.asker.cfg, q.made.Lease
	if needed(q.made.View) == "" || cfg.Upkeep.Busy(lease.Key) {
		return // running upkeep may take minutes
	}
	work, stop := context.WithTimeoutCause(ctx, cfg.Shared.InlineDeadline, view.ErrInline)
	defer stop()
	waiting := view.Calibrated(compaction.TokensOf(q.made.Asked)+q.found.room, q.made.View.Session.CalibrationFactor)
	if err := cfg.Upkeep.Inline(work, lease, waiting, needed); err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Inline compaction did not make room")
	}
	v, err := cfg.Store.Begin(ctx, lease, 0)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("View could not be read again")
		return
	}
	v.Pending, v.Runs, v.More = q.made.View.Pending, q.made.View.Runs, q.made.View.More
	cfg.Views.Show(&v)
	if v.Session.PinnedDue && q.pinned != nil {
		v.Session.Pinned = q.pinned.Text // not committed yet
	} else {
		q.pinned = nil // the compaction has pinned it
	}
	q.made.View = v
}

// isTooLarge takes an unexplained refusal of a large request for an overflow. A small one has another fault.
func isTooLarge(err error, size int, w compaction.Window) bool {
	fault, ok := errors.AsType[*llm.CallError](err)
	return ok && (fault.Overflow() || fault.MayOverflow() && size > w.Context/4)
}
