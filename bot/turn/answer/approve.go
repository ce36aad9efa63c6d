package answer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ebb/bot/approval"
	"ebb/bot/chat"
	"ebb/bot/turn/slot"
	"ebb/sessions"
)

// The results of calls that need an approval, and wait for none.
const (
	toolGone   = "Not run: the call was approved, but this conversation has no such tool any more."
	serverAway = "Not run: the call was approved, but the server %q is not connected. The call had no effect. Say so, and that it can be asked for again."
	callErased = "Not run: the call was approved, and then deleted with the words that asked for it."
)

// ask lets a call wait for a decision, with a result that says so. The turn ends after its round. The same call waits once.
func (t toolCaller) ask(ctx context.Context, q *question, a *Answer, c sessions.ToolCall) (string, error) {
	if q.waiting == nil {
		waiting, err := t.approvals.Waiting(ctx, q.made.Lease.Key)
		if err != nil {
			return "", fmt.Errorf("read what waits for approval: %w", err)
		}
		q.waiting = &waiting
	}
	asked := q.made.Asked
	by, added := asked[len(asked)-1].SenderID, false
	one, known := q.waiting.Find(c, by)
	if !known {
		ask := sessions.Approval{Key: q.made.Lease.Key, EventID: asked[0].ID, Tool: c.Name, Arguments: c.Arguments, AskedBy: by, Wait: t.approvals.Wait}
		if to := chat.TargetOf(asked); t.shared.Now().Add(ask.Wait + sessions.WebhookMargin).Before(to.WebhookExpires) {
			ask.Webhook, ask.WebhookExpires = to.Webhook, to.WebhookExpires
		}
		if one, added = q.waiting.Add(ask); !added {
			return approval.Full(), nil
		}
	}
	if !slices.ContainsFunc(a.Waits, func(w sessions.Approval) bool { return w.ID == one.ID }) {
		a.Waits = append(a.Waits, one)
	}
	return approval.Result(one), nil
}

// notice ends a turn whose calls wait: the members read the request, behind words of the model. Calls that waited before are shown again.
func (t toolCaller) notice(q question, waits []sessions.Approval, said string) string {
	last := q.made.Asked[len(q.made.Asked)-1]
	return strings.TrimSpace(said + "\n\n" + t.approvals.Notice(waits, last.SenderNick, q.made.Lang, t.shared.Now()))
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
