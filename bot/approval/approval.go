package approval

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ebb/bot/wording"
	"ebb/sessions"
)

// Desk keeps calls that wait for a decision.
type Desk struct {
	Store    sessions.Approvals
	Wait     time.Duration // after which a call expires
	Location *time.Location
}

// Waiting is what waits in a session, for a turn that asks for more.
type Waiting struct {
	calls []sessions.Approval
	last  int64
}

// Waiting reads what waits in a session.
func (d *Desk) Waiting(ctx context.Context, key sessions.Key) (Waiting, error) {
	calls, last, err := d.Store.WaitingApprovals(ctx, key)
	return Waiting{calls, last}, err
}

// Find returns the waiting call that is the same as c, for the same person.
func (w *Waiting) Find(c sessions.ToolCall, by sessions.UserID) (sessions.Approval, bool) {
	at := slices.IndexFunc(w.calls, func(a sessions.Approval) bool {
		return a.Tool == c.Name && a.Arguments == c.Arguments && a.AskedBy == by
	})
	if at < 0 {
		return sessions.Approval{}, false
	}
	return w.calls[at], true
}

// Add numbers a new call. It is refused if too many wait.
func (w *Waiting) Add(a sessions.Approval) (sessions.Approval, bool) {
	if len(w.calls) >= sessions.MaxApprovals {
		return a, false
	}
	w.last++
	a.ID = w.last
	w.calls = append(w.calls, a)
	return a, true
}

// Result is the result of a call that waits, for the model.
func Result(a sessions.Approval) string {
	return fmt.Sprintf("Not run yet: this call needs an approval and waits as #%d. The members were asked. After /approve %d you get its result, after /reject %d you "+
		"read that it was refused. Do not repeat the call.", a.ID, a.ID, a.ID)
}

// Full is the result of a call that finds too many waiting ones.
func Full() string {
	return fmt.Sprintf("Not run: %d calls wait for approval already, which is the most.", sessions.MaxApprovals)
}

// Request is a person's decision.
type Request struct {
	State  sessions.ApprovalState // approved or rejected
	ID     int64                  // 0: the one that waits
	Turn   int64                  // set by a button: the first message of the turn that asked; ID is 0 then
	At     time.Time              // time of the message: without ID and Turn it is about no later call
	Event  int64                  // message with the decision; 0: not stored yet
	Person sessions.UserID
	Admin  bool
}

func (r Request) query() sessions.ApprovalQuery {
	return sessions.ApprovalQuery{ID: r.ID, Turn: r.Turn, Event: r.Event, Person: r.Person}
}

// Decide decides the calls that a request is about, if it may. A repeated attempt of the same message gets what the first one decided. Empty:
// nothing is decided, and [Desk.Refusal] has the words.
func (d *Desk) Decide(ctx context.Context, l sessions.Lease, r Request) ([]sessions.Approval, error) {
	found, err := d.Store.FindApprovals(ctx, l.Key, r.query())
	if err != nil {
		return nil, err
	}
	var decided []sessions.Approval
	for _, f := range found {
		if f.DecidedEvent == r.Event && f.State == r.State {
			decided = append(decided, f.Approval)
		}
	}
	open := r.open(found)
	if len(decided) > 0 || len(open) == 0 {
		return decided, nil
	}
	return d.Store.DecideApprovals(ctx, l, sessions.Decision{IDs: open, State: r.State, By: r.Person, Event: r.Event})
}

// isBare reports a request without number and turn. It decides the only call that waits, which the person has to know: a call that was asked
// for behind the message waits for a number.
func (r Request) isBare() bool { return r.ID == 0 && r.Turn == 0 }

// open are the numbers of the calls that a request may decide now.
func (r Request) open(found []sessions.FoundApproval) (ids []int64) {
	for _, f := range found {
		if f.State != sessions.ApprovalWaiting || f.Overdue {
			continue
		}
		if r.isBare() && (len(ids) == 1 || f.CreatedAt.After(r.At)) {
			return nil
		}
		if !f.Asked && !r.Admin {
			if r.isBare() {
				return nil // the person may mean the one that is not theirs
			}
			continue
		}
		ids = append(ids, f.ID)
	}
	return ids
}

// Refusal says why a request decides nothing; empty: it would. over is set if nothing that it is about waits any more.
func (d *Desk) Refusal(ctx context.Context, key sessions.Key, r Request, lang string) (text string, over bool, err error) {
	found, err := d.Store.FindApprovals(ctx, key, r.query())
	if err != nil {
		return "", false, err
	}
	say := func(p wording.Phrase, args ...any) string { return wording.Say(p, lang, args...) }
	waiting := slices.DeleteFunc(slices.Clone(found), func(f sessions.FoundApproval) bool {
		return f.State != sessions.ApprovalWaiting || f.Overdue
	})
	switch {
	case len(r.open(found)) > 0:
		return "", false, nil
	case len(found) == 0 && r.ID > 0:
		return say(wording.ApprovalUnknown, r.ID), true, nil
	case len(waiting) == 0 && r.isBare(), len(found) == 0:
		return say(wording.ApprovalNone), true, nil
	case r.isBare() && (len(waiting) > 1 || waiting[0].CreatedAt.After(r.At)):
		return say(wording.ApprovalsWait, len(waiting), Lines(waiting, lang)), false, nil
	case len(waiting) > 0:
		return say(wording.ApprovalNotYours, waiting[0].ID), false, nil
	}
	last := found[len(found)-1]
	if last.State == sessions.ApprovalExpired || last.State == sessions.ApprovalWaiting {
		return say(wording.ApprovalOver, last.ID), true, nil
	}
	return say(wording.ApprovalDecided, last.ID, Name(last.Decider, lang), wording.Moment(last.DecidedAt.In(d.Location)), resultOf(last.State, lang)), true, nil
}

// ListOpen lists the calls that wait in a session, a line each, and their number.
func (d *Desk) ListOpen(ctx context.Context, key sessions.Key, lang string) (lines string, n int, err error) {
	found, err := d.Store.FindApprovals(ctx, key, sessions.ApprovalQuery{})
	found = slices.DeleteFunc(found, func(f sessions.FoundApproval) bool { return f.Overdue })
	return Lines(found, lang), len(found), err
}

// Lines lists calls, a line each.
func Lines(calls []sessions.FoundApproval, lang string) string {
	var out strings.Builder
	for _, f := range calls {
		out.WriteString(wording.Say(wording.ApprovalLine, lang, f.ID, f.Tool, Name(f.Asker, lang)))
	}
	return out.String()
}

// Name is the nick of a person as answers show it.
func Name(nick, lang string) string {
	if nick == "" {
		return wording.Say(wording.RoleMember, lang)
	}
	return wording.Literal(sessions.Nick(nick))
}

func resultOf(s sessions.ApprovalState, lang string) string {
	if s == sessions.ApprovalRejected {
		return wording.Say(wording.ApprovalNo, lang)
	}
	return wording.Say(wording.ApprovalYes, lang)
}
