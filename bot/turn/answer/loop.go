package answer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"ebb/bot/parts"
	"ebb/bot/turn/slot"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// toolLoop is one request to the model, and the rounds of the model and its tools that follow it.
type toolLoop struct {
	before   Answer // by the requests before
	sent     request
	messages []llm.Message // those of the request, then the calls and results of its rounds
	answer   Answer
	round    int             // 0 before the first one
	called   map[string]bool // calls of tools, each with its arguments
	found    int             // tokens of the schemas of found tools, in the estimate
	repeated bool            // the model was asked once more for an answer that can't be read
	last     bool            // no round may follow
}

func newLoop(r request, before Answer) *toolLoop {
	return &toolLoop{
		before: before, sent: r, found: r.found, messages: slices.Clone(r.messages), called: map[string]bool{},
		answer: Answer{Report: Report{estimate: r.size, recalled: r.recalled.tokens, partial: r.partial}},
	}
}

// results are the messages of the rounds.
func (l *toolLoop) results() []llm.Message { return l.messages[len(l.sent.messages):] }

// say ends the loop with words of the model, or fixed ones in their place. noRounds reports that the model may not go on.
func (l *toolLoop) say(resp llm.Response, lang string, noRounds bool) {
	a := &l.answer
	a.Text = strings.TrimSpace(resp.Text)
	switch {
	case a.Text == "" && noRounds:
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
	a.Result.Events = append(a.Result.Events, sessions.Event{Role: sessions.RoleAssistant, Content: a.Text})
}

// roundRunner runs the rounds of the model and its tools.
type roundRunner struct {
	shared *parts.Shared
	views  *view.Builder
	tools  toolCaller
	stats  Stats
	most   int // rounds with calls
}

// makeApproved makes the calls that the turn's command approved, before the first round: the model reads them as its own, with their
// results.
func (r roundRunner) makeApproved(ctx context.Context, q *question, f *refusals, l *toolLoop) error {
	if l.round > 0 || len(q.made.Decided) == 0 {
		return nil
	}
	calls := make([]sessions.ToolCall, len(q.made.Decided))
	for i, d := range q.made.Decided {
		calls[i] = sessions.ToolCall{ID: d.CallID(), Name: d.Tool, Arguments: cmp.Or(d.Arguments, "{}")}
	}
	r.append(*q, l, sessions.Event{Role: sessions.RoleAssistant, ToolCalls: calls})
	part, stop := withHalf(ctx)
	defer stop()
	for i, c := range calls {
		result, err := r.tools.callApproved(ctx, part, q, &l.answer, f.suspected(*q), c, q.made.Decided[i].Arguments == "", l.called)
		if err != nil {
			return err
		}
		r.append(*q, l, sessions.Event{Role: sessions.RoleTool, Content: result, ToolCallID: c.ID, ToolName: c.Name})
	}
	return nil
}

// next makes the request of the next round.
func (r roundRunner) next(q question, f *refusals, l *toolLoop) llm.Request {
	l.round++
	v := q.made.View
	frame := r.views.Frames.FrameOf(v.Session)
	// A search in the turn adds its finds to the next request.
	tools := frame.Offer(l.sent.view.Tail, l.answer.Result.Events)
	l.answer.Report.estimate, l.found = l.answer.Report.estimate+tools.Tokens-l.found, tools.Tokens
	l.last = !r.makeRoom(q, l) || l.round > r.most || f.left() == 1
	if l.round == 1 && f.left() == 1 { // no request is left for a result
		l.messages[len(l.messages)-1].Content += noMoreCalls
	}
	req := llm.Request{
		Kind: llm.KindTurn, Model: cmp.Or(f.accepts, r.views.Choices.Model(v.Session)), Messages: l.messages, Tools: tools.Tools,
		Requests: f.bound(), Voices: frame.Voices(v, q.made.Asked),
	}
	if shown := l.answer.shown; len(shown) > 0 {
		req.Messages = append(slices.Clip(l.messages), shownAgain(shown))
	}
	if q.live != nil { // without a display a model is asked for no stream
		req.Delta, req.Thought = q.live.Text, q.live.Thought
	}
	return req
}

// take judges the response of a round, and runs the calls in it. more reports whether another round follows. The error is a model call that
// failed after all retries, or a call that can't be recorded.
func (r roundRunner) take(ctx context.Context, q *question, f *refusals, l *toolLoop, resp llm.Response, err error) (more bool, _ error) {
	a := &l.answer
	a.Work.add(resp.Parts)
	a.last = resp
	if err != nil && (slot.IsStopped(ctx) || slot.HasLostLease(ctx)) {
		a.Text = resp.Text
		r.estimateUse(*q, *a, &resp)
	}
	a.Result.Spent.Usage, a.Result.Spent.Cost = a.Result.Spent.Usage.Add(resp.Usage), a.Result.Spent.Cost+resp.Cost // a failed call may have used tokens
	if resp.Usage != (sessions.Usage{}) {
		a.Result.Spent.Model = cmp.Or(resp.UsedModel(), a.Result.Spent.Model)
	}
	switch {
	case err != nil && l.round > 1 && r.dropCalls(ctx, *q, f, l, refusedBy(resp, err)):
		if f.left() > 0 {
			return true, nil
		}
		l.say(llm.Response{Text: wording.Say(wording.ResultsRefused, q.made.Lang)}, q.made.Lang, false)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("model call %d of the turn: %w", l.round, err)
	case resp.Garbled() && !l.repeated && !l.last: // the model is asked once more
		l.repeated = true
		if q.live != nil {
			q.live.Text("", true) // the display takes back what it shows of the answer
		}
		return true, nil
	}
	a.Report.usage, a.Report.guessed, a.Report.ended = resp.Usage, resp.Guessed, resp.Guessed && resp.Ended()
	a.Result.Spent.Model = cmp.Or(resp.Model, a.Result.Spent.Model)
	if len(resp.ToolCalls) == 0 || l.last {
		l.say(resp, q.made.Lang, l.last)
		return false, nil
	}
	r.append(*q, l, sessions.Event{Role: sessions.RoleAssistant, Content: resp.Text, ToolCalls: r.tools.bound(*q, resp.ToolCalls)})
	l.messages[len(l.messages)-1].Reasoning = resp.Reasoning
	if err = r.runCalls(ctx, q, f, l, resp.ToolCalls); err == nil && len(a.Waits) > 0 && !slot.IsStopped(ctx) {
		l.say(llm.Response{Text: r.tools.approvals.notice(*q, a.Waits, resp.Text)}, q.made.Lang, false)
		return false, nil
	}
	return err == nil, err
}

// estimateUse is for a call that a stop or the end of the lease ended, if its request was sent and the provider reported nothing.
func (r roundRunner) estimateUse(q question, a Answer, resp *llm.Response) {
	at := len(resp.Parts) - 1
	if resp.Usage != (sessions.Usage{}) || at < 0 || resp.Parts[at].Requests == 0 {
		return
	}
	cal := q.made.View.Session.CalibrationFactor
	resp.Usage = sessions.Usage{Prompt: view.Calibrated(a.Report.estimate, cal), Completion: view.Calibrated(r.shared.Counter.Count(resp.Text), cal)}
	resp.Cost = r.views.Choices.Price(resp.Parts[at].Model).Cost(resp.Usage)
}

// runCalls gives the calls one deadline: tools that hang leave the model half of the turn's remaining time.
func (r roundRunner) runCalls(ctx context.Context, q *question, f *refusals, l *toolLoop, calls []sessions.ToolCall) error {
	part, stop := withHalf(ctx)
	defer stop()
	lastRound := l.round == r.most || f.left() == 1
	for _, call := range calls {
		result, err := r.tools.call(ctx, part, q, &l.answer, f.suspected(*q), call, l.called)
		if err != nil {
			return err
		}
		if lastRound {
			result += noMoreCalls
		}
		r.append(*q, l, sessions.Event{Role: sessions.RoleTool, Content: result, ToolCallID: call.ID, ToolName: call.Name})
	}
	return nil
}

const noMoreCalls = "\n\n[No more tool calls in this turn: answer with what you have.]"

func (r roundRunner) append(q question, l *toolLoop, e sessions.Event) {
	a := &l.answer
	e.Tokens = r.views.Sizes.CountEvent(e)
	a.Result.Events = append(a.Result.Events, e)
	shown := []sessions.Event{e}
	r.views.Shrink(q.made.View.Session, shown, q.made.Next()+int64(len(q.made.Asked)+len(a.Result.Events)-1))
	a.Report.estimate += compaction.TokensOf(shown)
	l.messages = append(l.messages, llm.Message{Role: string(e.Role), Content: shown[0].Content, ToolCalls: e.ToolCalls, ToolCallID: e.ToolCallID})
}

const squeezedBytes = 400

// makeRoom offloads the turn's own large tool results as the policy demands, then shortens more, the oldest first,
// until the request fits. A reference names the path at which memory_get reads the whole, also in this turn. It
// reports whether another round has room.
func (r roundRunner) makeRoom(q question, l *toolLoop) bool {
	a, results := &l.answer, l.results()
	set, count, frame := r.views.Choices.Settings(q.made.View.Session), r.shared.Counter.Count, r.views.Frames.FrameOf(q.made.View.Session)
	usable, cal := set.Window.Usable(), q.made.View.Session.CalibrationFactor
	if l.sent.half {
		usable, cal = usable/2, 1
	}
	replace := func(i int, text string) {
		a.Report.estimate -= count(results[i].Content) - count(text)
		results[i].Content, a.Report.partial = text, true
	}
	state := compaction.State{Tail: q.current(a.Result.Events), Tokens: view.Calibrated(a.Report.estimate, cal)}
	shown, _ := set.Policy.Offload(set.Window, state, count)
	if !set.Enabled || !frame.Offers(sessions.GetTool) {
		shown = nil
	}
	for _, one := range shown {
		if i := int(one.Seq-q.made.Next()) - len(q.made.Asked); one.Text != results[i].Content {
			replace(i, one.Text)
		}
	}
	for i := 0; i < len(results) && view.Calibrated(a.Report.estimate, cal) >= usable; i++ {
		if results[i].Role != "tool" || len(results[i].Content) <= squeezedBytes {
			continue
		}
		whole := a.Result.Events[i] // no result is shortened twice
		text, ok := compaction.Reference(whole)
		if !ok || !frame.Offers(sessions.GetTool) {
			text = tokens.HeadTail(whole.Content, squeezedBytes)
		}
		if len(text) < len(results[i].Content) {
			replace(i, text)
		}
	}
	if len(results) > 0 && view.Calibrated(a.Report.estimate, cal) >= usable {
		results[len(results)-1].Content += noMoreCalls
		return false
	}
	return true
}

// dropCalls leaves out the newest calls of tools and their results: the request before them was accepted, so the cause is among them. It
// reports whether the request is another one now.
func (r roundRunner) dropCalls(ctx context.Context, q question, f *refusals, l *toolLoop, cause *llm.CallError) bool {
	a, msgs := &l.answer, l.messages
	at := len(a.Result.Events)
	for at > 0 && a.Result.Events[at-1].Role == sessions.RoleTool {
		at--
	}
	if cause == nil || at == len(a.Result.Events) || at == 0 {
		return false
	}
	a.Report.partial, a.shown = true, nil // the pictures that they brought back go with them
	results := msgs[len(msgs)-(len(a.Result.Events)-at):]
	for i := range results {
		a.Report.estimate += sessions.WithheldTokens - r.shared.Counter.Count(results[i].Content)
		results[i].Content = sessions.WithheldText
	}
	results[len(results)-1].Content += noMoreCalls
	calls := &msgs[len(msgs)-len(results)-1]
	calls.Content, calls.Reasoning, calls.ToolCalls = "", "", slices.Clone(calls.ToolCalls)
	for i := range calls.ToolCalls {
		calls.ToolCalls[i].Arguments = "{}"
	}
	zerolog.Ctx(ctx).Warn().Str("class", string(cause.Class)).Str("tool", a.Result.Events[at].ToolName).Msg("Model refused calls of tools or their results: they are left out")
	r.stats.RequestRefused(RefusedHistory)
	first := q.made.Next() + int64(len(q.made.Asked)+at) - 1 // the calls: a result alone is no legal request
	f.suspicion = (&sessions.Suspicion{
		Model: q.made.View.Reads, Class: string(cause.Class), At: r.shared.Now(), From: first, Through: first + int64(len(a.Result.Events)-at),
	}).Join(f.suspicion)
	return true
}
