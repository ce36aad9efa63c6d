package memstore

import (
	"context"
	"slices"

	"ebb/sessions"
)

var _ sessions.Elector = Replicas{}

// The caller holds the mutex.
func (m Leases) noteBeat(owner sessions.ReplicaID) {
	if !slices.ContainsFunc(m.t.standing, func(s replicaMark) bool { return s.id == owner }) {
		m.t.standing = append(m.t.standing, replicaMark{id: owner})
	}
}

// Mark implements sessions.Elector.
func (m Replicas) Mark(_ context.Context, owner sessions.ReplicaID, st sessions.ReplicaStatus) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	for i := range m.t.standing {
		if s := &m.t.standing[i]; s.id == owner && s.ReplicaStatus != st {
			s.ReplicaStatus = st
			m.t.wakeListeners("", "")
		}
	}
	return nil
}

// Leader implements sessions.Elector.
func (m Replicas) Leader(context.Context) (sessions.Leader, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	var l sessions.Leader
	for _, s := range m.t.standing {
		if !s.Draining && m.t.isAlive(s.id) && (l.Replica == "" || s.Connected && !l.Connected) {
			l = sessions.Leader{Replica: s.id, Connected: s.Connected}
		}
	}
	return l, nil
}
