package answer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ebb/bot/llm"
	"ebb/bot/turn/slot"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// loop lets the model and its tools work in rounds, from a request to the answer. The error is a model call that failed after all retries;
// the answer then has the work before it.
func (q *question) loop(ctx context.Context, req request) (Answer, error) {
	cfg := &q.asker.cfg
	a := Answer{Report: Report{estimate: req.size, recalled: req.recalled.tokens, partial: req.partial}}
	msgs, first := slices.Clone(req.messages), len(req.messages)
	seen, again := map[string]bool{}, false
	for round := 1; ; round++ {
		last := !q.makeRoom(&a, msgs, first) || round > cfg.MaxToolRounds || q.refusals.left() == 1
		if round == 1 && q.refusals.left() == 1 { // no request is left for a result
			msgs[len(msgs)-1].Content += noMoreCalls
		}
		resp, err := cfg.Model.Generate(ctx, q.generation(msgs))
		q.refusals.note(resp, err, q.half)
		a.Work.add(resp.Parts)
		a.last = resp
		if err != nil && (slot.IsStopped(ctx) || slot.HasLostLease(ctx)) {
			a.Text = resp.Text
			q.estimateUse(a, &resp)
		}
		a.Spent.Usage, a.Spent.Cost = a.Spent.Usage.Add(resp.Usage), a.Spent.Cost+resp.Cost // a failed call may have used tokens
		if resp.Usage != (sessions.Usage{}) {
			a.Spent.Model = cmp.Or(resp.UsedModel(), a.Spent.Model)
		}
		if err != nil && round > 1 && q.dropCalls(ctx, &a, msgs, refusedBy(resp, err)) {
			if q.refusals.left() > 0 {
				continue
			}
			a.say(llm.Response{Text: wording.Say(wording.ResultsRefused, q.made.Lang)}, q.made.Lang, false)
			return a, nil
		}
		if err != nil {
			return a, fmt.Errorf("model call %d of the turn: %w", round, err)
		}
		if resp.Garbled() && !again && !last { // the model is asked once more
			again = true
			q.hide()
			continue
		}
		a.Report.usage, a.Report.guessed, a.Report.ended = resp.Usage, resp.Guessed, resp.Guessed && resp.Ended()
		a.Spent.Model = cmp.Or(resp.Model, a.Spent.Model)
		if len(resp.ToolCalls) == 0 || last {
			a.say(resp, q.made.Lang, last)
			return a, nil
		}
		msgs = q.append(&a, msgs, sessions.Event{Role: sessions.RoleAssistant, Content: resp.Text, ToolCalls: resp.ToolCalls})
		msgs[len(msgs)-1].Reasoning = resp.Reasoning
		if msgs, err = q.runCalls(ctx, &a, msgs, resp.ToolCalls, seen, round == cfg.MaxToolRounds || q.refusals.left() == 1); err != nil {
			return a, err
		}
	}
}

func (q *question) generation(msgs []llm.Message) llm.Request {
	v := q.made.View
	r := llm.Request{
		Kind: llm.KindTurn, Model: cmp.Or(q.refusals.accepts, q.asker.cfg.Views.Model(v.Session)), Messages: msgs, Tools: q.frame().Tools,
		Requests: q.refusals.bound(), Voices: q.frame().Voices(v, q.made.Asked),
	}
	if q.live != nil { // without a display a model is asked for no stream
		r.Delta, r.Thought = q.live.Text, q.live.Thought
	}
	return r
}

// hide takes back what a display shows of an answer that is asked for again.
func (q *question) hide() {
	if q.live != nil {
		q.live.Text("", true)
	}
}

// estimateUse is for a call that a stop or the end of the lease ended, if its request was sent and the provider reported nothing.
func (q *question) estimateUse(a Answer, resp *llm.Response) {
	at := len(resp.Parts) - 1
	if resp.Usage != (sessions.Usage{}) || at < 0 || resp.Parts[at].Requests == 0 {
		return
	}
	cfg, cal := &q.asker.cfg, q.made.View.Session.CalibrationFactor
	resp.Usage = sessions.Usage{Prompt: view.Calibrated(a.Report.estimate, cal), Completion: view.Calibrated(cfg.Shared.Counter.Count(resp.Text), cal)}
	resp.Cost = cfg.Views.Price(resp.Parts[at].Model).Cost(resp.Usage)
}

// runCalls gives the calls one deadline: tools that hang leave the model half of the turn's remaining time.
func (q *question) runCalls(
	ctx context.Context, a *Answer, msgs []llm.Message, calls []sessions.ToolCall, seen map[string]bool, lastRound bool,
) ([]llm.Message, error) {
	part, stop := withHalf(ctx)
	defer stop()
	for _, call := range calls {
		result, err := q.callTool(ctx, part, a, call, seen)
		if err != nil {
			return msgs, err
		}
		if lastRound {
			result += noMoreCalls
		}
		msgs = q.append(a, msgs, sessions.Event{Role: sessions.RoleTool, Content: result, ToolCallID: call.ID, ToolName: call.Name})
	}
	return msgs, nil
}

const noMoreCalls = "\n\n[No more tool calls in this turn: answer with what you have.]"

func (q *question) append(a *Answer, msgs []llm.Message, e sessions.Event) []llm.Message {
	e.Tokens = q.asker.cfg.Views.CountEvent(e)
	a.Events = append(a.Events, e)
	shown := []sessions.Event{e}
	q.asker.cfg.Views.Shrink(q.made.View.Session, shown, q.made.Next()+int64(len(q.made.Asked)+len(a.Events)-1))
	a.Report.estimate += compaction.TokensOf(shown)
	return append(msgs, llm.Message{Role: string(e.Role), Content: shown[0].Content, ToolCalls: e.ToolCalls, ToolCallID: e.ToolCallID})
}

const squeezedBytes = 400

// makeRoom offloads the turn's own large tool results as the policy demands, then shortens more, the oldest first,
// until the request fits. A reference names the path at which memory_get reads the whole, also in this turn. It
// reports whether another round has room.
func (q *question) makeRoom(a *Answer, msgs []llm.Message, first int) bool {
	set, count := q.asker.cfg.Views.Settings(q.made.View.Session), q.asker.cfg.Shared.Counter.Count
	usable, cal := set.Window.Usable(), q.made.View.Session.CalibrationFactor
	if q.half {
		usable, cal = usable/2, 1
	}
	replace := func(i int, text string) {
		a.Report.estimate -= count(msgs[i].Content) - count(text)
		msgs[i].Content, a.Report.partial = text, true
	}
	state := compaction.State{Tail: q.current(a.Events), Tokens: view.Calibrated(a.Report.estimate, cal)}
	shown, _ := set.Policy.Offload(set.Window, state, count)
	if !set.Enabled || !q.frame().Offers(sessions.GetTool) {
		shown = nil
	}
	for _, one := range shown {
		if i := first + int(one.Seq-q.made.Next()) - len(q.made.Asked); one.Text != msgs[i].Content {
			replace(i, one.Text)
		}
	}
	for i := first; i < len(msgs) && view.Calibrated(a.Report.estimate, cal) >= usable; i++ {
		if msgs[i].Role != "tool" || len(msgs[i].Content) <= squeezedBytes {
			continue
		}
		whole := a.Events[i-first] // no result is shortened twice
		text, ok := compaction.Reference(whole)
		if !ok || !q.frame().Offers(sessions.GetTool) {
			text = tokens.HeadTail(whole.Content, squeezedBytes)
		}
		if len(text) < len(msgs[i].Content) {
			replace(i, text)
		}
	}
	if len(msgs) > first && view.Calibrated(a.Report.estimate, cal) >= usable {
		msgs[len(msgs)-1].Content += noMoreCalls
		return false
	}
	return true
}

func (a *Answer) say(resp llm.Response, lang string, rounds bool) {
	a.Text = strings.TrimSpace(resp.Text)
	switch {
	case a.Text == "" && rounds:
		a.Text = wording.Say(wording.Rounds, lang)
	case a.Text == "" && resp.Finish == llm.FinishFilter:
		a.Text = wording.Say(wording.Refused, lang)
	case a.Text == "":
		a.Text = wording.Say(wording.Empty, lang)
	case resp.Finish == llm.FinishLength:
		a.Text += wording.Say(wording.CutOff, lang)
	case resp.Finish == llm.FinishFilter:
		a.Text += wording.Say(wording.Withheld, lang)
	case resp.Finish == llm.FinishRepeats:
		a.Text += wording.Say(wording.Repeats, lang)
	}
	a.Events = append(a.Events, sessions.Event{Role: sessions.RoleAssistant, Content: a.Text})
}
