package answer

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"

	"github.com/rs/zerolog"

	"ebb/bot/llm"
	"ebb/bot/turn/slot"
	"ebb/bot/view"
	"ebb/sessions"
)

// Refused is the place of what a provider refuses.
type Refused string

// The places of refusals.
const (
	RefusedQuestion Refused = "question"
	RefusedHistory  Refused = "history"
	RefusedAll      Refused = "model" // the provider refuses a greeting too
)

// refusals is the part of a question about a provider that permanently refuses its requests.
type refusals struct {
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

// askAlone follows a permanent refusal. It asks once more, with the oldest question alone: other messages wait for turns of
// their own. An answer puts the rest of the refused request under suspicion. If the question is refused too, a greeting decides
// whether the question or the model is at fault, as long as a request is left.
func (q *question) askAlone(ctx context.Context, cause *llm.CallError) (Answer, error) {
	cfg := &q.asker.cfg
	q.made.Asked, q.refusals.suspicion = q.made.Asked[:1:1], nil
	q.share = view.ShownShare(q.made.View.Pending[:1], q.made.Asked)
	v, words := cfg.Views.Alone(q.made.View, q.made.Asked[0])
	alone := request{messages: q.assemble(v, words), partial: true} // no tool reads the rows of the refused request
	suspects := q.suspects(cause)
	var a Answer
	if !reflect.DeepEqual(alone.messages, q.sent.messages) { // otherwise the question was alone already
		q.refusals.suspicion = suspects
		alone.size = cfg.Views.Estimate(v, []sessions.Event{words})
		var err error
		a, err = q.loop(ctx, alone)
		again := refusedBy(a.last, err)
		switch {
		case err == nil:
			zerolog.Ctx(ctx).Warn().Str("class", string(cause.Class)).Msg("Model refused the conversation: the question was asked alone, and the message at fault is looked for")
			cfg.Stats.RequestRefused(RefusedHistory)
			return a, nil
		case again == nil || slot.IsStopped(ctx):
			q.refusals.suspicion = nil
			return a, err
		}
		q.refusals.suspicion, cause = nil, again
	}
	if q.refusals.left() == 0 {
		return a, cause
	}
	return q.greet(ctx, a, cause)
}

// greet decides who is at fault for a refused question.
func (q *question) greet(ctx context.Context, a Answer, cause *llm.CallError) (Answer, error) {
	cfg, v := &q.asker.cfg, q.made.View
	hello, greeting := cfg.Views.Greeting(v, cfg.Shared.Now())
	resp, err := cfg.Model.Generate(ctx, llm.Request{
		Kind: llm.KindProbe, Model: cfg.Views.Model(v.Session), Messages: q.assemble(hello, greeting), Tools: q.frame().Tools, MaxOutput: 1, Requests: 1, Greets: true,
	})
	a.Work.add(resp.Parts)
	a.Spent.Model = cmp.Or(a.Spent.Model, resp.UsedModel())
	cfg.Upkeep.Charge(ctx, q.made.Lease.Key, sessions.Spending{Kind: sessions.SpentProbe, Usage: resp.Usage, Cost: resp.Cost, Model: resp.UsedModel()})
	refusal := *cause
	switch refused := refusedBy(resp, err); {
	case refused != nil:
		zerolog.Ctx(ctx).Error().Err(refused).Str("class", string(refused.Class)).Msg("Model refuses every request: nothing is kept from it")
		q.asker.cfg.Stats.RequestRefused(RefusedAll)
		refusal.Class = llm.Denied // an administrator must act
	case llm.Accepted(err):
		zerolog.Ctx(ctx).Warn().Str("class", string(cause.Class)).Int64("event", q.made.Asked[0].ID).Msg("Model refused a question: it is kept from later requests")
		q.asker.cfg.Stats.RequestRefused(RefusedQuestion)
		refusal.Class = llm.Refused
		q.refusals.guilty = &sessions.Refusal{Parts: []sessions.WithheldPart{sessions.WithheldBody}, Class: string(cause.Class), At: q.asker.cfg.Shared.Now()}
	default: // not known: a later refusal finds the question in the history
		refusal.Class = llm.Refused
	}
	return a, &refusal
}

func (q *question) assemble(v sessions.View, words sessions.Event) []llm.Message {
	views := q.asker.cfg.Views
	return views.FrameOf(v.Session).Assemble(v, views.Settings(v.Session).Policy, "", []sessions.Event{words})
}

// suspects are all rows of the refused request, with the messages of the turn.
func (q *question) suspects(cause *llm.CallError) *sessions.Suspicion {
	v, first := q.sent.view, q.made.Next()
	s := &sessions.Suspicion{
		Model: q.made.View.Reads, Class: string(cause.Class), At: q.asker.cfg.Shared.Now(), From: first, Through: first + int64(len(q.made.Asked)) - 1,
		Summaries: len(v.Summaries) > 0, Pinned: v.Session.Pinned != "", Facts: q.sent.recalled.facts, Events: q.sent.recalled.events,
	}
	if len(v.Tail) > 0 {
		s.From = min(s.From, v.Tail[0].Seq)
	}
	return s
}

// dropCalls leaves out the newest calls of tools and their results: the request before them was accepted, so the cause is among them. It
// reports whether the request is another one now.
func (q *question) dropCalls(ctx context.Context, a *Answer, msgs []llm.Message, cause *llm.CallError) bool {
	at := len(a.Events)
	for at > 0 && a.Events[at-1].Role == sessions.RoleTool {
		at--
	}
	if cause == nil || at == len(a.Events) || at == 0 {
		return false
	}
	a.Report.partial = true
	results := msgs[len(msgs)-(len(a.Events)-at):]
	for i := range results {
		a.Report.estimate += sessions.WithheldTokens - q.asker.cfg.Shared.Counter.Count(results[i].Content)
		results[i].Content = sessions.WithheldText
	}
	results[len(results)-1].Content += noMoreCalls
	calls := &msgs[len(msgs)-len(results)-1]
	calls.Content, calls.Reasoning, calls.ToolCalls = "", "", slices.Clone(calls.ToolCalls)
	for i := range calls.ToolCalls {
		calls.ToolCalls[i].Arguments = "{}"
	}
	zerolog.Ctx(ctx).Warn().Str("class", string(cause.Class)).Str("tool", a.Events[at].ToolName).Msg("Model refused calls of tools or their results: they are left out")
	q.asker.cfg.Stats.RequestRefused(RefusedHistory)
	first := q.made.Next() + int64(len(q.made.Asked)+at) - 1 // the calls: a result alone is no legal request
	q.refusals.suspicion = (&sessions.Suspicion{
		Model: q.made.View.Reads, Class: string(cause.Class), At: q.asker.cfg.Shared.Now(), From: first, Through: first + int64(len(a.Events)-at),
	}).Join(q.refusals.suspicion)
	return true
}

// suspicion has the rows that results of tools leave out.
func (q *question) suspicion() *sessions.Suspicion {
	old := q.made.View.Session.Suspicion
	return cmp.Or(q.refusals.suspicion.Join(old), old)
}

// Marks are what a commit keeps of a provider's refusals.
type Marks struct {
	Taken     []sessions.Withheld // marks of the turn's messages
	Suspicion *sessions.Suspicion // rows of a refused request; nil: none
	guilty    *sessions.Refusal   // the question is at fault; nil: it is not known to be
}

func (f *refusals) marks(v sessions.View) Marks {
	m := Marks{Suspicion: f.suspicion.Join(v.Session.Suspicion), guilty: f.guilty}
	if f.guilty != nil {
		m.Taken = []sessions.Withheld{{v.Reads: *f.guilty}}
	}
	return m
}
