package memstore

import (
	"context"
	"slices"

	"ebb/sessions"
)

// senderID is an encrypted id as one robot receives it.
type senderID struct {
	robot     sessions.RobotCode
	encrypted sessions.UserID
}

// learnSender remembers the ids of a message's sender, and reports whether the encrypted one had another staff id before.
// The caller holds the mutex.
func (m *Store) learnSender(msg sessions.Message) bool {
	id := senderID{msg.RobotCode, msg.EncryptedID}
	if id.encrypted == "" || msg.StaffID == "" || slices.Contains(m.staff[id], msg.StaffID) {
		return false
	}
	m.staff[id] = append(m.staff[id], msg.StaffID)
	return len(m.staff[id]) > 1
}

// IsAccepted implements sessions.Inbox.
func (m *Store) IsAccepted(_ context.Context, key sessions.Key, id sessions.MessageID) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.sessions[key]
	return m.deleted[key][id] || s != nil && slices.ContainsFunc(s.events, func(e *sessions.Event) bool {
		return e.Role == sessions.RoleUser && e.MsgID == id
	}), nil
}

// StaffOf implements sessions.Inbox.
func (m *Store) StaffOf(_ context.Context, robot sessions.RobotCode, encrypted sessions.UserID) (sessions.UserID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if seen := m.staff[senderID{robot, encrypted}]; len(seen) == 1 {
		return seen[0], nil
	}
	return "", nil
}
