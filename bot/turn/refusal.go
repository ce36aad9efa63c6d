package turn

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/llm"
	"ebb/bot/view"
	"ebb/sessions"
)

// The places of what a provider refuses, for [Stats].
const (
	RefusedQuestion = "question"
	RefusedHistory  = "history"
	RefusedAll      = "model" // the provider refuses a greeting too
)

// refusals is what a turn knows about a provider that permanently refuses its requests.
type refusals struct {
	asked     []llm.Message // messages of the refused request
	shown     sessions.View // the rest of it besides the question
	facts     []int64       // recalled in it
	events    []int64
	made      int                 // requests of the question, one for each model asked
	most      int                 // their bound; 0: none, nothing was refused
	accepts   string              // the model that accepted what the first one refused; empty: none
	passed    *llm.CallError      // that refusal
	suspicion *sessions.Suspicion // rows of the refused request; nil: none
	guilty    *sessions.Refusal   // the question is at fault; nil: it is not known to be
}

// maxRequests bounds the requests of a question with a refusal, the refused one included. Later refusals have at least one more.
const maxRequests = 3

// note counts a call. A view of half the size that is accepted shows that the request before was too large, and nothing was refused.
func (f *refusals) note(resp llm.Response, err error, half bool) {
	f.made += max(1, len(resp.Parts))
	refused := refusedBy(resp, err)
	switch {
	case err == nil && refused != nil:
		f.accepts, f.passed = resp.Model, refused
	case err == nil && half && f.suspicion == nil:
		f.most = 0
	case refused != nil && f.most == 0:
		f.most = max(maxRequests, f.made+1)
	}
}

// left is the number of further requests; negative for no bound.
func (f *refusals) left() int {
	if f.most == 0 {
		return -1
	}
	return max(0, f.most-f.made)
}

// bound is that of the next call: after a refusal a request goes to one model once.
func (f *refusals) bound() int {
	return min(1, f.most)
}

// refusedBy returns the refusal of the model that was asked first, whatever the others said; nil: it refused nothing.
func refusedBy(resp llm.Response, err error) *llm.CallError {
	if len(resp.Parts) > 0 {
		if first := resp.Parts[0].Err; first != nil && first.RequestFault() {
			return first
		}
		return nil
	}
	if e, ok := errors.AsType[*llm.CallError](err); ok && e.RequestFault() {
		return e
	}
	return nil
}

// defence answers a turn whose request was refused.
type defence struct {
	runner *Runner
	turn   *Turn
}

// askAlone follows a permanent refusal. It asks once more, with the oldest question alone: other messages wait for turns of
// their own. An answer puts the rest of the refused request under suspicion. If the question is refused too, a greeting decides
// whether the question or the model is at fault, as long as a request is left.
func (d defence) askAlone(ctx context.Context, cause *llm.CallError) (answer, error) {
	d.turn.Asked, d.turn.plan.Take, d.turn.refusals.suspicion = d.turn.Asked[:1:1], 1, nil
	d.turn.shownShare = view.ShownShare(d.turn.View.Pending[:1], d.turn.Asked)
	v, question := d.runner.views.Alone(d.turn.View, d.turn.Asked[0])
	msgs := d.assemble(v, question)
	suspects := d.turn.suspects(d.runner.now(), cause)
	log := zerolog.Ctx(ctx)
	var a answer
	if !reflect.DeepEqual(msgs, d.turn.refusals.asked) { // otherwise the question was alone already
		d.turn.refusals.suspicion, d.turn.partial, d.turn.recalledTokens = suspects, true, 0 // no tool reads these rows
		d.turn.size = d.runner.views.Estimate(v, []sessions.Event{question})
		var err error
		a, err = d.runner.loop(ctx, d.turn, msgs)
		again := refusedBy(a.resp, err)
		switch {
		case err == nil:
			log.Warn().Str("class", string(cause.Class)).Msg("Model refused the conversation: the question was asked alone, and the message at fault is looked for")
			d.runner.stats.RequestRefused(RefusedHistory)
			return a, nil
		case again == nil || isStopped(ctx):
			d.turn.refusals.suspicion = nil
			return a, err
		}
		d.turn.refusals.suspicion, cause = nil, again
	}
	if d.turn.refusals.left() == 0 {
		return a, cause
	}
	return d.greet(ctx, a, cause)
}

// greet decides who is at fault for a refused question.
func (d defence) greet(ctx context.Context, a answer, cause *llm.CallError) (answer, error) {
	v, greeting := d.runner.views.Greeting(d.turn.View, d.runner.now())
	resp, err := d.runner.model.Generate(ctx, llm.Request{
		Kind: llm.KindProbe, Model: d.runner.views.Model(d.turn.View.Session), Messages: d.assemble(v, greeting), Tools: d.runner.frame(d.turn).Tools, MaxOutput: 1, Requests: 1, Greets: true,
	})
	d.turn.work.add(resp.Parts)
	a.model = cmp.Or(a.model, resp.UsedModel())
	d.runner.worker.Charge(ctx, d.turn.Key, sessions.Spending{Kind: sessions.SpentProbe, Usage: resp.Usage, Cost: resp.Cost, Model: resp.UsedModel()})
	refusal := *cause
	switch refused := refusedBy(resp, err); {
	case refused != nil:
		zerolog.Ctx(ctx).Error().Err(refused).Str("class", string(refused.Class)).Msg("Model refuses every request: nothing is kept from it")
		d.runner.stats.RequestRefused(RefusedAll)
		refusal.Class = llm.Denied // an administrator must act
	case llm.Accepted(err):
		zerolog.Ctx(ctx).Warn().Str("class", string(cause.Class)).Int64("event", d.turn.Asked[0].ID).Msg("Model refused a question: it is kept from later requests")
		d.runner.stats.RequestRefused(RefusedQuestion)
		refusal.Class = llm.Refused
		d.turn.refusals.guilty = &sessions.Refusal{Parts: []sessions.WithheldPart{sessions.WithheldBody}, Class: string(cause.Class), At: d.runner.now()}
	default: // not known: a later refusal finds the question in the history
		refusal.Class = llm.Refused
	}
	return a, &refusal
}

func (d defence) assemble(v sessions.View, question sessions.Event) []llm.Message {
	return d.runner.views.FrameOf(v.Session).Assemble(v, d.runner.views.Settings(v.Session).Policy, "", []sessions.Event{question})
}

// suspects are all rows of the refused request, with the messages of the turn.
func (t *Turn) suspects(now time.Time, cause *llm.CallError) *sessions.Suspicion {
	s := &sessions.Suspicion{
		Model: t.View.Reads, Class: string(cause.Class), At: now, From: t.next(), Through: t.next() + int64(len(t.Asked)) - 1,
		Summaries: len(t.refusals.shown.Summaries) > 0, Pinned: t.refusals.shown.Session.Pinned != "", Facts: t.refusals.facts, Events: t.refusals.events,
	}
	if tail := t.refusals.shown.Tail; len(tail) > 0 {
		s.From = min(s.From, tail[0].Seq)
	}
	return s
}

// dropCalls leaves out the newest calls of tools and their results: the request before them was accepted, so the cause is among them. It
// reports whether the request is another one now.
func (d defence) dropCalls(ctx context.Context, a *answer, msgs []llm.Message, cause *llm.CallError) bool {
	at := len(a.events)
	for at > 0 && a.events[at-1].Role == sessions.RoleTool {
		at--
	}
	if cause == nil || at == len(a.events) || at == 0 {
		return false
	}
	d.turn.partial = true
	results := msgs[len(msgs)-(len(a.events)-at):]
	for i := range results {
		a.estimate += sessions.WithheldTokens - d.runner.counter.Count(results[i].Content)
		results[i].Content = sessions.WithheldText
	}
	results[len(results)-1].Content += noMoreCalls
	calls := &msgs[len(msgs)-len(results)-1]
	calls.Content, calls.Reasoning, calls.ToolCalls = "", "", slices.Clone(calls.ToolCalls)
	for i := range calls.ToolCalls {
		calls.ToolCalls[i].Arguments = "{}"
	}
	zerolog.Ctx(ctx).Warn().Str("class", string(cause.Class)).Str("tool", a.events[at].ToolName).Msg("Model refused calls of tools or their results: they are left out")
	d.runner.stats.RequestRefused(RefusedHistory)
	first := d.turn.next() + int64(len(d.turn.Asked)+at) - 1 // the calls: a result alone is no legal request
	d.turn.refusals.suspicion = (&sessions.Suspicion{
		Model: d.turn.View.Reads, Class: string(cause.Class), At: d.runner.now(), From: first, Through: first + int64(len(a.events)-at),
	}).Join(d.turn.refusals.suspicion)
	return true
}

// withhold keeps the events of a failed turn from later requests: some may be at fault.
func (t *Turn) withhold(events []sessions.Event) {
	for i := range events {
		events[i].Withheld = events[i].Withheld.With(t.View.Reads, *t.refusals.guilty)
	}
}

// suspicion has the rows that results of tools leave out.
func (t *Turn) suspicion() *sessions.Suspicion {
	return cmp.Or(t.refusals.suspicion.Join(t.View.Session.Suspicion), t.View.Session.Suspicion)
}

// marks are the refusals that the commit stores.
func (t *Turn) marks() (taken []sessions.Withheld, suspicion *sessions.Suspicion) {
	if g := t.refusals.guilty; g != nil {
		taken = []sessions.Withheld{{t.View.Reads: *g}}
	}
	return taken, t.refusals.suspicion.Join(t.View.Session.Suspicion)
}
