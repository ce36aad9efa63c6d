// Package answer makes the answer of a turn in stages. Attachments are read (media.go), memory is searched (recall.go), a request is fitted into the window (request.go), and
// the model and its tools work in rounds (loop.go). Asker.Ask in ask.go goes through them, and asks again in another way if the provider
// refuses the request. The package counts the tokens of the context behind the answer.
package answer

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"ebb/bot/approval"
	"ebb/bot/turn/choice"
	"ebb/bot/view"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Answer is the answer of a turn, with all that its commit stores.
type Answer struct {
	For    choice.Choice   // as it was answered: a compaction may have replaced its view, a refusal may have left its first message alone
	Text   string          // the reply
	Files  []sessions.File // behind the reply
	Mute   bool            // without a reply: the senders have a notice, or see the end of their card
	Card   string          // the reply goes on it; empty for none
	Work   Work
	Report Report
	Notes  string // for people only: attachments that could not be read
	Share  int    // shown percentage of the long messages among the asked; 0: all were whole

	// Result is what the commit stores. The answer has its Events, Spent, Read, Pinned, Outcome, TakenWithheld and Suspicion; the commit adds
	// the rest.
	Result sessions.TurnResult

	Waits   []sessions.Approval // calls that wait for a decision, new and earlier ones: the reply asks for it
	Kept    string              // logged in place of an answer that must not be stored; empty: the answer itself
	guilty  *sessions.Refusal   // the question is at fault for a refusal; nil: it is not known to be
	stalled bool                // the storage did not record a tool call at once
	shown   []sessions.Media    // pictures of the log that a tool brought back, for the next requests of the turn
	last    llm.Response        // the last call's
}

// Stalled reports whether the storage held the answer up. A deadline that expired meanwhile is no fault of the model.
func (a Answer) Stalled() bool { return a.stalled }

// after adds the work of the requests before.
func (a Answer) after(before Answer) Answer {
	a.Result.Spent.Usage, a.Result.Spent.Cost = a.Result.Spent.Usage.Add(before.Result.Spent.Usage), a.Result.Spent.Cost+before.Result.Spent.Cost
	a.Result.Spent.Model = cmp.Or(a.Result.Spent.Model, before.Result.Spent.Model)
	a.Work, a.Result.Read, a.stalled = a.Work.after(before.Work), slices.Concat(before.Result.Read, a.Result.Read), a.stalled || before.stalled
	return a
}

// Report is the last call's account of the context's size, beside ours.
type Report struct {
	usage    sessions.Usage // the provider's; its zero value: there is none
	guessed  bool           // the usage is an estimate
	ended    bool           // Ebb ended the call before a report
	estimate int            // our own count of the request, not calibrated
	recalled int            // tokens of recalled memory in it
	partial  bool           // it showed a part of the view
}

// MarshalZerologObject logs the model's share of a turn. A turn without requests has none.
func (a Answer) MarshalZerologObject(e *zerolog.Event) {
	if a.Work.requests == 0 {
		return
	}
	e.Str("model", a.Result.Spent.Model).Int("requests", a.Work.requests).Int("tokens_in", a.Result.Spent.Usage.Prompt).Int("tokens_cached", a.Result.Spent.Usage.Cached).
		Int("tokens_out", a.Result.Spent.Usage.Completion).Float64("cost", a.Result.Spent.Cost)
	if len(a.Work.tools) > 0 {
		e.Strs("tools", a.Work.tools)
	}
	if a.Work.first > 0 {
		e.Dur("first_token_ms", a.Work.first)
	}
}

// Apologize makes an answer of a model's failure.
func Apologize(ctx context.Context, a Answer, err error) Answer {
	zerolog.Ctx(ctx).Error().Err(err).Str("class", string(llm.ClassOf(err))).Msg("Model gave no answer")
	a.Text = apology(err, a.For.Lang)
	a.Result.Events = dropOpenCalls(a.Result.Events)
	if a.guilty != nil { // some of the events may be at fault: they are kept from later requests
		for i := range a.Result.Events {
			a.Result.Events[i].Withheld = a.Result.Events[i].Withheld.With(a.For.View.Reads, *a.guilty)
		}
	}
	a.Result.Events = append(a.Result.Events, sessions.Event{Role: sessions.RoleAssistant, Content: a.Text})
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

// NotRun is the result of a tool call that a stopped turn did not make.
const NotRun = "Not run: the turn was stopped."

// CutShort ends an answer whose turn was stopped: said is the model's words so far. Calls without a result get one. Files are not sent.
func (a Answer) CutShort(text string) Answer {
	a.Text, a.Report.usage = text, sessions.Usage{}
	a.Result.Events = append(closeCalls(withoutWaits(a.Result.Events, a.Waits)), sessions.Event{Role: sessions.RoleAssistant, Content: text})
	a.Waits, a.Files = nil, nil
	return a
}

// withoutWaits gives calls of a stopped turn, which wait for no decision any more, another result.
func withoutWaits(events []sessions.Event, waits []sessions.Approval) []sessions.Event {
	for _, w := range waits {
		for i, e := range events {
			if e.Role == sessions.RoleTool && strings.HasPrefix(e.Content, approval.Result(w)) { // a note may follow it
				events[i].Content = NotRun
			}
		}
	}
	return events
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
