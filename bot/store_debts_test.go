package bot

import (
	"context"
	"slices"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// candidates counts the marked events that are not flushed; the caller holds the shelf's mutex.
func (s *shelf) candidates(ctx context.Context, key sessions.Key) int {
	n, f := 0, s.of(key)
	for _, e := range s.log(ctx, key) {
		if e.Seq > f.seq && slices.Contains(f.marked, e.ID) {
			n++
		}
	}
	return n
}

func (s *store) Values(_ context.Context, r memory.Reader, id int64) ([]memory.Memory, error) {
	return do(s, "values", func() ([]memory.Memory, error) {
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		return slices.DeleteFunc(slices.Clone(s.memories), func(m memory.Memory) bool { return m.ID != id || !readable(m, r) }), nil
	})
}

func (s *store) Owed(_ context.Context, key sessions.Key) (memory.Debt, error) {
	return do(s, "owed", func() (memory.Debt, error) {
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		if f := s.of(key); f.owed > 0 {
			return f.debt.Debt, nil
		}
		return memory.Debt{}, sessions.ErrNotFound
	})
}

func (s *store) DebtsDue(_ context.Context, _ sessions.ReplicaID, limit int) ([]memory.Owed, error) {
	return do(s, "debts", func() ([]memory.Owed, error) {
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		var out []memory.Owed
		for _, f := range s.flushed {
			rest := min(time.Minute<<min(max(f.debt.Failures-1, 0), 20), time.Hour)
			if f.owed > 0 && time.Since(f.owedAt) >= rest && len(out) < limit {
				out = append(out, f.debt)
			}
		}
		return out, nil
	})
}

func (s *store) Idle(ctx context.Context, _ sessions.ReplicaID, after time.Duration, limit int) ([]sessions.Key, error) {
	return do(s, "idle", func() ([]sessions.Key, error) {
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		var out []sessions.Key
		for key, f := range s.flushed {
			st, err := s.mem.Session(ctx, key)
			if err == nil && f.seq < st.LastSeq && f.owed == 0 && time.Since(st.LastActiveAt) >= after && len(out) < limit {
				out = append(out, key)
			}
		}
		return out, nil
	})
}
