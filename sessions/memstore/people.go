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
