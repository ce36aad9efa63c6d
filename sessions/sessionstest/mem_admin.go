package sessionstest

import (
	"context"
	"maps"
	"slices"

	"ebb/sessions"
)

// Summaries lists all summaries of a session, whatever their state, in the order in which they were stored.
func (m *Mem) Summaries(_ context.Context, key sessions.Key) []sessions.Summary {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.sessions[key]; ok {
		return copies(s.summaries)
	}
	return nil
}

// Blobs lists the addresses of the bodies that are kept for a session, sorted.
func (m *Mem) Blobs(_ context.Context, key sessions.Key) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.sessions[key]; ok {
		return slices.Sorted(maps.Keys(s.blobs))
	}
	return nil
}

// SpoilBlob has another body stand under an address, as after a fault of a disk; with an empty one it is gone.
func (m *Mem) SpoilBlob(key sessions.Key, blob, body string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.sessions[key]
	switch {
	case !ok:
	case body == "":
		delete(s.blobs, blob)
	default:
		s.blobs[blob] = body
	}
}

// Edit changes what the event at a place says: only the law does that.
func (m *Mem) Edit(key sessions.Key, seq int64, content string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.sessions[key]; ok {
		if e := s.at(seq); e != nil {
			e.Content = content
		}
	}
}

// Spend adds the usage of a flush to what the session's maintenance took today; memory itself is kept elsewhere.
func (m *Mem) Spend(key sessions.Key, u sessions.Usage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.sessions[key]; ok {
		s.spend(u)
	}
}
