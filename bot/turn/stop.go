package turn

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ebb/bot/turn/answer"
	"ebb/bot/turn/choice"
	"ebb/bot/turn/persist"
	"ebb/bot/turn/slot"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
)

// stopped is what commands did to a turn that they stopped. Its zero value: the turn was not stopped.
type stopped struct {
	by     []sessions.Event // the commands, the oldest first
	others []sessions.Event // messages that they did not end
	said   string           // words of the model so far
}

// typed are the commands in words. A button gets no answer: people see the end of the card.
func (s stopped) typed() []sessions.Event {
	return slices.DeleteFunc(slices.Clone(s.by), sessions.Event.IsPress)
}

// rest is the others' messages, for a turn of their own.
func (s stopped) rest(since int64) *slot.Rest {
	rest := &slot.Rest{Since: since}
	for _, e := range s.others {
		rest.Others = append(rest.Others, e.ID)
	}
	return rest
}

// cutShort makes the answer of a stopped turn. Commands of some of its askers end their own messages alone: those of the others wait for a
// turn of their own, which begins at once. by are commands that were seen; others may have come meanwhile.
func (r *Runner) cutShort(ctx context.Context, made choice.Choice, a answer.Answer, by []sessions.Event) (answer.Answer, stopped, error) {
	cut := stopped{by: r.slots.Inbox.MoreStops(ctx, made, by), said: strings.TrimSpace(a.Text)}
	var ended []sessions.Event
	for i, e := range cut.by {
		cut.by[i].Tokens = r.shared.Counter.Count(e.Content)
		ended = append(ended, r.slots.Inbox.EndedBy(e, made.Asked, made.Since)...)
	}
	a.For.Asked = slices.Clone(made.Asked)
	n := a.For.MoveFirst(func(e sessions.Event) bool {
		return slices.ContainsFunc(ended, func(one sessions.Event) bool { return one.ID == e.ID })
	})
	a.For.Asked, cut.others = a.For.Asked[:n], a.For.Asked[n:]
	if len(cut.others) > 0 { // the words are about the others' messages too
		cut.said, a.Result.Events, a.Result.TakenWithheld, a.Result.Suspicion = "", nil, nil, nil
		if err := r.passRuns(ctx, a.For, cut.others); err != nil {
			return a, cut, err
		}
	}
	return a.CutShort(strings.TrimSpace(cut.said + "\n\n" + wording.Say(wording.CutShort, made.Lang))), cut, nil
}

// passRuns records calls of tools for the messages that wait on too: none with an effect is repeated. Facts that they saved from words of
// those messages go along.
func (r *Runner) passRuns(ctx context.Context, made choice.Choice, others []sessions.Event) error {
	if len(made.View.Runs) == 0 {
		return nil
	}
	var people []sessions.UserID
	for _, e := range others {
		people = append(people, e.SenderID)
	}
	err := persist.Write(ctx, r.shared.CommitTimeout, "Facts of a stopped turn not passed on, trying again", func(one context.Context) error {
		return r.cfg.Stores.Facts.Pass(one, made.Lease, people)
	})
	if err != nil {
		return fmt.Errorf("pass facts on: %w", err)
	}
	for _, run := range made.View.Runs {
		if slices.ContainsFunc(others, func(e sessions.Event) bool { return e.ID == run.EventID }) {
			continue
		}
		run.EventID = others[0].ID
		if _, err := answer.RecordRun(ctx, r.cfg.Stores.Turns, r.shared.CommitTimeout, made.Lease, run); err != nil {
			return fmt.Errorf("record call of %s: %w", run.Call.Name, err)
		}
	}
	return nil
}

// receipt makes one message of the end of a turn and the answer to the commands that stopped it. A button gets no message: people
// see the end of the card. A card that answers other people goes on.
func (r *Runner) receipt(ctx context.Context, a answer.Answer, cut stopped) answer.Answer {
	typed := cut.typed()
	if len(cut.others) > 0 {
		a.Card, a.Mute = "", len(typed) == 0
	}
	if len(typed) > 0 {
		v := a.For.View
		a.For.Lang = r.shared.Languages.Choose(v.Session.ConversationID, r.cfg.Views.Words.LanguageWords(slices.Concat(v.Tail, a.For.Asked), typed[0]))
		a.Text = r.cfg.Commands.Stopped(ctx, view.Stopped{
			Key: a.For.Lease.Key, Asked: a.For.Asked, Lang: a.For.Lang, Said: cut.said, By: typed, Others: len(cut.others) > 0, Shown: a.Card != "",
		})
	}
	return a
}
