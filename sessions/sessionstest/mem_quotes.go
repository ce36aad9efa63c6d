package sessionstest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ebb/sessions"
)

// Quoted implements sessions.Store.
func (m *Mem) Quoted(ctx context.Context, key sessions.Key, q sessions.Quote) (sessions.Event, error) {
	if err := ctx.Err(); err != nil {
		return sessions.Event{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var answers []sessions.Event
	if s, ok := m.sessions[key]; ok {
		for _, e := range s.events {
			switch {
			case !q.FromBot && e.Role == sessions.RoleUser && e.MsgID == q.ID:
				return sessions.Event{
					Key: key, Role: e.Role, Content: e.Content, SenderID: e.SenderID, SenderNick: e.SenderNick, Message: e.Message,
				}, nil
			case q.FromBot && e.Role == sessions.RoleAssistant && e.Content != "" && !q.SentAt.IsZero() &&
				!e.CreatedAt.Before(q.SentAt.Add(-30*time.Second)) && !e.CreatedAt.After(q.SentAt.Add(2*time.Second)):
				answers = append(answers, sessions.Event{Key: key, Role: e.Role, Content: e.Content, CreatedAt: e.CreatedAt})
			}
		}
	}
	slices.Reverse(answers)
	if len(answers) == 0 || len(answers) > 1 && answers[0].CreatedAt.Sub(answers[1].CreatedAt) < 5*time.Second {
		return sessions.Event{}, fmt.Errorf("looking for a quoted message of session %s: %w", key, sessions.ErrNotFound)
	}
	answers[0].CreatedAt = time.Time{}
	return answers[0], nil
}

// Requote implements sessions.Store.
func (m *Mem) Requote(ctx context.Context, l sessions.Lease, event int64, content string, q sessions.Quote) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, err := m.fenced(l)
	if err != nil {
		return err
	}
	e := s.event(event)
	if e == nil || e.State != sessions.Pending || e.Message == nil {
		return fmt.Errorf("message %d of session %s is not pending: %w", event, l.Key, sessions.ErrLeaseLost)
	}
	message := *e.Message
	message.Text, message.Quote = content, &q
	e.Content, e.Message = content, &message
	return nil
}
