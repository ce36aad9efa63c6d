package bottest

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// candidates counts the marked events that are not flushed; the caller holds the shelf's mutex.
func (s *Shelf) candidates(ctx context.Context, key sessions.Key) int {
	n, f := 0, s.of(key)
	for _, e := range s.EventsOf(ctx, key) {
		if e.Seq > f.Seq && slices.Contains(f.marked, e.ID) {
			n++
		}
	}
	return n
}

// Values implements memory.Facts.
func (s *Store) Values(_ context.Context, r memory.Reader, id int64) ([]memory.Memory, error) {
	return do(s, "values", func() ([]memory.Memory, error) {
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		return slices.DeleteFunc(slices.Clone(s.Memories), func(m memory.Memory) bool { return m.ID != id || !readable(m, r) }), nil
	})
}

// Owed implements memory.Flushes.
func (s *Store) Owed(_ context.Context, key sessions.Key) (memory.Debt, error) {
	return do(s, "owed", func() (memory.Debt, error) {
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		if f := s.of(key); f.Owed > 0 {
			return f.Debt.Debt, nil
		}
		return memory.Debt{}, sessions.ErrNotFound
	})
}

// waiting sorts and cuts a list of sessions as the database does.
func waiting[T any](list []T, of func(T) memory.FlushCandidate, after memory.FlushCandidate, limit int) []T {
	order := func(a, b memory.FlushCandidate) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(string(a.Key), string(b.Key)))
	}
	list = slices.DeleteFunc(list, func(x T) bool { return order(of(x), after) <= 0 })
	slices.SortFunc(list, func(x, y T) int { return order(of(x), of(y)) })
	return list[:min(limit, len(list))]
}

// waits is a session in such a list. Those of other replicas are in it too, as in a list that is a moment old. The caller
// holds the shelf's mutex.
func (s *Shelf) waits(ctx context.Context, key sessions.Key) (w memory.FlushCandidate, st sessions.Session, ok bool) {
	st, err := s.Mem.Sessions.Session(ctx, key)
	if err != nil {
		return w, st, false
	}
	return memory.FlushCandidate{Key: key, Since: st.LastActiveAt, Conversation: st.ConversationID, SpentToday: st.SpentToday}, st, true
}

// DebtsDue implements memory.Flushes.
func (s *Store) DebtsDue(ctx context.Context, _ sessions.ReplicaID, after memory.FlushCandidate, limit int) ([]memory.OwedFlush, error) {
	return do(s, "debts", func() ([]memory.OwedFlush, error) {
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		var out []memory.OwedFlush
		for key, f := range s.flushed {
			rest := min(time.Minute<<min(max(f.Debt.Failures-1, 0), 20), time.Hour)
			if f.Debt.Failures == 0 {
				rest = 0
			}
			w, _, ok := s.waits(ctx, key)
			if !ok || f.Owed == 0 || time.Since(f.owedAt) < rest {
				continue
			}
			w.Since = f.Debt.Since
			out = append(out, memory.OwedFlush{FlushCandidate: w, Debt: f.Debt.Debt})
		}
		return waiting(out, func(o memory.OwedFlush) memory.FlushCandidate { return o.FlushCandidate }, after, limit), nil
	})
}

// Pass notes the people alone: these memories have no turns.
func (s *Store) Pass(_ context.Context, _ sessions.Lease, people []sessions.UserID) error {
	_, err := do(s, "pass", func() (none, error) {
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		s.Passed = people
		return none{}, nil
	})
	return err
}

// OweUnflushed implements memory.Flushes.
func (s *Store) OweUnflushed(ctx context.Context, owner sessions.ReplicaID, only sessions.Key) (n int, err error) {
	return do(s, "owe rest", func() (int, error) {
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		for key, f := range s.flushed {
			if only != "" && only != key {
				continue
			}
			if st, err := s.Mem.Sessions.Session(ctx, key); err == nil && st.Lease.Owner == owner && f.Seq < st.LastSeq {
				f.Owed = st.LastSeq
				if f.Debt.Since.IsZero() {
					f.Debt, f.owedAt = memory.OwedFlush{FlushCandidate: memory.FlushCandidate{Key: key, Since: time.Now()}}, time.Now()
				}
				f.Debt.Through = st.LastSeq
				n++
			}
		}
		return n, nil
	})
}

// Idle implements memory.Flushes.
func (s *Store) Idle(
	ctx context.Context, _ sessions.ReplicaID, rest time.Duration, after memory.FlushCandidate, limit int,
) ([]memory.FlushCandidate, error) {
	return do(s, "idle", func() ([]memory.FlushCandidate, error) {
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		var out []memory.FlushCandidate
		for key, f := range s.flushed {
			w, st, ok := s.waits(ctx, key)
			worth := s.candidates(ctx, key) > 0 || st.LastSeq-f.Seq >= memory.IdleEvents
			if ok && worth && f.Seq < st.LastSeq && f.Owed == 0 && time.Since(w.Since) >= rest && time.Since(w.Since) < 7*24*time.Hour {
				out = append(out, w)
			}
		}
		return waiting(out, func(w memory.FlushCandidate) memory.FlushCandidate { return w }, after, limit), nil
	})
}

// Charge implements sessions.Ledger.
func (s *Store) Charge(ctx context.Context, key sessions.Key, one sessions.Spending) error {
	_, err := do(s, "charge", func() (none, error) {
		s.mu.Lock()
		s.Paid = append(s.Paid, one)
		s.mu.Unlock()
		return none{}, s.Mem.Ledger.Charge(ctx, key, one)
	})
	return err
}

// Spent implements sessions.Ledger.
func (s *Store) Spent(ctx context.Context, key sessions.Key, since time.Time) ([]sessions.Spending, error) {
	return do(s, "spent", func() ([]sessions.Spending, error) { return s.Mem.Ledger.Spent(ctx, key, since) })
}

// Quoted implements sessions.Turns.
func (s *Store) Quoted(ctx context.Context, key sessions.Key, q sessions.Quote) (sessions.Event, error) {
	return do(s, "quoted", func() (sessions.Event, error) { return s.Mem.Turns.Quoted(ctx, key, q) })
}

// Requote implements sessions.Turns.
func (s *Store) Requote(ctx context.Context, l sessions.Lease, event int64, content string, q sessions.Quote) error {
	_, err := do(s, "requote", func() (none, error) { return none{}, s.Mem.Turns.Requote(ctx, l, event, content, q) })
	return err
}
