package answer

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ebb/bot/approval"
	"ebb/bot/chat"
	"ebb/sessions"
)

// The results of calls that need an approval, and wait for none.
const (
	toolGone   = "Not run: the call was approved, but this conversation has no such tool any more."
	serverAway = "Not run: the call was approved, but the server %q is not connected. The call had no effect. Say so, and that it can be asked for again."
	callErased = "Not run: the call was approved, and then deleted with the words that asked for it."
)

// approvals keeps the calls that need one.
type approvals struct {
	desk    *approval.Desk
	now     func() time.Time
	timeout time.Duration // bounds one statement
}

// ask lets a call wait for a decision, with a result that says so. The turn ends after its round. The same call waits once.
func (p approvals) ask(ctx context.Context, q *question, a *Answer, c sessions.ToolCall) (string, error) {
	if q.waiting == nil {
		one, stop := context.WithTimeout(ctx, p.timeout)
		defer stop()
		waiting, err := p.desk.Waiting(one, q.made.Lease.Key)
		if err != nil {
			return "", fmt.Errorf("read what waits for approval: %w", err)
		}
		q.waiting = &waiting
	}
	asked := q.made.Asked
	by, added := asked[len(asked)-1].SenderID, false
	one, known := q.waiting.Find(c, by)
	if !known {
		ask := sessions.Approval{Key: q.made.Lease.Key, EventID: asked[0].ID, Tool: c.Name, Arguments: c.Arguments, AskedBy: by, Wait: p.desk.Wait}
		if to := chat.TargetOf(asked); p.now().Add(ask.Wait + sessions.WebhookMargin).Before(to.WebhookExpires) {
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
func (p approvals) notice(q question, waits []sessions.Approval, said string) string {
	last := q.made.Asked[len(q.made.Asked)-1]
	return strings.TrimSpace(said + "\n\n" + p.desk.Notice(waits, last.SenderNick, q.made.Lang, p.now()))
}
