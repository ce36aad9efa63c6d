package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"ebb/sessions"
	"ebb/sessions/periodic"
)

// OpenCard implements sessions.Cards.
func (m Cards) OpenCard(_ context.Context, l sessions.Lease, c sessions.Card, hold time.Duration) (sessions.CardState, bool, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if _, err := m.t.fencedSession(l); err != nil {
		return "", false, fmt.Errorf("recording card %s: %w", c.Track, err)
	}
	c.Key, c.Prepaid, c.CreatedAt = l.Key, true, time.Now()
	row, known := m.t.recordCard(c)
	if !known {
		row.next = time.Now().Add(hold)
	}
	return row.state, known, nil
}

// The caller holds the lock.
func (m *tables) recordCard(c sessions.Card) (row *cardRow, known bool) {
	id := cardID{c.Key, c.Track}
	if row, known = m.cardRows[id]; !known {
		row = &cardRow{Card: c, state: sessions.CardOpen}
		m.cardRows[id] = row
	}
	return row, known
}

// OpenCardOf implements sessions.Cards.
func (m Cards) OpenCardOf(_ context.Context, key sessions.Key, tracks []string, events []int64) (sessions.Card, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	var found []sessions.Card
	for id, c := range m.t.cardRows {
		isOf := id.key == key && (slices.Contains(tracks, id.track) || slices.Contains(events, c.EventID))
		if isOf && c.state == sessions.CardOpen && c.Kind == sessions.ReplyCard {
			one := c.Card
			one.Busy = max(0, time.Until(c.until))
			found = append(found, one)
		}
	}
	if len(found) == 0 {
		return sessions.Card{}, fmt.Errorf("looking for an open card: %w", sessions.ErrNotFound)
	}
	return slices.MinFunc(found, func(a, b sessions.Card) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.Track, b.Track))
	}), nil
}

// SettleCard implements sessions.Cards.
func (m Cards) SettleCard(_ context.Context, key sessions.Key, track string, state sessions.CardState) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	m.t.settleCard(cardID{key, track}, state)
	return nil
}

// SetPrepaid implements sessions.Cards.
func (m Cards) SetPrepaid(_ context.Context, one sessions.Card) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if c := m.t.cardRows[cardID{one.Key, one.Track}]; c != nil && c.state == sessions.CardOpen {
		c.Prepaid, c.TextKey = one.Prepaid, one.TextKey
	}
	return nil
}

// LeaseOf implements sessions.Cards.
func (m Cards) LeaseOf(_ context.Context, key sessions.Key) (sessions.Lease, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s := m.t.sessions[key]
	if s == nil {
		return sessions.Lease{}, fmt.Errorf("reading a lease: %w", sessions.ErrNotFound)
	}
	return s.state.Lease, nil
}

// BeginFrame implements sessions.Cards.
func (m Cards) BeginFrame(_ context.Context, l sessions.Lease, track, carrier string) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if _, err := m.t.fencedSession(l); err != nil {
		return fmt.Errorf("recording a call that changes card %s: %w", track, err)
	}
	c, now := m.t.cardRows[cardID{l.Key, track}], time.Now()
	if c == nil || c.state != sessions.CardOpen || c.frame != l.Term && c.until.After(now) {
		return fmt.Errorf("recording a call that changes card %s: %w", track, sessions.ErrConflict)
	}
	c.frame, c.until, c.carrier = l.Term, now.Add(sessions.FrameTime), cmp.Or(carrier, c.carrier)
	return nil
}

// EndFrame implements sessions.Cards.
func (m Cards) EndFrame(_ context.Context, l sessions.Lease, track string) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if c := m.t.cardRows[cardID{l.Key, track}]; c != nil && c.frame == l.Term {
		c.until = time.Time{}
	}
	return nil
}

// awaitFrames returns when no call of an ended term can show something.
func (m Erasure) awaitFrames(ctx context.Context) error {
	return periodic.Poll(ctx, time.Millisecond, func() (bool, error) {
		m.t.mu.Lock()
		defer m.t.mu.Unlock()
		for id, c := range m.t.cardRows {
			if s := m.t.sessions[id.key]; c.state == sessions.CardOpen && time.Now().Before(c.until) && (s == nil || s.state.Lease.Term != c.frame) {
				return false, nil
			}
		}
		return true, nil
	})
}

// LeaveCard implements sessions.Cards.
func (m Cards) LeaveCard(_ context.Context, out sessions.Outgoing) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if s := m.t.sessions[out.Key]; s != nil {
		for _, o := range s.outbox {
			if o.ID == out.ID && !o.settled && o.Attempts == out.Attempts {
				o.Reply.Target.Card = ""
				return nil
			}
		}
	}
	return sessions.ErrConflict
}

// settleCard needs the lock.
func (m *tables) settleCard(id cardID, state sessions.CardState) {
	c := m.cardRows[id]
	switch {
	case m.sessions[id.key] == nil && state != sessions.CardOpen:
		delete(m.cardRows, id)
	case c != nil && state == sessions.CardOpen && c.state != sessions.CardOpen && c.Kind == sessions.ReactionCard:
		c.state, c.next, c.Tries, c.Prepaid = state, time.Now(), 0, false
	case c != nil && c.state == sessions.CardOpen:
		c.state, c.next = state, time.Now()
	}
}

// AbandonedCards implements sessions.Cards.
func (m Cards) AbandonedCards(_ context.Context, kind sessions.CardKind, retry time.Duration, limit int) ([]sessions.Card, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	var out []sessions.Card
	now := time.Now()
	for _, c := range m.t.cardRows {
		if c.state != sessions.CardOpen || c.Kind != kind || c.next.After(now) || c.until.After(now) || len(out) == limit || m.t.awaits(c) {
			continue
		}
		c.next, c.Tries = now.Add(retry), c.Tries+1
		out = append(out, c.Card)
	}
	return out, nil
}

// PostponeCard implements sessions.Cards.
func (m Cards) PostponeCard(_ context.Context, one sessions.Card, pause time.Duration, made bool) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	c := m.t.cardRows[cardID{one.Key, one.Track}]
	if c == nil || c.state != sessions.CardOpen || c.Tries != one.Tries {
		return nil
	}
	c.next = time.Now().Add(pause)
	if made {
		c.Prepaid = false
	} else {
		c.Tries--
	}
	return nil
}

// GivenUpCards implements sessions.Cards.
func (m Cards) GivenUpCards(context.Context) (int, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	n := 0
	for _, c := range m.t.cardRows {
		if c.state == sessions.CardGivenUp && c.Kind == sessions.ReplyCard {
			n++
		}
	}
	return n, nil
}

// outcomeTime is awaited, since a card may end after its reply was given up.
const outcomeTime = 4 * time.Second

func (m *tables) awaits(c *cardRow) bool {
	s := m.sessions[c.Key]
	if s == nil {
		return false
	}
	if e := s.findEvent(c.EventID); e != nil && e.State == sessions.Pending {
		return true
	}
	for _, o := range s.outbox {
		awaited := !o.settled || !o.sent && o.inFlight && time.Since(o.ended) < outcomeTime
		if awaited && o.Reply.Target.Card == c.Track {
			return true
		}
	}
	return false
}

// ClickedCard implements sessions.Cards.
func (m Cards) ClickedCard(_ context.Context, track string, by sessions.UserID) (sessions.Clicked, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	for id, c := range m.t.cardRows {
		s := m.t.sessions[id.key]
		if id.track != track || s == nil {
			continue
		}
		robot, conversation := id.key.Conversation()
		found := sessions.Clicked{Card: c.Card, State: c.state, Rating: c.rating, Message: sessions.Message{
			RobotCode: robot, ConversationID: conversation, ConversationType: s.state.ConversationType, ConversationTitle: s.state.Title, Kind: "text",
		}}
		for _, e := range s.events {
			if e.Message != nil {
				found.Message.Organization = cmp.Or(e.Message.Organization, found.Message.Organization)
			}
			if e.Role == sessions.RoleUser && e.SenderID == by && !strings.HasPrefix(e.Content, "/") && (e.Message == nil || e.Message.Quote == nil) {
				found.Words = e.Content
			}
		}
		first := s.findEvent(c.EventID)
		if first == nil {
			return found, nil
		}
		if first.Message != nil {
			found.Message.Organization = cmp.Or(first.Message.Organization, found.Message.Organization)
		}
		found.Running = first.State == sessions.Pending
		for _, e := range s.events {
			if e.Role == sessions.RoleUser && s.sameTurn(first, e) {
				found.Asked = found.Asked || e.SenderID == by
			}
			isOpen := found.Running && e.State == sessions.Pending && s.marks[e.ID].attempt == s.marks[c.EventID].attempt
			found.Shared = found.Shared || isOpen && e.SenderID != by
		}
		return found, nil
	}
	return sessions.Clicked{}, fmt.Errorf("looking for card %s: %w", track, sessions.ErrNotFound)
}

func (s *sessionRows) sameTurn(first, e *sessions.Event) bool {
	if e == first {
		return true
	}
	mine, other := s.marks[first.ID], s.marks[e.ID]
	if first.Seq == 0 {
		return e.State == sessions.Pending && other.attempt != 0 && other.attempt == mine.attempt
	}
	return mine.turn != 0 && other.turn == mine.turn
}

// RateCard implements sessions.Cards.
func (m Cards) RateCard(_ context.Context, key sessions.Key, track string, r sessions.Rating) (bool, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	c := m.t.cardRows[cardID{key, track}]
	if c == nil || c.rating != "" {
		return false, nil
	}
	c.rating = r
	return true, nil
}
