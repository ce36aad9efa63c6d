package turn

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory/draft"
	"ebb/sessions"
)

type answer struct {
	events   []sessions.Event // assistant and tool events; the last one is not counted yet
	text     string
	usage    sessions.Usage // all calls
	cost     float64        // all calls
	last     sessions.Usage // the last call
	guessed  bool           // its usage is an estimate
	ended    bool           // Ebb ended the call before a report
	estimate int            // our own count of the last request, not calibrated
	model    string         // answered, or used the tokens
	resp     llm.Response   // the last call's
}

func (a answer) spending() sessions.Spending {
	return sessions.Spending{Kind: sessions.SpentTurn, Usage: a.usage, Cost: a.cost, Model: a.model}
}

// loop returns a model call that failed after all retries as its error; the answer then has the work before it.
func (r *Runner) loop(ctx context.Context, t *Turn, msgs []llm.Message) (answer, error) {
	a := answer{estimate: t.size}
	t.events = nil
	first := len(msgs)
	seen, again := map[string]bool{}, false
	for round := 1; ; round++ {
		last := !r.makeRoom(t, &a, msgs, first) || round > r.cfg.MaxToolRounds || t.refusals.left() == 1
		if round == 1 && t.refusals.left() == 1 { // no request is left for a result
			msgs[len(msgs)-1].Content += noMoreCalls
		}
		resp, err := r.model.Generate(ctx, llm.Request{Kind: llm.KindTurn, Model: cmp.Or(t.refusals.accepts, r.views.Model(t.View.Session)), Messages: msgs, Tools: r.frame(t).Tools, Requests: t.refusals.bound(), Delta: t.delta(), Thought: t.thought(), Voices: r.frame(t).Voices(t.View, t.Asked)})
		t.refusals.note(resp, err, t.halfWindow)
		t.work.add(resp.Parts)
		a.resp = resp
		if err != nil && (isStopped(ctx) || hasLostLease(ctx)) {
			a.text = resp.Text
			r.estimateUse(t, a, &resp)
		}
		a.usage, a.cost = a.usage.Add(resp.Usage), a.cost+resp.Cost // a failed call may have used tokens
		if resp.Usage != (sessions.Usage{}) {
			a.model = cmp.Or(resp.UsedModel(), a.model)
		}
		if err != nil && round > 1 && (defence{r, t}).dropCalls(ctx, &a, msgs, refusedBy(resp, err)) {
			if t.refusals.left() > 0 {
				continue
			}
			a.finish(llm.Response{Text: wording.Say(wording.ResultsRefused, t.Lang)}, t.Lang, false)
			return a, nil
		}
		if err != nil {
			return a, fmt.Errorf("model call %d of the turn: %w", round, err)
		}
		if resp.Garbled() && !again && !last { // the model is asked once more
			again = true
			t.hide()
			continue
		}
		a.last, a.guessed, a.ended, a.model = resp.Usage, resp.Guessed, resp.Guessed && resp.Ended(), cmp.Or(resp.Model, a.model)
		if len(resp.ToolCalls) == 0 || last {
			a.finish(resp, t.Lang, last)
			return a, nil
		}
		msgs = r.appendEvent(t, &a, msgs, sessions.Event{Role: sessions.RoleAssistant, Content: resp.Text, ToolCalls: resp.ToolCalls})
		msgs[len(msgs)-1].Reasoning = resp.Reasoning
		if msgs, err = r.runCalls(ctx, t, &a, msgs, resp.ToolCalls, seen, round == r.cfg.MaxToolRounds || t.refusals.left() == 1); err != nil {
			return a, err
		}
	}
}

// runCalls gives the calls one deadline: tools that hang leave the model half of the turn's remaining time.
func (r *Runner) runCalls(
	ctx context.Context, t *Turn, a *answer, msgs []llm.Message, calls []sessions.ToolCall, seen map[string]bool, lastRound bool,
) ([]llm.Message, error) {
	part, stop := withHalf(ctx)
	defer stop()
	for _, call := range calls {
		result, err := r.callTool(ctx, part, t, call, seen)
		if err != nil {
			return msgs, err
		}
		if lastRound {
			result += noMoreCalls
		}
		msgs = r.appendEvent(t, a, msgs, sessions.Event{Role: sessions.RoleTool, Content: result, ToolCallID: call.ID, ToolName: call.Name})
	}
	return msgs, nil
}

// delta is nil without a display, so that a model without streams is asked for none.
func (t *Turn) delta() func(text string, reset bool) {
	if t.live == nil {
		return nil
	}
	return t.live.Text
}

// hide takes back what a display shows of an answer that is asked for again.
func (t *Turn) hide() {
	if t.live != nil {
		t.live.Text("", true)
	}
}

func (t *Turn) thought() func(text string) {
	if t.live == nil {
		return nil
	}
	return t.live.Thought
}

const noMoreCalls = "\n\n[No more tool calls in this turn: answer with what you have.]"

func (r *Runner) appendEvent(t *Turn, a *answer, msgs []llm.Message, e sessions.Event) []llm.Message {
	e.Tokens = r.views.CountEvent(e)
	a.events = append(a.events, e)
	t.events = a.events
	shown := []sessions.Event{e}
	view.Shrink(shown, r.views.Settings(t.View.Session).Window.Usable(), t.next()+int64(len(t.Asked)+len(a.events)-1))
	a.estimate += compaction.TokensOf(shown)
	return append(msgs, llm.Message{Role: string(e.Role), Content: shown[0].Content, ToolCalls: e.ToolCalls, ToolCallID: e.ToolCallID})
}

const squeezedBytes = 400

// makeRoom offloads the turn's own large tool results as the policy demands, then shortens more, the oldest first,
// until the request fits. A reference names the path at which memory_get reads the whole, also in this turn. It
// reports whether another round has room.
func (r *Runner) makeRoom(t *Turn, a *answer, msgs []llm.Message, first int) bool {
	usable, cal := r.views.Settings(t.View.Session).Window.Usable(), t.View.Session.CalibrationFactor
	if t.halfWindow {
		usable, cal = usable/2, 1
	}
	replace := func(i int, text string) {
		a.estimate -= r.counter.Count(msgs[i].Content) - r.counter.Count(text)
		msgs[i].Content, t.partial = text, true
	}
	set := r.views.Settings(t.View.Session)
	state := compaction.State{Tail: t.current(), Tokens: view.Calibrated(a.estimate, cal)}
	shown, _ := set.Policy.Offload(set.Window, state, r.counter.Count)
	if !set.Enabled || !r.frame(t).Offers(sessions.GetTool) {
		shown = nil
	}
	for _, one := range shown {
		if i := first + int(one.Seq-t.next()) - len(t.Asked); one.Text != msgs[i].Content {
			replace(i, one.Text)
		}
	}
	for i := first; i < len(msgs) && view.Calibrated(a.estimate, cal) >= usable; i++ {
		if msgs[i].Role != "tool" || len(msgs[i].Content) <= squeezedBytes {
			continue
		}
		whole := a.events[i-first] // no result is shortened twice
		text, ok := compaction.Reference(whole)
		if !ok || !r.frame(t).Offers(sessions.GetTool) {
			text = tokens.HeadTail(whole.Content, squeezedBytes)
		}
		if len(text) < len(msgs[i].Content) {
			replace(i, text)
		}
	}
	if len(msgs) > first && view.Calibrated(a.estimate, cal) >= usable {
		msgs[len(msgs)-1].Content += noMoreCalls
		return false
	}
	return true
}

func (a *answer) finish(resp llm.Response, lang string, rounds bool) {
	a.text = strings.TrimSpace(resp.Text)
	switch {
	case a.text == "" && rounds:
		a.text = wording.Say(wording.Rounds, lang)
	case a.text == "" && resp.Finish == llm.FinishFilter:
		a.text = wording.Say(wording.Refused, lang)
	case a.text == "":
		a.text = wording.Say(wording.Empty, lang)
	case resp.Finish == llm.FinishLength:
		a.text += wording.Say(wording.CutOff, lang)
	case resp.Finish == llm.FinishFilter:
		a.text += wording.Say(wording.Withheld, lang)
	case resp.Finish == llm.FinishRepeats:
		a.text += wording.Say(wording.Repeats, lang)
	}
	a.events = append(a.events, sessions.Event{Role: sessions.RoleAssistant, Content: a.text})
}

// callTool runs within part, which ends before ctx. A tool's failure becomes a result for the model. The error is a
// lost lease or a storage that can't record the run; both end the turn.
func (r *Runner) callTool(ctx, part context.Context, t *Turn, c sessions.ToolCall, seen map[string]bool) (string, error) {
	if isStopped(ctx) {
		return NotRun, nil
	}
	id := c.Name + "\x00" + c.Arguments
	if seen[id] {
		return "Same call as before in this turn, not run again: its result stands above.", nil
	}
	tool := r.tools[c.Name]
	if tool == nil || !r.frame(t).Offers(c.Name) {
		return fmt.Sprintf("There is no tool %q. Tools: %s.", c.Name, toolNames(r.frame(t))), nil
	}
	if again, ok := tool.(chat.Repeatable); ok && again.Repeatable() {
		seen[id] = true
		return r.runTool(part, t, tool, c), nil
	}
	for _, before := range t.View.Runs {
		if before.Call.Name == c.Name && before.Call.Arguments == c.Arguments {
			if before.Finished {
				return before.Result, nil
			}
			return view.Interrupted, nil
		}
	}
	run := sessions.ToolRun{Call: c, EventID: t.Asked[0].ID}
	for slices.ContainsFunc(t.View.Runs, func(before sessions.ToolRun) bool { return before.Call.ID == run.Call.ID }) {
		run.Call.ID += "+" // some providers reuse call IDs in every round
	}
	if err := r.recordRun(ctx, t, run); err != nil {
		return "", fmt.Errorf("record call of %s: %w", c.Name, err)
	}
	run.Result, run.Finished = r.runTool(part, t, tool, c), true
	if err := r.recordRun(ctx, t, run); err != nil {
		return "", fmt.Errorf("record result of %s: %w", c.Name, err)
	}
	seen[id] = true
	t.View.Runs = append(t.View.Runs, run) // a repeated request of this turn does not run it again
	return run.Result, nil
}

const minTokenBytes = 2

// recordRun waits while the storage is unavailable, so that the model's work is not lost.
func (r *Runner) recordRun(ctx context.Context, t *Turn, run sessions.ToolRun) error {
	return r.persist(ctx, "Tool call not recorded, trying again", func(one context.Context) error {
		err := r.store.RecordRun(one, t.Lease, run)
		t.stalled = t.stalled || err != nil
		return err
	})
}

// runTool returns a tool's error as the result, so that the model can correct the call.
func (r *Runner) runTool(ctx context.Context, t *Turn, tool chat.Tool, c sessions.ToolCall) string {
	t.work.tools = append(t.work.tools, c.Name)
	itsChat := t.Chat()
	itsChat.Location, itsChat.TaskTTL = r.cfg.Location, r.cfg.Remember.TaskTTL
	if t.live != nil {
		t.live.Tool(c.Name)
	}
	result, err := tool.Call(ctx, chat.ToolInput{
		Arguments: c.Arguments, Lease: t.Lease, Reader: draft.ReaderOf(itsChat), Chat: itsChat, CallID: c.ID,
		Current: t.current(), Room: minTokenBytes * view.BodyLimit(r.views.Settings(t.View.Session).Window.Usable()),
		Suspicion: t.suspicion(),
		May:       r.handler.May,
		Read:      func(id int64) { t.read = append(t.read, id) },
	})
	outcome := "ok"
	switch {
	case err != nil && isStopped(ctx):
		result, outcome = view.Interrupted, "stopped"
	case err != nil:
		result, outcome = "error: "+err.Error(), "error"
	}
	r.stats.ToolCalled(c.Name, outcome)
	zerolog.Ctx(ctx).Debug().Str("tool", c.Name).Str("outcome", outcome).Msg("Tool called")
	return result
}

func withHalf(ctx context.Context) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}

func toolNames(f *view.Frame) string {
	names := make([]string, len(f.Tools))
	for i, t := range f.Tools {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}

// suspectReports remembers the models whose reports are no measurements. Its zero value is ready.
type suspectReports struct{ models sync.Map }

// warn names a model once. Our own count replaces its report.
func (s *suspectReports) warn(ctx context.Context, o outcome) {
	if _, known := s.models.LoadOrStore(o.model, true); known {
		return
	}
	log := zerolog.Ctx(ctx).Warn().Str("model", o.model).Int("counted", o.estimate)
	switch {
	case o.guessed:
		log.Msg("Model reports no tokens, or impossible ones: Ebb counts by itself")
	case o.last.Prompt < o.estimate:
		log.Int("reported", o.last.Prompt).Msg("Model reports far fewer tokens than were sent: its context may be smaller than context_window, " +
			"so that it loses the beginning of requests (num_ctx of Ollama). Ebb counts by itself")
	default:
		log.Int("reported", o.last.Prompt).Msg("Model reports far more tokens than were sent: Ebb counts by itself")
	}
}
