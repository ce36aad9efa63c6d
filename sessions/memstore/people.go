package memstore

import (
	"context"
	"slices"

	"ebb/sessions"
)

// learn reports whether the encrypted id had another staff id before.
func (s staffIDs) learn(msg sessions.Message) bool {
	id := senderID{msg.RobotCode, msg.EncryptedID}
	if id.encrypted == "" || msg.StaffID == "" || slices.Contains(s[id], msg.StaffID) {
		return false
	}
	s[id] = append(s[id], msg.StaffID)
	return len(s[id]) > 1
}

// StaffIDs implements sessions.Inbox.
func (m *Store) StaffIDs(_ context.Context, robot sessions.RobotCode, encrypted sessions.UserID) ([]sessions.UserID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(slices.Values(m.staff[senderID{robot, encrypted}])), nil
}
