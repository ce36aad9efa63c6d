package answer

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/sendfile"
	"ebb/bot/turn/choice"
	"ebb/bot/turn/slot"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Asker asks the model. Its fields are the stages of a question, in their order, and what asks it again.
type Asker struct {
	media    mediaReader
	recaller recaller
	requests requestBuilder
	rounds   roundRunner
	files    sendfile.Desk
	model    llm.Model
	upkeep   Upkeep
	stats    Stats
}

// New returns an asker.
func New(c Config) *Asker {
	recalls := recaller{c.Shared, c.Views, c.Memory}
	return &Asker{
		media: mediaReader{c.Shared, c.Views, c.Media}, recaller: recalls, requests: requestBuilder{c.Shared, c.Views, recalls, inlineCompactor{c.Shared, c.Views, c.Store, c.Upkeep}},
		rounds: roundRunner{c.Shared, c.Views, toolCaller{c.Shared, c.Views, c.Store, c.May, c.Stats, approvals{c.Approvals, c.Shared.Now, c.Shared.CommitTimeout}}, c.Stats, c.MaxToolRounds},
		files:  c.Files, model: c.Model, upkeep: c.Upkeep, stats: c.Stats,
	}
}

// Ask asks the model about a choice: it reads attachments, searches memory, makes a request, and lets the model and its tools work in rounds. It asks once more
// with the emergency view if the provider finds the request too large, or may do so. If it refuses the request, the question is asked
// alone. The answer of an error has the work before it. live is nil without a display.
func (k *Asker) Ask(ctx context.Context, made choice.Choice, live chat.Live) (Answer, error) {
	made.Asked = slices.Clone(made.Asked) // requests shorten them
	q, err := k.media.open(ctx, question{made: made, live: live})
	if a, isBare := bareAnswer(q); isBare || err != nil {
		return a, err
	}
	if q.files, err = k.files.Recall(ctx, made.Lease.Key, runsOf(made)); err != nil {
		return Answer{For: q.made}, err
	}
	q = k.requests.shorten(q)
	q = k.media.search(ctx, k.recaller.remember(ctx, q))
	q, first := k.requests.fit(ctx, q)
	f, l := &refusals{}, newLoop(first, Answer{})
	for {
		if err := k.rounds.makeApproved(ctx, &q, f, l); err != nil {
			return finish(q, f, l, err), err
		}
		resp, err := k.model.Generate(ctx, k.rounds.next(q, f, l))
		f.note(resp, err, l.sent.half)
		if err == nil { // the last model that answered decides: another one may have called the tools
			q.media.blind = resp.Blind
		}
		more, err := k.rounds.take(ctx, &q, f, l, resp, err)
		if !more {
			more, err = k.askAgain(ctx, &q, f, l, err)
		}
		if !more && err == nil {
			return sendTables(ctx, q, finish(q, f, l, nil)), nil
		}
		if !more {
			return finish(q, f, l, err), err
		}
	}
}

// finish adds the work of all requests to the answer of the last one.
func finish(q question, f *refusals, l *toolLoop, err error) Answer {
	a := l.answer.after(l.before)
	if err != nil && l.sent.alone {
		a.Result.Events = l.before.Result.Events // the log keeps the calls
	}
	a.For, a.Files, a.Result.Pinned, a.Share, a.Result.Read = q.made, q.files.Files(), q.pinned, q.share, slices.Concat(q.found.facts(), a.Result.Read)
	a.Result.Spent.Kind, a.guilty = sessions.SpentTurn, f.guilty
	a.Result.TakenWithheld, a.Result.Suspicion = f.marks(q.made.View)
	q.media.again = len(a.shown) > 0
	if len(q.made.Decided) > 0 {
		a.Result.Outcome = sessions.Decided
	}
	return withNotes(q, a)
}

// askAgain makes another request if one ended with a fault that it may avoid. more reports whether there is one; otherwise the error is
// the question's.
func (k *Asker) askAgain(ctx context.Context, q *question, f *refusals, l *toolLoop, err error) (more bool, _ error) {
	cause := refusedBy(l.answer.last, err)
	switch {
	case l.sent.alone:
		return false, k.afterAlone(ctx, *q, f, l, err)
	case err == nil && !l.sent.half && f.passed != nil: // another model answered
		f.suspicion = k.suspects(*q, l.sent, f.passed).Join(f.suspicion)
		k.stats.RequestRefused(RefusedHistory)
		return false, nil
	case err == nil || slot.IsStopped(ctx):
		return false, err
	case !l.sent.half && k.requests.isTooLarge(*q, l.answer.Report.estimate, err):
		var half request
		*q, half = k.requests.halve(ctx, *q, err)
		f.allow(2) // the half, and the question alone
		*l = *newLoop(half, l.answer)
		return true, nil
	case cause != nil && f.left() > 0:
		return k.askAlone(ctx, q, f, l, cause)
	}
	return false, err
}

// askAlone follows a permanent refusal. It asks once more, with the oldest question alone: other messages wait for turns of
// their own. An answer puts the rest of the refused request under suspicion.
func (k *Asker) askAlone(ctx context.Context, q *question, f *refusals, l *toolLoop, cause *llm.CallError) (more bool, _ error) {
	refused, before := l.sent, l.answer.after(l.before)
	var alone request
	*q, alone = k.requests.alone(*q, refused.half)
	*l, f.suspicion = *newLoop(alone, before), nil
	if reflect.DeepEqual(alone.messages, refused.messages) { // the question was alone already
		return false, k.greet(ctx, *q, f, l, cause)
	}
	f.cause, f.suspicion = cause, k.suspects(*q, refused, cause)
	return true, nil
}

// afterAlone judges the end of a request with the question alone. If the question was refused too, a greeting decides whether the
// question or the model is at fault, as long as a request is left.
func (k *Asker) afterAlone(ctx context.Context, q question, f *refusals, l *toolLoop, err error) error {
	cause := refusedBy(l.answer.last, err)
	switch {
	case err == nil:
		zerolog.Ctx(ctx).Warn().Str("class", string(f.cause.Class)).Msg("Model refused the conversation: the question was asked alone, and the message at fault is looked for")
		k.stats.RequestRefused(RefusedHistory)
		return nil
	case cause == nil || slot.IsStopped(ctx):
		f.suspicion = nil
		return err
	}
	f.suspicion = nil
	if f.left() == 0 {
		return cause
	}
	return k.greet(ctx, q, f, l, cause)
}

// greet decides whether the question or the model is at fault for a refused question. The error is its refusal.
func (k *Asker) greet(ctx context.Context, q question, f *refusals, l *toolLoop, cause *llm.CallError) error {
	resp, err := k.model.Generate(ctx, k.requests.greeting(q))
	l.answer.Work.add(resp.Parts)
	l.answer.Result.Spent.Model = cmp.Or(l.answer.Result.Spent.Model, resp.UsedModel())
	k.upkeep.Charge(ctx, q.made.Lease.Key, sessions.Spending{Kind: sessions.SpentProbe, Usage: resp.Usage, Cost: resp.Cost, Model: resp.UsedModel()})
	refusal := *cause
	switch refused := refusedBy(resp, err); {
	case refused != nil:
		zerolog.Ctx(ctx).Error().Err(refused).Str("class", string(refused.Class)).Msg("Model refuses every request: nothing is kept from it")
		k.stats.RequestRefused(RefusedAll)
		refusal.Class = llm.Denied // an administrator must act
	case llm.Accepted(err):
		zerolog.Ctx(ctx).Warn().Str("class", string(cause.Class)).Int64("event", q.made.Asked[0].ID).Msg("Model refused a question: it is kept from later requests")
		k.stats.RequestRefused(RefusedQuestion)
		refusal.Class = llm.Refused
		f.guilty = &sessions.Refusal{Parts: []sessions.WithheldPart{sessions.WithheldBody}, Class: string(cause.Class), At: k.requests.shared.Now()}
	default: // not known: a later refusal finds the question in the history
		refusal.Class = llm.Refused
	}
	return &refusal
}

// suspects are all rows of the refused request, with the messages of the turn.
func (k *Asker) suspects(q question, refused request, cause *llm.CallError) *sessions.Suspicion {
	v, first := refused.view, q.made.Next()
	s := &sessions.Suspicion{
		Model: q.made.View.Reads, Class: string(cause.Class), At: k.requests.shared.Now(), From: first, Through: first + int64(len(q.made.Asked)) - 1,
		Summaries: len(v.Summaries) > 0, Pinned: v.Session.Pinned != "", Facts: refused.recalled.facts, Events: refused.recalled.events,
		Pages: withPagesOf(v.Tail, refused.recalled.pages),
	}
	if len(v.Tail) > 0 {
		s.From = min(s.From, v.Tail[0].Seq)
	}
	return s
}

// withPagesOf adds the pages of documents that join a view as a whole.
func withPagesOf(events []sessions.Event, pages []sessions.PageID) []sessions.PageID {
	pages = slices.Clone(pages)
	for _, e := range events {
		for _, m := range e.Media {
			for n := 1; m.Text != "" && n <= m.Pages; n++ {
				if p := (sessions.PageID{Media: m.ID, Number: n}); !slices.Contains(pages, p) {
					pages = append(pages, p)
				}
			}
		}
	}
	return pages
}
