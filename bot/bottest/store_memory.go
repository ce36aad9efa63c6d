package bottest

import (
	"context"
	"slices"
	"strings"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// Range implements memory.Searcher.
func (s *Store) Range(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.Event, error) {
	return do(s, "range", func() ([]sessions.Event, error) {
		var out []sessions.Event
		for _, e := range s.EventsOf(ctx, key) {
			if e.Seq > from && e.Seq <= through && len(out) < limit {
				out = append(out, e)
			}
		}
		return out, nil
	})
}

// EventsOf is the session's events that have a place, in the order of the view.
func (s *Shelf) EventsOf(ctx context.Context, key sessions.Key) []sessions.Event {
	events := slices.DeleteFunc(s.Mem.Events(ctx, key), func(e sessions.Event) bool { return e.Seq == 0 })
	slices.SortFunc(events, func(a, b sessions.Event) int { return int(a.Seq - b.Seq) })
	return events
}

// Search implements memory.Searcher.
func (s *Store) Search(ctx context.Context, r memory.Reader, q memory.Query) ([]memory.Hit, error) {
	return do(s, "search", func() ([]memory.Hit, error) {
		if s.Find != nil {
			return s.Find(ctx, q)
		}
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		var hits []memory.Hit
		for _, m := range s.Memories {
			if len(hits) < q.Limit && readable(m, r) && strings.Contains(m.Content, q.Text) {
				hits = append(hits, memory.Hit{Path: "MEMORY.md", Content: m.Content, At: m.CreatedAt})
			}
		}
		return hits, nil
	})
}

func readable(m memory.Memory, r memory.Reader) bool {
	switch m.Scope {
	case memory.ScopeGroup:
		return m.ScopeID == memory.GroupID(r.Robot, r.Conversation)
	case memory.ScopeSession:
		return m.ScopeID == string(r.Key)
	case memory.ScopeUser:
		return slices.Contains(r.Users, sessions.UserID(m.ScopeID))
	}
	return false
}

// Pinned implements memory.Facts.
func (s *Store) Pinned(_ context.Context, r memory.Reader, limit int) ([]memory.Memory, error) {
	return do(s, "pinned", func() ([]memory.Memory, error) {
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		var out []memory.Memory
		for _, m := range slices.Backward(s.Memories) {
			if len(out) < limit && readable(m, r) {
				out = append(out, m)
			}
		}
		return out, nil
	})
}

// History implements memory.Searcher.
func (s *Store) History(ctx context.Context, key sessions.Key, q memory.LogQuery) (memory.LogMatches, error) {
	return do(s, "history", func() (finds memory.LogMatches, err error) {
		for _, e := range slices.Backward(s.EventsOf(ctx, key)) {
			inRange := e.Seq >= q.From && (q.Through == 0 || e.Seq <= q.Through)
			if inRange && strings.Contains(e.Content, q.Words) && len(finds.Events) < q.Limit {
				finds.Events = append(finds.Events, memory.LogMatch{Event: e})
			}
		}
		return finds, nil
	})
}

// Remember puts memories of the group on a world's shelf.
func (s *Shelf) Remember(facts ...memory.Memory) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, m := range facts {
		if m.Scope == "" {
			m.Scope, m.ScopeID = memory.ScopeGroup, memory.GroupID("robot", "c1")
		}
		m.ID, m.CreatedAt = int64(len(s.Memories)+1), time.Now()
		s.Memories = append(s.Memories, m)
	}
}
