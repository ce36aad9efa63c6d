package bottest

import (
	"context"
	"slices"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// Save implements memory.Facts.
func (s *Store) Save(ctx context.Context, l sessions.Lease, drafts []memory.Draft) (memory.Receipt, error) {
	return do(s, "save", func() (memory.Receipt, error) {
		if _, err := s.Mem.Turns.Begin(ctx, l, 0); err != nil {
			return memory.Receipt{}, err
		}
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		return s.Put(l.Key, drafts), nil
	})
}

// Put stores drafts that are not there yet; the caller holds the shelf's mutex.
func (s *Shelf) Put(key sessions.Key, drafts []memory.Draft) (r memory.Receipt) {
	for _, d := range drafts {
		at := slices.IndexFunc(s.Memories, func(m memory.Memory) bool {
			return m.Scope == d.Scope && m.ScopeID == d.ScopeID && m.Content == d.Content
		})
		if at >= 0 {
			r.Duplicate = append(r.Duplicate, s.Memories[at].ID)
			continue
		}
		id := int64(len(s.Memories) + 1)
		s.Memories = append(s.Memories, memory.Memory{
			ID: id, Scope: d.Scope, ScopeID: d.ScopeID, Kind: d.Kind, Content: d.Content, SourceSession: key, CreatedAt: time.Now(),
		})
		r.Saved, r.New = append(r.Saved, id), append(r.New, d)
	}
	return r
}

// Flush implements memory.Flushes.
func (s *Store) Flush(ctx context.Context, l sessions.Lease, f memory.Flush) (memory.Receipt, error) {
	return do(s, "flush", func() (memory.Receipt, error) {
		v, err := s.Mem.Turns.Begin(ctx, l, 0)
		if err != nil {
			return memory.Receipt{}, err
		}
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		st := s.of(l.Key)
		if st.Seq != f.From || f.Through < f.From || f.Through > v.Session.LastSeq {
			return memory.Receipt{}, sessions.ErrConflict
		}
		if st.Seq, st.count, st.Failures = f.Through, st.count+1, 0; f.Gen == v.Session.Gen {
			st.Epoch = f.Epoch
		}
		st.Ranges = append(st.Ranges, [2]int64{f.From, f.Through})
		if st.Owed <= f.Through {
			st.Owed, st.Debt = 0, memory.OwedFlush{}
		}
		st.Triggers = append(st.Triggers, string(f.Trigger))
		_ = s.Mem.Ledger.Charge(ctx, l.Key, sessions.Spending{Kind: sessions.SpentFlush, Usage: f.Usage, Cost: f.Cost}) // never fails
		return s.Put(l.Key, f.Drafts), nil
	})
}

// Owe implements memory.Flushes.
func (s *Store) Owe(ctx context.Context, l sessions.Lease, d memory.Debt) error {
	_, err := do(s, "owe", func() (none, error) {
		if _, err := s.Mem.Turns.Begin(ctx, l, 0); err != nil {
			return none{}, err
		}
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		st := s.of(l.Key)
		st.Failures, st.Owed = d.Failures, d.Through
		d.Failures = max(d.Failures, st.Debt.Failures)
		since := st.Debt.Since
		if since.IsZero() {
			since = time.Now()
		}
		st.Debt, st.owedAt = memory.OwedFlush{FlushCandidate: memory.FlushCandidate{Key: l.Key, Since: since}, Debt: d}, time.Now()
		_ = s.Mem.Ledger.Charge(ctx, l.Key, sessions.Spending{Kind: sessions.SpentFlush, Usage: d.Usage, Cost: d.Cost}) // never fails
		return none{}, nil
	})
	return err
}

// Unflushed implements memory.Flushes.
func (s *Store) Unflushed(ctx context.Context, owner sessions.ReplicaID) ([]memory.UnflushedSession, error) {
	return do(s, "unflushed", func() ([]memory.UnflushedSession, error) {
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		var out []memory.UnflushedSession
		for key, f := range s.flushed {
			if st, err := s.Mem.Sessions.Session(ctx, key); err != nil || st.Lease.Owner != owner {
				continue
			}
			u := memory.UnflushedSession{Key: key}
			for _, e := range s.EventsOf(ctx, key) {
				if e.Seq > f.Seq {
					u.Tokens += e.Tokens
				}
			}
			if u.Tokens > 0 {
				out = append(out, u)
			}
		}
		slices.SortFunc(out, func(a, b memory.UnflushedSession) int { return b.Tokens - a.Tokens })
		return out, nil
	})
}
