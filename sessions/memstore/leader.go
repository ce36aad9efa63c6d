package memstore

import (
	"context"
	"slices"

	"ebb/sessions"
)

var _ sessions.Elector = (*Store)(nil)

// The caller holds the mutex.
func (m leases) noteBeat(owner sessions.ReplicaID) {
	if !slices.ContainsFunc(m.standing, func(s replicaMark) bool { return s.id == owner }) {
		m.standing = append(m.standing, replicaMark{id: owner})
	}
}

// Mark implements sessions.Elector.
func (m leases) Mark(_ context.Context, owner sessions.ReplicaID, st sessions.ReplicaStatus) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.standing {
		if s := &m.standing[i]; s.id == owner && s.ReplicaStatus != st {
			s.ReplicaStatus = st
			m.wakeListeners("", "")
		}
	}
	return nil
}

// Leader implements sessions.Elector.
func (m leases) Leader(context.Context) (sessions.Leader, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var l sessions.Leader
	for _, s := range m.standing {
		if !s.Draining && m.isAlive(s.id) && (l.Replica == "" || s.Connected && !l.Connected) {
			l = sessions.Leader{Replica: s.id, Connected: s.Connected}
		}
	}
	return l, nil
}
