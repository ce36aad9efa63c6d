package turn

import (
	"context"
	"fmt"
	"slices"
	"strings"

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

// answer is what the loop between model and tools gave.
type answer struct {
	events   []sessions.Event // assistant and tool events; the last words are not counted yet
	text     string           // for people
	usage    sessions.Usage   // of all calls
	cost     float64          // of all calls
	last     sessions.Usage   // of the last call
	estimate int              // our own count of the last request, not calibrated
	model    string
}

// spending is what the answer took.
func (a answer) spending() sessions.Spending {
	return sessions.Spending{Kind: sessions.SpentTurn, Usage: a.usage, Cost: a.cost}
}

// loop asks the model, runs the tools that it calls, and asks again, until it answers in words. An error is a model
// call that failed for good; what ran before it is in the answer.
func (r *Runner) loop(ctx context.Context, t *Turn, msgs []llm.Message) (answer, error) {
	a := answer{estimate: t.size}
	t.sofar = nil
	first := len(msgs)
	seen := map[string]bool{} // calls made in this turn
	for round := 1; ; round++ {
		full := !r.room(t, &a, msgs, first)
		resp, err := r.model.Generate(ctx, llm.Request{Kind: llm.KindTurn, Messages: msgs, Tools: r.views.Frame.Tools, Delta: t.delta})
		a.usage, a.cost = a.usage.Add(resp.Usage), a.cost+resp.Cost // an error may have taken some, too
		if err != nil {
			return a, fmt.Errorf("model call %d of the turn: %w", round, err)
		}
		a.last, a.model = resp.Usage, resp.Model
		last := full || round > r.cfg.MaxToolRounds
		if len(resp.ToolCalls) == 0 || last {
			a.finish(resp, t.Lang, last)
			return a, nil
		}
		msgs = r.appendEvent(t, &a, msgs, sessions.Event{Role: sessions.RoleAssistant, Content: resp.Text, ToolCalls: resp.ToolCalls})
		for _, call := range resp.ToolCalls {
			result, err := r.call(ctx, t, call, seen)
			if err != nil {
				return a, err
			}
			if round == r.cfg.MaxToolRounds {
				result += NoMoreCalls
			}
			msgs = r.appendEvent(t, &a, msgs, sessions.Event{Role: sessions.RoleTool, Content: result, ToolCallID: call.ID, ToolName: call.Name})
		}
	}
}

// NoMoreCalls ends what a model may still find out in a turn.
const NoMoreCalls = "\n\n[No more tool calls in this turn: answer with what you have.]"

// appendEvent counts an event, appends it to the turn and, as later views will show it, to the request.
func (r *Runner) appendEvent(t *Turn, a *answer, msgs []llm.Message, e sessions.Event) []llm.Message {
	e.Tokens = r.views.CountEvent(e)
	a.events = append(a.events, e)
	t.sofar = a.events
	shown := []sessions.Event{e}
	view.Shrink(shown, r.views.Settings(t.View.Session).Window.Usable(), t.next()+int64(len(t.Asked)+len(a.events)-1))
	a.estimate += compaction.TokensOf(shown)
	return append(msgs, llm.Message{Role: string(e.Role), Content: shown[0].Content, ToolCalls: e.ToolCalls, ToolCallID: e.ToolCallID})
}

// Squeezed is what is left of a tool result when there is no room for it, in bytes.
const Squeezed = 400

// room moves the turn's own large tool results out of the request where its policy does so at that size, and makes the
// request fit into the window: by moving out results, from first on, the oldest first. A reference names the path at which
// memory_get reads the whole, in this turn too. It reports whether there is room for another round. The log keeps the results
// whole.
func (r *Runner) room(t *Turn, a *answer, msgs []llm.Message, first int) bool {
	usable, cal := r.views.Settings(t.View.Session).Window.Usable(), t.View.Session.CalibrationFactor
	if t.half {
		usable, cal = usable/2, 1
	}
	replace := func(i int, text string) {
		a.estimate -= r.counter.Count(msgs[i].Content) - r.counter.Count(text)
		msgs[i].Content, t.cut = text, true
	}
	set := r.views.Settings(t.View.Session)
	state := compaction.State{Tail: t.current(), Tokens: view.Calibrated(a.estimate, cal)}
	shown, _ := set.Policy.Offload(set.Window, state, r.counter.Count)
	if !set.Enabled {
		shown = nil
	}
	for _, one := range shown {
		if i := first + int(one.Seq-t.next()) - len(t.Asked); one.Text != msgs[i].Content {
			replace(i, one.Text)
		}
	}
	for i := first; i < len(msgs) && view.Calibrated(a.estimate, cal) >= usable; i++ {
		if msgs[i].Role != "tool" || len(msgs[i].Content) <= Squeezed {
			continue
		}
		whole := a.events[i-first] // what was shortened before is not shortened again
		text, ok := compaction.Reference(whole)
		if !ok || r.tools[sessions.GetTool] == nil {
			text = tokens.HeadTail(whole.Content, Squeezed)
		}
		if len(text) < len(msgs[i].Content) {
			replace(i, text)
		}
	}
	if len(msgs) > first && view.Calibrated(a.estimate, cal) >= usable {
		msgs[len(msgs)-1].Content += NoMoreCalls
		return false
	}
	return true
}

// finish ends the turn with the model's words, or with a sensible one where there are none.
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
	}
	a.events = append(a.events, sessions.Event{Role: sessions.RoleAssistant, Content: a.text})
}

// call runs one tool call. What goes wrong inside a tool is told to the model; the error is for a lost lease or a
// storage that can't record the run, both of which end the turn.
func (r *Runner) call(ctx context.Context, t *Turn, c sessions.ToolCall, seen map[string]bool) (string, error) {
	id := c.Name + "\x00" + c.Arguments
	if seen[id] {
		return "Same call as before in this turn, not run again: its result stands above.", nil
	}
	tool := r.tools[c.Name]
	if tool == nil {
		return fmt.Sprintf("There is no tool %q. Tools: %s.", c.Name, r.toolNames()), nil
	}
	if again, ok := tool.(chat.Repeatable); ok && again.Repeatable() {
		seen[id] = true
		return r.run(ctx, t, tool, c), nil
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
		run.Call.ID += "+" // some providers number their calls anew in every round
	}
	if err := r.record(ctx, t, run); err != nil {
		return "", fmt.Errorf("record call of %s: %w", c.Name, err)
	}
	run.Result, run.Finished = r.run(ctx, t, tool, c), true
	if err := r.record(ctx, t, run); err != nil {
		return "", fmt.Errorf("record result of %s: %w", c.Name, err)
	}
	seen[id] = true
	t.View.Runs = append(t.View.Runs, run) // a turn that must ask again from the start does not run it again
	return run.Result, nil
}

// leastBytes is how many bytes a token takes at least, in all but the oddest texts.
const leastBytes = 2

// record stores a tool call, and waits for a storage that is away: what the model said up to now is not thrown away.
func (r *Runner) record(ctx context.Context, t *Turn, run sessions.ToolRun) error {
	return r.persist(ctx, "Tool call not recorded, trying again", func(one context.Context) error {
		err := r.store.RecordRun(one, t.Lease, run)
		t.stalled = t.stalled || err != nil
		return err
	})
}

// run calls the tool; its error becomes the result, so that the model can do better.
func (r *Runner) run(ctx context.Context, t *Turn, tool chat.Tool, c sessions.ToolCall) string {
	itsChat := t.Chat()
	itsChat.Location, itsChat.TaskTTL = r.cfg.Location, r.cfg.Remember.TaskTTL
	result, err := tool.Call(ctx, chat.ToolInput{
		Arguments: c.Arguments, Lease: t.Lease, Reader: draft.ReaderOf(itsChat), Chat: itsChat, CallID: c.ID,
		Current: t.current(), Room: leastBytes * view.BodyLimit(r.views.Settings(t.View.Session).Window.Usable()),
	})
	outcome := "ok"
	if err != nil {
		result, outcome = "error: "+err.Error(), "error"
	}
	r.stats.ToolCalled(c.Name, outcome)
	zerolog.Ctx(ctx).Debug().Str("tool", c.Name).Str("outcome", outcome).Msg("Tool called")
	return result
}

// toolNames lists the tools for a model that asked for another.
func (r *Runner) toolNames() string {
	names := make([]string, len(r.views.Frame.Tools))
	for i, t := range r.views.Frame.Tools {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}
