package memstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ebb/sessions"
)

func (m *tables) takeLease(s *sessionRows, owner sessions.ReplicaID) {
	l := &s.state.Lease
	if l.Owner != owner && !m.isAlive(l.Owner) {
		if l.Owner != "" {
			s.fallen = l.Term
		}
		l.Owner, l.Term = owner, l.Term+1
	}
}

// Beat implements sessions.Leases.
func (m Leases) Beat(_ context.Context, owner sessions.ReplicaID) (time.Time, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	now := time.Now()
	m.t.beats[owner] = now
	m.noteBeat(owner)
	return now, nil
}

// Acquire implements sessions.Leases.
func (m Leases) Acquire(
	_ context.Context, key sessions.Key, owner sessions.ReplicaID,
) (sessions.Lease, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s, ok := m.t.sessions[key]
	if !ok {
		return sessions.Lease{}, fmt.Errorf("acquiring a lease: %w", sessions.ErrNotFound)
	}
	m.t.takeLease(s, owner)
	if s.state.Lease.Owner != owner {
		return sessions.Lease{}, fmt.Errorf("acquiring a lease: %w", sessions.ErrLeaseHeld)
	}
	return s.state.Lease, nil
}

// Release implements sessions.Leases.
func (m Leases) Release(_ context.Context, l sessions.Lease) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s, err := m.t.fencedSession(l)
	if err != nil {
		return fmt.Errorf("releasing a lease: %w", err)
	}
	s.state.Lease.Owner = ""
	m.t.wakeListeners("", "")
	return nil
}

// Rest implements sessions.Leases. Owed flushes are kept elsewhere.
func (m Leases) Rest(_ context.Context, owner sessions.ReplicaID, keys []sessions.Key, rest, unflushed time.Duration) ([]sessions.Key, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	var freed []sessions.Key
	for _, key := range keys {
		s := m.t.sessions[key]
		if s == nil || s.state.Lease.Owner != owner {
			freed = append(freed, key)
			continue
		}
		if s.job != nil {
			continue
		}
		quiet := time.Since(s.state.LastActiveAt)
		if quiet < rest || s.state.FlushedSeq < s.state.LastSeq && quiet < unflushed {
			continue
		}
		if slices.ContainsFunc(s.events, func(e *sessions.Event) bool { return e.State == sessions.Pending }) ||
			slices.ContainsFunc(s.outbox, func(o *outboxRow) bool { return !o.settled }) {
			continue
		}
		s.state.Lease.Owner = ""
		freed = append(freed, key)
	}
	return freed, nil
}

// Resign implements sessions.Leases.
func (m Leases) Resign(_ context.Context, owner sessions.ReplicaID) (int, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	delete(m.t.beats, owner)
	m.t.standing = slices.DeleteFunc(m.t.standing, func(s replicaMark) bool { return s.id == owner })
	n := 0
	for _, s := range m.t.sessions {
		if s.state.Lease.Owner == owner {
			s.state.Lease.Owner = ""
			n++
		}
	}
	if n > 0 {
		m.t.wakeListeners("", "")
	}
	return n, nil
}

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
