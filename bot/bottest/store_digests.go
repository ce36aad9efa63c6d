package bottest

import (
	"context"
	"maps"
	"slices"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// day is what a store knows of one conversation's day.
type day struct {
	key  sessions.Key
	date string
}

// DayState is the state of the digest of a day.
type DayState struct {
	Attempts int
	Done     bool
	Reason   string
	at       time.Time
}

// DigestsDue and the methods from here on keep digests as the database does. A list has two days at the most where a
// test does not say otherwise, so that there are several.
func (s *Store) DigestsDue(ctx context.Context, owner sessions.ReplicaID, days []memory.Day, after memory.DigestDue) ([]memory.DigestDue, error) {
	return do(s, "digests due", func() ([]memory.DigestDue, error) {
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		var out []memory.DigestDue
		for _, d := range days {
			for _, key := range slices.Sorted(maps.Keys(s.flushed)) {
				st, err := s.Mem.Sessions.Session(ctx, key)
				if err != nil || st.ConversationType != sessions.Group || (st.Lease.Owner != "" && st.Lease.Owner != owner) {
					continue
				}
				behind := d.Date > after.Date || d.Date == after.Date && key > after.Key
				state := s.Day(key, d.Date)
				if !behind || state.Done || state.Attempts >= memory.DigestAttempts || time.Since(state.at) < memory.DigestRest {
					continue
				}
				due := memory.DigestDue{Key: key, Day: d, LastSeq: st.LastSeq, Attempts: state.Attempts}
				if len(userMessages(s.said(ctx, due))) < memory.DigestLeast {
					state.Done = true
				} else if len(out) < max(2, s.Portion) {
					out = append(out, due)
				}
			}
		}
		return out, nil
	})
}

// Day is the state of a day; the caller holds the shelf's mutex.
func (s *Shelf) Day(key sessions.Key, date string) *DayState {
	if s.days == nil {
		s.days = map[day]*DayState{}
	}
	d := s.days[day{key, date}]
	if d == nil {
		d = &DayState{}
		s.days[day{key, date}] = d
	}
	return d
}

func (s *Shelf) said(ctx context.Context, d memory.DigestDue) []sessions.Event {
	return slices.DeleteFunc(s.EventsOf(ctx, d.Key), func(e sessions.Event) bool {
		return e.CreatedAt.Before(d.From) || !e.CreatedAt.Before(d.To) || e.Role == sessions.RoleTool || e.Content == ""
	})
}

// DigestEvents implements memory.Digests.
func (s *Store) DigestEvents(ctx context.Context, d memory.DigestDue, after int64, limit int) ([]sessions.Event, error) {
	return do(s, "digest events", func() ([]sessions.Event, error) {
		events := slices.DeleteFunc(s.said(ctx, d), func(e sessions.Event) bool { return e.Seq <= after })
		return events[:min(limit, len(events))], nil
	})
}

// StoreDigest implements memory.Digests.
func (s *Store) StoreDigest(ctx context.Context, l sessions.Lease, d memory.Digest) (int64, error) {
	return do(s, "store digest", func() (int64, error) {
		if _, err := s.Mem.Turns.Begin(ctx, l, 0); err != nil {
			return 0, err
		}
		if err := s.Mem.Compactions.Log(ctx, l, sessions.LogEntry{Outcome: sessions.CompactionNothing, Trigger: "digest", Usage: d.Usage}); err != nil {
			return 0, err
		}
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		state := s.Day(l.Key, d.Date)
		if state.Done {
			return 0, sessions.ErrConflict
		}
		if state.Done = true; d.Content == "" {
			return 0, nil
		}
		id := int64(len(s.Memories) + 1)
		s.Memories = append(s.Memories, memory.Memory{
			ID: id, Scope: d.Scope, ScopeID: d.ScopeID, Kind: memory.KindDigest, Content: d.Content, SourceSession: l.Key,
			SourceGroup: d.SourceGroup, StartSeq: d.StartSeq, EndSeq: d.EndSeq, CreatedAt: d.At,
		})
		return id, nil
	})
}

// PutOffDigest implements memory.Digests.
func (s *Store) PutOffDigest(ctx context.Context, l sessions.Lease, f memory.DigestFailure) error {
	_, err := do(s, "put off digest", func() (none, error) {
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		state := s.Day(l.Key, f.Date)
		if state.Reason, state.at = f.Reason, time.Now(); f.Counts {
			state.Attempts++
		}
		return none{}, s.Mem.Compactions.Log(ctx, l, sessions.LogEntry{Outcome: sessions.CompactionNothing, Trigger: "digest", Usage: f.Usage})
	})
	return err
}

// DigestsOf implements memory.Digests.
func (s *Store) DigestsOf(_ context.Context, r memory.Reader, from, to time.Time) ([]memory.Memory, error) {
	return do(s, "digests of", func() ([]memory.Memory, error) {
		return slices.DeleteFunc(s.Digests(), func(m memory.Memory) bool {
			return !readable(m, r) || m.CreatedAt.Before(from) || !m.CreatedAt.Before(to)
		}), nil
	})
}

// Digests lists what was stored.
func (s *Shelf) Digests() []memory.Memory {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.Memories), func(m memory.Memory) bool { return m.Kind != memory.KindDigest })
}

// userMessages are the events that people sent.
func userMessages(events []sessions.Event) []sessions.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e sessions.Event) bool { return e.Role != sessions.RoleUser })
}
