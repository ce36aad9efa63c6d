// Package answer makes the answer of a turn. It fits a request into the window, searches memory, lets the model and its tools work in
// rounds, and asks again in another way if the provider refuses the request. It counts the tokens of the context behind the answer.
package answer

import (
	"cmp"
	"context"
	"slices"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/parts"
	"ebb/bot/turn/choice"
	"ebb/bot/turn/slot"
	"ebb/bot/view"
	"ebb/memory"
	"ebb/sessions"
)

// Answer is the answer of a turn, with all that its commit stores.
type Answer struct {
	For    choice.Choice     // as it was answered: a compaction may have replaced its view, a refusal may have left its first message alone
	Text   string            // the reply
	Events []sessions.Event  // by the model and its tools
	Mute   bool              // without a reply: the senders have a notice, or see the end of their card
	Card   string            // the reply goes on it; empty for none
	Spent  sessions.Spending // on all calls; its model answered, or used the tokens
	Work   Work
	Report Report
	Share  int // shown percentage of the long messages among the asked; 0: all were whole

	Read    []int64          // memory that was recalled, or read by tools
	Pinned  *sessions.Pinned // pinned memory from this turn on; nil: unchanged
	Outcome sessions.Outcome // for later commands that refer to it
	Kept    string           // logged in place of an answer that must not be stored; empty: the answer itself
	Marks   Marks
	stalled bool         // the storage did not record a tool call at once
	last    llm.Response // the last call's
}

// Stalled reports whether the storage held the answer up. A deadline that expired meanwhile is no fault of the model.
func (a Answer) Stalled() bool { return a.stalled }

// after adds the work of the requests before.
func (a Answer) after(before Answer) Answer {
	a.Spent.Usage, a.Spent.Cost = a.Spent.Usage.Add(before.Spent.Usage), a.Spent.Cost+before.Spent.Cost
	a.Spent.Model = cmp.Or(a.Spent.Model, before.Spent.Model)
	a.Work, a.Read, a.stalled = a.Work.after(before.Work), slices.Concat(before.Read, a.Read), a.stalled || before.stalled
	return a
}

// Upkeep is the work on a session apart from its turns.
type Upkeep interface {
	// Busy reports whether a flush or a compaction runs.
	Busy(key sessions.Key) bool
	// Inline compacts before the model is asked; waiting is the size of the question in tokens. needed returns the
	// trigger, or "".
	Inline(ctx context.Context, l sessions.Lease, waiting int, needed func(sessions.View) string) error
	// Charge counts the spending of failed work.
	Charge(ctx context.Context, key sessions.Key, s sessions.Spending)
}

// Store reads the view again after a compaction, and records the calls of tools. See [sessions.Turner].
type Store interface {
	Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error)
	RecordRun(ctx context.Context, l sessions.Lease, r sessions.ToolRun) error
}

// Memory is searched before the model is asked. See [memory.Searcher].
type Memory interface {
	Search(ctx context.Context, r memory.Reader, q memory.Query) ([]memory.Hit, error)
}

// Stats counts the calls of tools, and the permanent refusals by what the provider refused.
type Stats interface {
	ToolCalled(tool, outcome string)
	RequestRefused(what Refused)
}

// Config has the dependencies and settings of an [Asker]. All are required.
type Config struct {
	Shared *parts.Shared
	Views  *view.Builder
	Store  Store
	Memory Memory
	Model  llm.Model
	Upkeep Upkeep
	May    func(e sessions.Event, command string) bool // whether a message's sender has the right to a command, by its English name
	Stats  Stats

	MaxToolRounds int
}

// Asker asks the model.
type Asker struct{ cfg Config }

// New returns an asker.
func New(cfg Config) *Asker { return &Asker{cfg: cfg} }

// question is a choice while the model is asked about it.
type question struct {
	asker    *Asker
	made     choice.Choice    // a compaction replaces its view, a refusal leaves its first message alone
	live     chat.Live        // nil: not shown
	pinned   *sessions.Pinned // read for this turn; nil: unchanged
	found    found
	sent     request // the newest one with the conversation
	half     bool    // the provider refused a request as too large: our counts may use half of the window only
	refusals refusals
	share    int // see [Answer]
}

// Ask asks the model about a choice. It asks once more with the emergency view if the provider finds the request too large, or may do so.
// If it refuses the request, the question is asked alone. The answer of an error has the work before it. live is nil without a display.
func (k *Asker) Ask(ctx context.Context, made choice.Choice, live chat.Live) (Answer, error) {
	made.Asked = slices.Clone(made.Asked) // requests shorten them
	q := &question{asker: k, made: made, live: live}
	a, err := q.loop(ctx, q.fit(ctx))
	refused := refusedBy(a.last, err)
	switch {
	case err == nil && q.refusals.passed != nil: // another model answered
		q.refusals.suspicion = q.suspects(q.refusals.passed).Join(q.refusals.suspicion)
		k.cfg.Stats.RequestRefused(RefusedHistory)
		return q.finish(a), nil
	case err == nil || slot.IsStopped(ctx):
		return q.finish(a), err
	}
	if isTooLarge(err, a.Report.estimate, k.cfg.Views.Settings(q.made.View.Session).Window) {
		before := a
		a, err = q.loop(ctx, q.halve(ctx, err))
		refused, a = refusedBy(a.last, err), a.after(before)
	}
	if err != nil && refused != nil && q.refusals.left() > 0 && !slot.IsStopped(ctx) {
		before := a
		a, err = q.askAlone(ctx, refused)
		if a = a.after(before); err != nil {
			a.Events = before.Events // the log keeps the calls
		}
	}
	return q.finish(a), err
}

func (q *question) finish(a Answer) Answer {
	a.For, a.Pinned, a.Share, a.Read = q.made, q.pinned, q.share, slices.Concat(q.found.facts(), a.Read)
	a.Spent.Kind, a.Marks = sessions.SpentTurn, q.refusals.marks(q.made.View)
	return a
}

// Apologize makes an answer of a model's failure.
func Apologize(ctx context.Context, a Answer, err error) Answer {
	zerolog.Ctx(ctx).Error().Err(err).Str("class", string(llm.ClassOf(err))).Msg("Model gave no answer")
	a.Text = apology(err, a.For.Lang)
	a.Events = dropOpenCalls(a.Events)
	if a.Marks.guilty != nil { // some of the events may be at fault: they are kept from later requests
		for i := range a.Events {
			a.Events[i].Withheld = a.Events[i].Withheld.With(a.For.View.Reads, *a.Marks.guilty)
		}
	}
	a.Events = append(a.Events, sessions.Event{Role: sessions.RoleAssistant, Content: a.Text})
	return a
}

func dropOpenCalls(events []sessions.Event) []sessions.Event {
	for i := len(events) - 1; i >= 0 && events[i].Role != sessions.RoleTool; i-- {
		if len(events[i].ToolCalls) > 0 {
			return events[:i]
		}
	}
	return events
}

// CutShort ends an answer whose turn was stopped: said is the model's words so far. Calls without a result get one.
func (a Answer) CutShort(text string) Answer {
	a.Text, a.Report.usage = text, sessions.Usage{}
	a.Events = append(closeCalls(a.Events), sessions.Event{Role: sessions.RoleAssistant, Content: text})
	return a
}

func closeCalls(events []sessions.Event) []sessions.Event {
	known := map[string]bool{}
	for _, e := range slices.Backward(events) {
		if e.Role == sessions.RoleTool {
			known[e.ToolCallID] = true
			continue
		}
		for _, c := range e.ToolCalls {
			if !known[c.ID] {
				events = append(events, sessions.Event{Role: sessions.RoleTool, Content: view.Interrupted, ToolCallID: c.ID, ToolName: c.Name})
			}
		}
		break
	}
	return events
}
