package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ebb/sessions"
)

// addWaits stores calls that wait for a decision.
func (s *sessionRows) addWaits(key sessions.Key, waits []sessions.Approval) {
	now := time.Now()
	for _, a := range waits {
		a.Key, a.State, a.CreatedAt, a.ExpiresAt, a.Wait = key, sessions.ApprovalWaiting, now, now.Add(a.Wait), 0
		s.approvals = append(s.approvals, &a)
	}
}

func isOpen(a *sessions.Approval) bool {
	return a.State == sessions.ApprovalWaiting && a.ExpiresAt.After(time.Now())
}

// WaitingApprovals implements sessions.Approvals.
func (m Approvals) WaitingApprovals(_ context.Context, key sessions.Key) (waiting []sessions.Approval, last int64, err error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s := m.t.sessions[key]
	if s == nil {
		return nil, 0, nil
	}
	for _, a := range s.approvals {
		last = max(last, a.ID)
		if isOpen(a) {
			waiting = append(waiting, *a)
		}
	}
	return waiting, last, nil
}

// FindApprovals implements sessions.Approvals.
func (m Approvals) FindApprovals(_ context.Context, key sessions.Key, q sessions.ApprovalQuery) (found []sessions.FoundApproval, err error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s := m.t.sessions[key]
	if s == nil {
		return nil, nil
	}
	nick := func(match func(e *sessions.Event) bool) string {
		for _, e := range slices.Backward(s.events) {
			if match(e) {
				return e.SenderNick
			}
		}
		return ""
	}
	for _, a := range s.approvals {
		switch {
		case a.DecidedEvent != 0 && a.DecidedEvent == q.Event:
		case q.ID > 0 && a.ID == q.ID, q.ID == 0 && q.Turn > 0 && a.EventID == q.Turn:
		case q.ID == 0 && q.Turn == 0 && a.State == sessions.ApprovalWaiting:
		default:
			continue
		}
		asked := slices.ContainsFunc(s.events, func(e *sessions.Event) bool {
			return e.Role == sessions.RoleUser && e.SenderID == q.Person && s.marks[e.ID].turn != 0 && s.marks[e.ID].turn == s.marks[a.EventID].turn
		})
		found = append(found, sessions.FoundApproval{
			Approval: *a, Overdue: !a.ExpiresAt.After(time.Now()), Asked: q.Person != "" && a.AskedBy != "" && (asked || a.AskedBy == q.Person),
			Asker:   nick(func(e *sessions.Event) bool { return a.AskedBy != "" && e.SenderID == a.AskedBy }),
			Decider: nick(func(e *sessions.Event) bool { return a.DecidedEvent != 0 && e.ID == a.DecidedEvent }),
		})
	}
	return found, nil
}

// DecideApprovals implements sessions.Approvals.
func (m Approvals) DecideApprovals(ctx context.Context, l sessions.Lease, d sessions.Decision) (decided []sessions.Approval, err error) {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return nil, err
	}
	defer m.t.mu.Unlock()
	for _, a := range s.approvals {
		if isOpen(a) && slices.Contains(d.IDs, a.ID) {
			a.State, a.DecidedBy, a.DecidedAt, a.DecidedEvent = d.State, d.By, time.Now(), d.Event
			a.Webhook, a.WebhookExpires = "", time.Time{}
			decided = append(decided, *a)
		}
	}
	if e := s.findEvent(d.Event); e != nil && len(decided) > 0 && e.State == sessions.Pending && e.Message != nil {
		m := *e.Message
		m.Outcome = sessions.Decided
		e.Message = &m
	}
	return decided, nil
}

// CountApprovals implements sessions.Approvals.
func (m Approvals) CountApprovals(context.Context) (n int, err error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	for _, s := range m.t.sessions {
		for _, a := range s.approvals {
			if a.State == sessions.ApprovalWaiting {
				n++
			}
		}
	}
	return n, nil
}

// DueApprovals implements sessions.Approvals.
func (m Approvals) DueApprovals(_ context.Context, after sessions.Approval, limit int) (due []sessions.Approval, err error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	order := func(x, y sessions.Approval) int {
		return cmp.Or(x.ExpiresAt.Compare(y.ExpiresAt), cmp.Compare(x.Key, y.Key), cmp.Compare(x.ID, y.ID))
	}
	for _, s := range m.t.sessions {
		for _, a := range s.approvals {
			if a.State == sessions.ApprovalWaiting && !isOpen(a) && order(*a, after) > 0 {
				due = append(due, *a)
			}
		}
	}
	slices.SortFunc(due, order)
	return due[:min(limit, len(due))], nil
}

// ExpireApproval implements sessions.Approvals.
func (m Approvals) ExpireApproval(
	ctx context.Context, owner sessions.ReplicaID, due sessions.Approval, make func(asked sessions.Message) sessions.Message,
) (sessions.Accepted, error) {
	asked, err := m.expire(due)
	if err != nil || asked == nil {
		return sessions.Accepted{}, err
	}
	return Inbox(m).Accept(ctx, owner, due.Key, make(*asked))
}

// expire ends a wait, and returns the message that asked; nil: it is gone.
func (m Approvals) expire(due sessions.Approval) (*sessions.Message, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s := m.t.sessions[due.Key]
	if s == nil {
		return nil, fmt.Errorf("ending the wait for an approval: %w", sessions.ErrNotFound)
	}
	at := slices.IndexFunc(s.approvals, func(a *sessions.Approval) bool {
		return a.ID == due.ID && a.State == sessions.ApprovalWaiting && !isOpen(a)
	})
	if at < 0 {
		return nil, fmt.Errorf("ending the wait for an approval: %w", sessions.ErrConflict)
	}
	a := s.approvals[at]
	a.State, a.DecidedAt, a.Webhook, a.WebhookExpires = sessions.ApprovalExpired, time.Now(), "", time.Time{}
	if e := s.findEvent(a.EventID); e != nil {
		return e.Message, nil
	}
	return nil, nil
}
