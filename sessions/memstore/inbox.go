package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"ebb/sessions"
)

// Accept implements sessions.Inbox.
func (m Inbox) Accept(ctx context.Context, owner sessions.ReplicaID, key sessions.Key, msg sessions.Message) (sessions.Accepted, error) {
	return m.AcceptHere(ctx, owner, key, msg, nil)
}

// AcceptHere implements sessions.Inbox.
func (m Inbox) AcceptHere(
	ctx context.Context, owner sessions.ReplicaID, key sessions.Key, msg sessions.Message, among []sessions.Key,
) (sessions.Accepted, error) {
	if err := ctx.Err(); err != nil {
		return sessions.Accepted{}, err
	}
	if msg.ID == "" {
		return sessions.Accepted{}, fmt.Errorf("storing a message: it has no id to know it by: %w", sessions.ErrRefused)
	}
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if !m.t.deleted[deletionOf(key, msg.ID)] && m.t.isElsewhere(key, msg, among) {
		return sessions.Accepted{Elsewhere: true}, nil
	}
	s, lost := m.t.sessions[key], m.t.lost[key]
	if m.t.deleted[deletionOf(key, msg.ID)] {
		a := sessions.Accepted{Lease: sessions.Lease{Key: key}}
		if s != nil {
			a.Lease = s.state.Lease
		}
		return a, nil
	}
	if log := cmp.Or(s, lost); log != nil {
		for _, e := range log.events {
			if e.Role == sessions.RoleUser && e.MsgID == msg.ID {
				if s == nil {
					return sessions.Accepted{EventID: e.ID, Lease: sessions.Lease{Key: key}}, nil
				}
				return sessions.Accepted{EventID: e.ID, Lease: s.state.Lease}, nil
			}
		}
	}
	left := lost != nil && lost.turnTerm() > 0 // to the turn
	switch {
	case s != nil:
	case left:
		s = lost
	case lost != nil:
		s = m.t.restore(lost, sessions.Lease{Key: key, Term: m.t.lastID + 1})
	default:
		s = &sessionRows{
			state: newState(key, msg), shown: map[int64]sessions.Shown{}, blobs: map[string]string{}, marks: map[int64]turnMark{},
			sent: map[int64]time.Time{},
		}
		s.state.Lease.Term = m.t.lastID // a deleted session that returns has another lease than before
		m.t.sessions[key] = s
	}
	s.state.Title = cmp.Or(msg.ConversationTitle, s.state.Title)
	s.learnStaff(msg.ConversationType)
	lease := sessions.Lease{Key: key}
	if !left {
		m.t.takeLease(s, owner)
		lease = s.state.Lease
	}
	m.t.lastID++
	s.events = append(s.events, &sessions.Event{
		ID: m.t.lastID, Key: key, Role: sessions.RoleUser, Content: msg.Text, SenderID: msg.SenderID,
		SenderNick: msg.SenderNick, MsgID: msg.ID, State: sessions.Pending, CreatedAt: time.Now(), Message: &msg,
	})
	s.sent[m.t.lastID] = sentAt(msg)
	if to := lease.Owner; to != owner {
		m.t.wakeListeners(to, key)
	}
	return sessions.Accepted{New: true, EventID: m.t.lastID, Lease: lease, Clash: m.t.staff.learn(msg)}, nil
}

// A group stays one, and shows nothing that a private chat had pinned.
func (s *sessionRows) learnStaff(kind sessions.ConversationType) {
	switch was := s.state.ConversationType; {
	case kind == sessions.Unknown || kind == was || was == sessions.Group:
		return
	case was == sessions.Private:
		s.state.Pinned, s.state.PinnedDue = "", true
		s.state.ViewVersion++
	}
	s.state.ConversationType = kind
}

// The time of receipt stands for an unknown or impossible one.
func sentAt(msg sessions.Message) time.Time {
	switch off := time.Since(msg.SentAt); {
	case off >= -time.Hour && off <= time.Hour:
		return msg.SentAt
	case msg.ReceivedAt.IsZero():
		return time.Now()
	}
	return msg.ReceivedAt
}

// Waiting implements sessions.Inbox.
func (m Inbox) Waiting(_ context.Context, owner sessions.ReplicaID, limit int) ([]sessions.Key, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	since := map[sessions.Key]time.Time{}
	wait := func(key sessions.Key, t time.Time) {
		if old, ok := since[key]; !ok || t.Before(old) {
			since[key] = t
		}
	}
	now := time.Now()
	for key, s := range m.t.sessions {
		if holder := s.state.Lease.Owner; holder != owner && m.t.isAlive(holder) {
			continue
		}
		for _, e := range s.events {
			if e.State == sessions.Pending {
				wait(key, e.CreatedAt)
			}
		}
		for _, o := range s.outbox {
			if !o.settled && (!o.NextAt.After(now) || o.sending && o.sender != owner) {
				wait(key, o.Created)
			}
		}
	}
	var keys []sessions.Key
	for key := range since {
		keys = append(keys, key)
	}
	own := func(key sessions.Key) int {
		if m.t.sessions[key].state.Lease.Owner == owner {
			return 1
		}
		return 0
	}
	slices.SortFunc(keys, func(a, b sessions.Key) int {
		return cmp.Or(own(a)-own(b), since[a].Compare(since[b]), cmp.Compare(a, b))
	})
	return keys[:min(len(keys), max(limit, 0))], nil
}

// learn reports whether the encrypted id had another staff id before.
func (s staffIDs) learn(msg sessions.Message) bool {
	id := senderID{msg.RobotCode, msg.EncryptedID}
	if id.encrypted == "" || msg.StaffID == "" || slices.Contains(s[id], msg.StaffID) {
		return false
	}
	s[id] = append(s[id], msg.StaffID)
	return len(s[id]) > 1
}

// LearnIDs implements sessions.Inbox.
func (m Inbox) LearnIDs(_ context.Context, msg sessions.Message) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	m.t.staff.learn(msg)
	return nil
}

// LinkedIDs implements sessions.Inbox.
func (m Inbox) LinkedIDs(_ context.Context, robot sessions.RobotCode, id sessions.UserID) ([]sessions.UserID, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	linked := slices.Clone(m.t.staff[senderID{robot, id}])
	for of, staff := range m.t.staff {
		if of.robot == robot && slices.Contains(staff, id) {
			linked = append(linked, of.encrypted)
		}
	}
	slices.Sort(linked)
	return linked, nil
}
