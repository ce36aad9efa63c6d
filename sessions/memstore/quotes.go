package memstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ebb/sessions"
)

// Quoted implements sessions.Turns.
func (m Turns) Quoted(ctx context.Context, key sessions.Key, q sessions.Quote) (sessions.Event, error) {
	if err := ctx.Err(); err != nil {
		return sessions.Event{}, err
	}
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s, ok := m.t.sessions[key]
	switch {
	case !ok:
	case q.Card != "" && m.onCard(key, q.Card) != nil:
		answer := m.onCard(key, q.Card)
		return sessions.Event{Key: key, Role: answer.Role, Content: answer.Content}, nil
	case q.Card != "" && s.ofMessage(q.Card) != "":
		return sessions.Event{Key: key, Role: sessions.RoleAssistant, Content: s.ofMessage(q.Card)}, nil
	case q.FromBot:
		if answer := s.sentAt(q.SentAt, q.Card == ""); answer != nil {
			return sessions.Event{Key: key, Role: answer.Role, Content: answer.Content}, nil
		}
	default:
		for _, e := range s.events {
			if e.Role == sessions.RoleUser && e.MsgID == q.ID {
				return sessions.Event{
					Key: key, Role: e.Role, Content: e.Content, SenderID: e.SenderID, SenderNick: e.SenderNick, Message: e.Message, Withheld: e.Withheld,
				}, nil
			}
		}
	}
	return sessions.Event{}, fmt.Errorf("looking for a quoted message: %w", sessions.ErrNotFound)
}

// onCard is the answer on a card by the key of the card's message, or nil.
func (m Turns) onCard(key sessions.Key, carrier string) *sessions.Event {
	for _, o := range m.t.sessions[key].outbox {
		if c := m.t.cardRows[cardID{key, o.Reply.Target.Card}]; c != nil && c.carrier == carrier {
			return o.answer
		}
	}
	return nil
}

// ofMessage is the answers in a message by its key; empty for none.
func (s *sessionRows) ofMessage(carrier string) string {
	var said []string
	for _, o := range s.outbox {
		if !slices.Contains(o.carriers, carrier) {
			continue
		}
		if f := o.Reply.Target.File; f != nil {
			said = append(said, sessions.FileWords(f.Name))
		}
		if o.answer != nil {
			said = append(said, o.answer.Content)
		}
	}
	return strings.Join(said, "\n")
}

// noteCarrier notes the key of a message of the reply; empty: it has none.
func (o *outboxRow) noteCarrier(carrier string) {
	if carrier != "" {
		o.carriers = append(o.carriers, carrier)
	}
}

// sentAt is nil for none or several. keyed includes replies whose keys are known.
func (s *sessionRows) sentAt(at time.Time, keyed bool) *sessions.Event {
	const skew = 2 * time.Second
	var found []*outboxRow
	for _, o := range s.outbox {
		arrived := o.sent || o.inFlight || o.Maybe || o.Part > 0
		if !at.IsZero() && o.Reply.Target.File == nil && (keyed || len(o.carriers) == 0) && arrived && !o.Created.After(at.Add(skew)) && (!o.settled || !o.ended.Before(at.Add(-skew))) {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found[0].answer
}

// Requote implements sessions.Turns.
func (m Turns) Requote(ctx context.Context, l sessions.Lease, event int64, content string, q sessions.Quote) error {
	s, err := m.t.lockSession(ctx, l)
	if err != nil {
		return err
	}
	defer m.t.mu.Unlock()
	e := s.findEvent(event)
	if e == nil || e.State != sessions.Pending || e.Message == nil {
		return fmt.Errorf("message %d is not pending: %w", event, sessions.ErrLeaseLost)
	}
	message := *e.Message
	message.Text, message.Quote = content, &q
	e.Content, e.Message = content, &message
	return nil
}
