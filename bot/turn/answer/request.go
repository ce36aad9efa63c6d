package answer

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"ebb/bot/parts"
	"ebb/bot/view"
	"ebb/compaction"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// request is a request of a question, before the rounds of the model and its tools.
type request struct {
	messages []llm.Message
	view     sessions.View // it shows this besides the question
	recalled recalled
	size     int  // our own count, not calibrated
	found    int  // tokens of the schemas of found tools
	partial  bool // it shows a part of the conversation's view
	half     bool // the provider refused a request as too large: our counts may use half of the window only
	alone    bool // it shows the oldest question alone
}

// requestBuilder makes the requests of a question.
type requestBuilder struct {
	shared   *parts.Shared
	views    *view.Builder
	recaller recaller
	inline   inlineCompactor
}

// shorten shortens long messages of a question as requests show them.
func (b requestBuilder) shorten(q question) question {
	b.views.Shrink(q.made.View.Session, q.made.Asked, q.made.Next())
	q.share = view.ShownShare(q.made.View.Pending, q.made.Asked)
	return q
}

// fit makes the first request. A context that would overflow, or that its policy limits before an answer, is compacted first, within a
// deadline. If that frees too little, the request shows the emergency view.
func (b requestBuilder) fit(ctx context.Context, q question) (question, request) {
	views := b.views
	usable := views.Choices.Settings(q.made.View.Session).Window.Usable()
	projected := func(v sessions.View) int {
		return views.Sizes.ContextSize(v) + view.Calibrated(compaction.TokensOf(q.made.Asked)+q.found.room+views.Sizes.MediaTokens(v.Session.Key, q.made.Asked), v.Session.CalibrationFactor)
	}
	q = b.inline.compact(ctx, q, func(v sessions.View) sessions.Trigger { return b.inline.neededBefore(v, projected(v)) })
	// The check covers the whole request: counts of events have no names and fences.
	cal := q.made.View.Session.CalibrationFactor
	v := views.TrimToPolicy(q.made.View)
	if projected(q.made.View) < usable && view.Calibrated(views.Sizes.Estimate(v, q.made.Asked)+q.found.room, cal) < usable {
		return q, b.build(q, v, false)
	}
	v = views.TrimToFit(v, func(v sessions.View) bool {
		return view.Calibrated(views.Sizes.Estimate(v, q.made.Asked)+q.found.room, max(1, cal)) < usable
	})
	zerolog.Ctx(ctx).Warn().Int("left_out", len(q.made.View.Tail)-len(v.Tail)).Msg("Context does not fit, oldest turns left out of the view")
	return q, b.build(q, v, true)
}

// halve makes a request of half the window after the provider found one too large, or may have done so.
func (b requestBuilder) halve(ctx context.Context, q question, err error) (question, request) {
	zerolog.Ctx(ctx).Warn().Err(err).Msg("Context overflowed, compacting")
	if llm.ClassOf(err) == llm.Overflow {
		q = b.inline.compact(ctx, q, b.inline.neededAfterOverflow)
	}
	half := b.views.Choices.Settings(q.made.View.Session).Window.Usable() / 2
	v := b.views.TrimToFit(b.views.TrimToPolicy(q.made.View), func(v sessions.View) bool { return b.views.Sizes.Estimate(v, q.made.Asked)+q.found.room <= half })
	r := b.build(q, v, true)
	r.half = true
	return q, r
}

func (b requestBuilder) build(q question, v sessions.View, partial bool) request {
	r := request{recalled: b.recaller.show(q, v)}
	v, asked, suspected := b.views.WithoutSuspects(v, q.made.Asked)
	r.view, r.partial = v, partial || suspected
	r.size = b.views.Sizes.Estimate(v, asked) + r.recalled.tokens
	frame := b.views.Frames.FrameOf(v.Session)
	r.found = frame.Offer(v.Tail).Tokens
	r.messages = frame.Assemble(v, b.views.Choices.Settings(v.Session).Policy, r.recalled.text, asked)
	return r
}

// alone makes a request with the oldest question alone. No tool reads the other rows of the conversation.
func (b requestBuilder) alone(q question, half bool) (question, request) {
	q.made.Asked = q.made.Asked[:1:1]
	q.share = view.ShownShare(q.made.View.Pending[:1], q.made.Asked)
	v, words := b.views.Alone(q.made.View, q.made.Asked[0])
	return q, request{messages: b.assemble(v, words), size: b.views.Sizes.Estimate(v, []sessions.Event{words}), partial: true, half: half, alone: true}
}

// greeting is a request that no provider refuses for its content.
func (b requestBuilder) greeting(q question) llm.Request {
	v := q.made.View
	hello, words := b.views.Greeting(v, b.shared.Now())
	return llm.Request{
		Kind: llm.KindProbe, Model: b.views.Choices.Model(v.Session), Messages: b.assemble(hello, words), Tools: b.views.Frames.FrameOf(v.Session).Tools, MaxOutput: 1, Requests: 1, Greets: true,
	}
}

func (b requestBuilder) assemble(v sessions.View, words sessions.Event) []llm.Message {
	return b.views.Frames.FrameOf(v.Session).Assemble(v, b.views.Choices.Settings(v.Session).Policy, "", []sessions.Event{words})
}

// isTooLarge takes an unexplained refusal of a large request for an overflow. A small one has another fault.
func (b requestBuilder) isTooLarge(q question, size int, err error) bool {
	fault, ok := errors.AsType[*llm.CallError](err)
	return ok && (fault.Overflow() || fault.MayOverflow() && size > b.views.Choices.Settings(q.made.View.Session).Window.Context/4)
}
