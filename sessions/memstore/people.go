package memstore

import (
	"context"
	"slices"

	"ebb/sessions"
)

// learn remembers the ids of a message's sender, and reports whether the encrypted one had another staff id before.
func (s staffIDs) learn(msg sessions.Message) bool {
	id := senderID{msg.RobotCode, msg.EncryptedID}
	if id.encrypted == "" || msg.StaffID == "" || slices.Contains(s[id], msg.StaffID) {
		return false
	}
	s[id] = append(s[id], msg.StaffID)
	return len(s[id]) > 1
}

// AcceptedUnder implements sessions.Inbox.
func (m *Store) AcceptedUnder(_ context.Context, keys []sessions.Key, id sessions.MessageID) (sessions.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		s := m.sessions[key]
		if m.deleted[deletionOf(key, id)] || s != nil && slices.ContainsFunc(s.events, func(e *sessions.Event) bool {
			return e.Role == sessions.RoleUser && e.MsgID == id
		}) {
			return key, nil
		}
	}
	return "", nil
}

// StaffIDs implements sessions.Inbox.
func (m *Store) StaffIDs(_ context.Context, robot sessions.RobotCode, encrypted sessions.UserID) ([]sessions.UserID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(slices.Values(m.staff[senderID{robot, encrypted}])), nil
}
