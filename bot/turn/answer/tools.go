package answer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/parts"
	"ebb/bot/turn/persist"
	"ebb/bot/turn/slot"
	"ebb/bot/view"
	"ebb/compaction/tokens"
	"ebb/memory/draft"
	"ebb/sessions"
)

// toolCaller makes the calls of tools that a model wants.
type toolCaller struct {
	shared    *parts.Shared
	views     *view.Builder
	store     Store
	may       func(e sessions.Event, command string) bool
	stats     Stats
	approvals approvals
}

// maxArgumentBytes bounds the arguments of a call in any window.
const maxArgumentBytes = 128 << 10

// maxArguments is the limit of the arguments of a call in bytes, about half of the window. Longer ones would fill the log, an approval, and each
// later request, which can't shorten a call.
func (t toolCaller) maxArguments(q question) int {
	return min(maxArgumentBytes, minTokenBytes*t.views.Choices.Settings(q.made.View.Session).Window.Usable()/2)
}

// bound leaves out arguments over the limit. Their calls are not made.
func (t toolCaller) bound(q question, calls []sessions.ToolCall) []sessions.ToolCall {
	calls = slices.Clone(calls)
	for i := range calls {
		if len(calls[i].Arguments) > t.maxArguments(q) {
			calls[i].Arguments = "{}"
		}
	}
	return calls
}

// call runs within part, which ends before ctx. A tool's failure becomes a result for the model. The error is a
// lost lease or a storage that can't record the run; both end the turn. suspicion has the rows that the result leaves out; seen gets the
// call.
func (t toolCaller) call(ctx, part context.Context, q *question, a *Answer, suspicion *sessions.Suspicion, c sessions.ToolCall, seen map[string]bool) (string, error) {
	if slot.IsStopped(ctx) {
		return NotRun, nil
	}
	if n, most := len(c.Arguments), t.maxArguments(*q); n > most {
		return fmt.Sprintf("Not run: the size of the arguments is %d, and the limit is %d (bytes). They were left out above. Use several calls, or a shorter text.", n, most), nil
	}
	id := idOf(c)
	if seen[id] {
		return "Same call as before in this turn, not run again: its result stands above.", nil
	}
	frame := t.views.Frames.FrameOf(q.made.View.Session)
	tool := frame.Tool(c.Name)
	if tool == nil {
		var away bool
		if tool, away = t.await(part, q.made.View.Session, c.Name, unlistedTime); away {
			return fmt.Sprintf("Not run: the server %q is not connected. Say that it can't be reached now.", chat.ServerOf(c.Name)), nil
		}
	}
	if tool == nil {
		return fmt.Sprintf("There is no tool %q. Tools: %s.", c.Name, toolNames(frame)), nil
	}
	if again, ok := tool.(chat.Repeatable); ok && again.Repeatable() {
		seen[id] = true
		return t.run(part, *q, a, suspicion, tool, c, nil), nil
	}
	if asks, ok := tool.(chat.NeedsApproval); ok && asks.NeedsApproval() {
		return t.approvals.ask(ctx, q, a, c)
	}
	if result, ran := recordedRun(q.made.View.Runs, c); ran {
		return result, nil
	}
	if result := earlierRuns(q.made.View.Runs, c, seen); result != "" {
		return result, nil
	}
	return t.runRecorded(ctx, part, q, a, suspicion, tool, c, seen)
}

// The waits for a server of whose tools none is known yet, as after a start of the process.
const (
	unlistedTime = 5 * time.Second  // for a call that the model names from earlier talk
	approvedTime = 30 * time.Second // for a call that a person approved: there is no second approval
)

// await returns a tool, and waits for the connection to its server.
func (t toolCaller) await(ctx context.Context, s sessions.Session, name string, most time.Duration) (tool chat.Tool, away bool) {
	ctx, stop := context.WithTimeout(ctx, most)
	defer stop()
	away = !t.views.Frames.Outside().Connected(ctx, s.ConversationID, s.ConversationType, name)
	return t.views.Frames.FrameOf(s).Tool(name), away
}

// recordedRun is the result of a call that an earlier attempt at the turn made.
func recordedRun(runs []sessions.ToolRun, c sessions.ToolCall) (result string, ran bool) {
	for _, before := range runs {
		if before.Call.Name == c.Name && before.Call.Arguments == c.Arguments {
			return resultOf(before), true
		}
	}
	return "", false
}

func resultOf(run sessions.ToolRun) string {
	if run.Finished {
		return run.Result
	}
	return view.Interrupted
}

// runRecorded records a call before it runs, and its result behind it.
func (t toolCaller) runRecorded(
	ctx, part context.Context, q *question, a *Answer, suspicion *sessions.Suspicion, tool chat.Tool, c sessions.ToolCall, seen map[string]bool,
) (string, error) {
	run := sessions.ToolRun{Call: c, EventID: q.made.Asked[0].ID}
	for slices.ContainsFunc(q.made.View.Runs, func(before sessions.ToolRun) bool { return before.Call.ID == run.Call.ID }) {
		run.Call.ID += "+" // some providers reuse call IDs in every round
	}
	if err := t.record(ctx, q.made.Lease, a, run); err != nil {
		return "", fmt.Errorf("record call of %s: %w", c.Name, err)
	}
	run.Result, run.Finished = t.run(part, *q, a, suspicion, tool, c, sender(q, run.Call.ID)), true
	if err := keepFiles(ctx, q); err != nil {
		return "", err
	}
	if err := t.record(ctx, q.made.Lease, a, run); err != nil {
		return "", fmt.Errorf("record result of %s: %w", c.Name, err)
	}
	seen[idOf(c)] = true
	q.made.View.Runs = append(q.made.View.Runs, run) // a repeated request of this turn does not run it again
	return run.Result, nil
}

// idOf is the same for calls that do the same.
func idOf(c sessions.ToolCall) string { return c.Name + "\x00" + c.Arguments }

// callApproved makes a call once. An earlier attempt at the decision has recorded it under the same id, whose arguments an erasure may have
// taken since.
func (t toolCaller) callApproved(
	ctx, part context.Context, q *question, a *Answer, suspicion *sessions.Suspicion, c sessions.ToolCall, erased bool, seen map[string]bool,
) (string, error) {
	defer func() { seen[idOf(c)] = true }()
	for _, before := range q.made.View.Runs {
		if before.Call.ID == c.ID && before.EventID == q.made.Asked[0].ID {
			return resultOf(before), nil
		}
	}
	switch {
	case erased:
		return callErased, nil
	case slot.IsStopped(ctx):
		return NotRun, nil
	}
	tool, away := t.await(part, q.made.View.Session, c.Name, approvedTime)
	switch {
	case slot.IsStopped(ctx):
		return NotRun, nil
	case away:
		return fmt.Sprintf(serverAway, chat.ServerOf(c.Name)), nil
	case tool == nil:
		return toolGone, nil
	}
	return t.runRecorded(ctx, part, q, a, suspicion, tool, c, seen)
}

const (
	earlierArguments = 500
	earlierResult    = 2000
)

// earlierRuns reports calls of a server's tool that an earlier attempt made, once: a model asks again in other words, and would have the
// effect twice. It is empty if there are none. seen gets them.
func earlierRuns(runs []sessions.ToolRun, c sessions.ToolCall, seen map[string]bool) string {
	if chat.ServerOf(c.Name) == "" {
		return ""
	}
	var b strings.Builder
	for _, before := range runs {
		if id := idOf(before.Call); before.Call.Name == c.Name && !seen[id] {
			seen[id] = true
			result := view.Interrupted
			if before.Finished {
				result = tokens.HeadTail(before.Result, earlierResult)
			}
			fmt.Fprintf(&b, "\nArguments: %s\nResult: %s\n", tokens.HeadTail(before.Call.Arguments, earlierArguments), result)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "Not run: an earlier attempt at this question, which ended early, called this tool already. Call it again only if that call does not serve.\n" + b.String()
}

const minTokenBytes = 2

func (t toolCaller) record(ctx context.Context, l sessions.Lease, a *Answer, run sessions.ToolRun) error {
	stalled, err := RecordRun(ctx, t.store, t.shared.CommitTimeout, l, run)
	a.stalled = a.stalled || stalled
	return err
}

// RecordRun waits while the storage is unavailable, so that the model's work is not lost. stalled reports whether it was. timeout bounds one
// attempt.
func RecordRun(ctx context.Context, store Store, timeout time.Duration, l sessions.Lease, run sessions.ToolRun) (stalled bool, err error) {
	err = persist.Write(ctx, timeout, "Tool call not recorded, trying again", func(one context.Context) error {
		err := store.RecordRun(one, l, run)
		stalled = stalled || err != nil
		return err
	})
	return stalled, err
}

// run returns a tool's error as the result, so that the model can correct the call. send is that of [chat.ToolInput].
func (t toolCaller) run(
	ctx context.Context, q question, a *Answer, suspicion *sessions.Suspicion, tool chat.Tool, c sessions.ToolCall, send func(name string, body []byte) error,
) string {
	a.Work.tools = append(a.Work.tools, c.Name)
	itsChat := q.chat(a.Result.Events)
	itsChat.Location, itsChat.TaskTTL = t.shared.Location, t.views.Memory.Remember.TaskTTL
	if q.live != nil {
		q.live.Tool(c.Name)
	}
	in := chat.ToolInput{
		Arguments: c.Arguments, Lease: q.made.Lease, Reader: draft.ReaderOf(itsChat), Chat: itsChat, CallID: c.ID,
		Current: q.current(a.Result.Events), Room: minTokenBytes * view.BodyLimit(t.views.Choices.Settings(q.made.View.Session).Window.Usable()),
		Suspicion: suspicion,
		May:       t.may,
		Read:      func(id int64) { a.Result.Read = append(a.Result.Read, id) },
		Show:      func(m sessions.Media) bool { return t.showPicture(q, a, m) },
		Send:      send,
	}
	result, err := tool.Call(ctx, in)
	outcome := ToolOK
	switch {
	case err != nil && slot.IsStopped(ctx):
		result, outcome = view.Interrupted, ToolStopped
	case err != nil:
		result, outcome = "error: "+err.Error(), ToolFailed
	}
	t.stats.ToolCalled(c.Name, outcome)
	zerolog.Ctx(ctx).Debug().Str("tool", c.Name).Str("outcome", string(outcome)).Msg("Tool called")
	return result
}

// maxShownAgain bounds the pictures that tools bring back in a turn.
const maxShownAgain = 8

// showPicture shows a picture of the log in the next requests of the turn, if there is room.
func (t toolCaller) showPicture(q question, a *Answer, m sessions.Media) bool {
	set, cal := t.views.Choices.Settings(q.made.View.Session), q.made.View.Session.CalibrationFactor
	n := m.Tokens + tokens.MessageOverhead
	if slices.ContainsFunc(a.shown, func(s sessions.Media) bool { return s.ID == m.ID }) {
		return true
	}
	if len(a.shown) == maxShownAgain || view.Calibrated(a.Report.estimate+n, cal) >= set.Window.Usable() {
		return false
	}
	a.shown = append(a.shown, m)
	a.Report.estimate += n
	a.Report.partial = true // the view of a later turn has no such message
	return true
}

func toolNames(f *view.Frame) string {
	names := make([]string, len(f.Tools))
	for i, t := range f.Tools {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}
