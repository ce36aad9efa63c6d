package memstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"ebb/sessions"
)

// Summaries lists all summaries of a session in the order of storing.
func (m *Store) Summaries(_ context.Context, key sessions.Key) []sessions.Summary {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if s, ok := m.t.sessions[key]; ok {
		return copyAll(s.summaries)
	}
	return nil
}

// Blobs lists the addresses of a session's bodies, sorted.
func (m *Store) Blobs(_ context.Context, key sessions.Key) []string {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if s, ok := m.t.sessions[key]; ok {
		return slices.Sorted(maps.Keys(s.blobs))
	}
	return nil
}

// SpoilBlob replaces a body, or deletes it when body is empty.
func (m *Store) SpoilBlob(key sessions.Key, blob, body string) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s, ok := m.t.sessions[key]
	switch {
	case !ok:
	case body == "":
		delete(s.blobs, blob)
	default:
		s.blobs[blob] = body
	}
}

// Edit changes an event's content, as only an erasure does.
func (m *Store) Edit(key sessions.Key, seq int64, content string) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	if s, ok := m.t.sessions[key]; ok {
		if e := s.eventAt(seq); e != nil {
			e.Content = content
		}
	}
}

// Charge implements sessions.Ledger.
func (m Ledger) Charge(_ context.Context, key sessions.Key, one sessions.Spending) error {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	s, ok := m.t.sessions[key]
	if !ok {
		if s = m.t.gone[key.Gone()]; s == nil {
			s = &sessionRows{}
			m.t.gone[key.Gone()] = s
		}
	}
	s.addSpending(one)
	return nil
}

// Spent implements sessions.Ledger.
func (m Ledger) Spent(_ context.Context, key sessions.Key, since time.Time) ([]sessions.Spending, error) {
	m.t.mu.Lock()
	defer m.t.mu.Unlock()
	list := []sessions.Spending{}
	s := cmp.Or(m.t.sessions[key], m.t.gone[key])
	if s == nil {
		return list, nil
	}
	sums := map[sessions.SpentKind]sessions.Spending{}
	for of, one := range s.spent {
		if of.day >= since.UTC().Format(time.DateOnly) {
			sums[of.kind] = sums[of.kind].Add(one)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(sums)) {
		list = append(list, sums[kind])
	}
	return list, nil
}
