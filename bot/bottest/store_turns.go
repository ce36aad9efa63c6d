package bottest

import (
	"context"
	"slices"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// Begin implements sessions.Turns.
func (s *Store) Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error) {
	return s.begin(ctx, l, func() (sessions.View, error) { return s.Mem.Turns.Begin(ctx, l, limit) })
}

// BeginAlone implements sessions.Turns.
func (s *Store) BeginAlone(ctx context.Context, l sessions.Lease, limit int, a sessions.Alone) (sessions.View, error) {
	return s.begin(ctx, l, func() (sessions.View, error) { return s.Mem.Turns.BeginAlone(ctx, l, limit, a) })
}

// Suspects implements sessions.Turns.
func (s *Store) Suspects(ctx context.Context) (int, error) {
	return do(s, "suspects", func() (int, error) { return s.Mem.Turns.Suspects(ctx) })
}

// Abandon implements sessions.Turns.
func (s *Store) Abandon(ctx context.Context, l sessions.Lease, blamed []int64) error {
	_, err := do(s, "abandon", func() (none, error) { return none{}, s.Mem.Turns.Abandon(ctx, l, blamed) })
	return err
}

func (s *Store) begin(ctx context.Context, l sessions.Lease, of func() (sessions.View, error)) (sessions.View, error) {
	return do(s, "begin", func() (sessions.View, error) {
		v, err := of()
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		f := s.of(l.Key)
		v.Session.FlushedSeq, v.Session.FlushEpoch = f.Seq, f.Epoch
		v.Session.FlushCount, v.Session.FlushFailures = f.count, f.Failures
		v.Session.Candidates = s.candidates(ctx, l.Key)
		return v, err
	})
}

// Release implements sessions.Stores.
func (s *Store) Release(ctx context.Context, l sessions.Lease) error {
	_, err := do(s, "release", func() (none, error) { return none{}, s.Mem.Leases.Release(ctx, l) })
	return err
}

// Session implements sessions.States.
func (s *Store) Session(ctx context.Context, key sessions.Key) (sessions.Session, error) {
	return do(s, "session", func() (sessions.Session, error) {
		got, err := s.Mem.Sessions.Session(ctx, key)
		s.Shelf.Mu.Lock()
		defer s.Shelf.Mu.Unlock()
		f := s.of(key)
		got.FlushedSeq, got.FlushEpoch, got.FlushCount, got.FlushFailures = f.Seq, f.Epoch, f.count, f.Failures
		got.Candidates = s.candidates(ctx, key)
		return got, err
	})
}

// Commit implements sessions.Turns.
func (s *Store) Commit(ctx context.Context, l sessions.Lease, t sessions.TurnResult) (sessions.Committed, error) {
	return do(s, "commit", func() (sessions.Committed, error) {
		if s.forgotten(t.Pinned) {
			return sessions.Committed{}, sessions.ErrLeaseLost
		}
		c, err := s.Mem.Turns.Commit(ctx, l, t)
		if err == nil {
			s.Shelf.Mu.Lock()
			defer s.Shelf.Mu.Unlock()
			f := s.of(l.Key)
			f.marked = append(f.marked, t.Marked...)
			if t.Command {
				f.Hidden++
			}
		}
		return c, err
	})
}

// RecordRun implements sessions.Turns.
func (s *Store) RecordRun(ctx context.Context, l sessions.Lease, r sessions.ToolRun) error {
	_, err := do(s, "record", func() (none, error) { return none{}, s.Mem.Turns.RecordRun(ctx, l, r) })
	return err
}

// Compact implements sessions.Compactor.
func (s *Store) Compact(ctx context.Context, l sessions.Lease, c sessions.Compaction) (sessions.Compacted, error) {
	return do(s, "compact", func() (sessions.Compacted, error) {
		if s.forgotten(c.Pinned) {
			return sessions.Compacted{}, sessions.ErrLeaseLost
		}
		done, err := s.Mem.Compactions.Compact(ctx, l, c)
		if err == nil && len(c.Summaries) > 0 {
			s.Shelf.Mu.Lock()
			s.of(l.Key).Failures = 0 // they are counted in a cycle, and this begins one
			s.Shelf.Mu.Unlock()
		}
		return done, err
	})
}

// forgotten reports whether a write pins a memory that is deleted.
func (s *Store) forgotten(p *sessions.Pinned) bool {
	s.Shelf.Mu.Lock()
	defer s.Shelf.Mu.Unlock()
	return p != nil && slices.ContainsFunc(p.Rows, func(id int64) bool {
		return !slices.ContainsFunc(s.Memories, func(m memory.Memory) bool { return m.ID == id })
	})
}

// OpenJob implements sessions.Jobs.
func (s *Store) OpenJob(ctx context.Context, l sessions.Lease, j sessions.Job) (sessions.Source, error) {
	return do(s, "open", func() (sessions.Source, error) { return s.Mem.Jobs.OpenJob(ctx, l, j) })
}

// StageJob implements sessions.Jobs.
func (s *Store) StageJob(ctx context.Context, l sessions.Lease, j sessions.Job, staged []byte, paid sessions.Spending) error {
	_, err := do(s, "stage", func() (none, error) { return none{}, s.Mem.Jobs.StageJob(ctx, l, j, staged, paid) })
	return err
}

// MarkUpkeep implements sessions.Jobs.
func (s *Store) MarkUpkeep(ctx context.Context, l sessions.Lease, limit time.Duration) error {
	_, err := do(s, "upkeep", func() (none, error) { return none{}, s.Mem.Jobs.MarkUpkeep(ctx, l, limit) })
	return err
}

// Job implements sessions.Jobs.
func (s *Store) Job(ctx context.Context, key sessions.Key) (sessions.Job, error) {
	return do(s, "job", func() (sessions.Job, error) { return s.Mem.Jobs.Job(ctx, key) })
}

// Undo implements sessions.Compactor.
func (s *Store) Undo(ctx context.Context, l sessions.Lease, event int64, rest int) (sessions.LogEntry, error) {
	return do(s, "undo", func() (sessions.LogEntry, error) { return s.Mem.Compactions.Undo(ctx, l, event, rest) })
}

// Rewrite implements sessions.Compactor.
func (s *Store) Rewrite(ctx context.Context, l sessions.Lease, w sessions.Rewritten) error {
	_, err := do(s, "rewrite", func() (none, error) { return none{}, s.Mem.Compactions.Rewrite(ctx, l, w) })
	return err
}

// Configure implements sessions.States.
func (s *Store) Configure(ctx context.Context, l sessions.Lease, settings string) error {
	_, err := do(s, "configure", func() (none, error) { return none{}, s.Mem.Sessions.Configure(ctx, l, settings) })
	return err
}

// Renew implements sessions.States.
func (s *Store) Renew(ctx context.Context, l sessions.Lease) error {
	_, err := do(s, "renew", func() (none, error) {
		err := s.Mem.Sessions.Renew(ctx, l)
		if err == nil {
			s.Shelf.Mu.Lock()
			s.of(l.Key).Epoch = -1
			s.Shelf.Mu.Unlock()
		}
		return none{}, err
	})
	return err
}

// Erase implements sessions.Eraser.
func (s *Store) Erase(ctx context.Context, key sessions.Key, seqs []int64) (sessions.Erased, error) {
	return do(s, "erase", func() (sessions.Erased, error) { return s.Mem.Erasure.Erase(ctx, key, seqs) })
}

// Delete implements sessions.Eraser.
func (s *Store) Delete(ctx context.Context, key sessions.Key) (sessions.Deleted, error) {
	return do(s, "delete", func() (sessions.Deleted, error) { return s.Mem.Erasure.Delete(ctx, key) })
}

// Backlogs implements sessions.Compactor.
func (s *Store) Backlogs(
	ctx context.Context, owner sessions.ReplicaID, tokens int, after sessions.Key, limit int,
) ([]sessions.Session, error) {
	return do(s, "backlogs", func() ([]sessions.Session, error) {
		return s.Mem.Compactions.Backlogs(ctx, owner, tokens, after, limit)
	})
}

// Compactions implements sessions.Compactor.
func (s *Store) Compactions(ctx context.Context, key sessions.Key, limit int) ([]sessions.LogEntry, error) {
	return do(s, "compactions", func() ([]sessions.LogEntry, error) { return s.Mem.Compactions.Compactions(ctx, key, limit) })
}

// Blob implements sessions.Compactor.
func (s *Store) Blob(ctx context.Context, key sessions.Key, blob string) (string, error) {
	return do(s, "blob", func() (string, error) { return s.Mem.Compactions.Blob(ctx, key, blob) })
}

// Log implements sessions.Compactor.
func (s *Store) Log(ctx context.Context, l sessions.Lease, e sessions.LogEntry) error {
	_, err := do(s, "log", func() (none, error) { return none{}, s.Mem.Compactions.Log(ctx, l, e) })
	return err
}

// Unsent implements sessions.Stores.
func (s *Store) Unsent(ctx context.Context, l sessions.Lease) ([]sessions.Outgoing, error) {
	return do(s, "unsent", func() ([]sessions.Outgoing, error) { return s.Mem.Outbox.Unsent(ctx, l) })
}

// Announce implements sessions.Stores.
func (s *Store) Announce(ctx context.Context, l sessions.Lease, r sessions.Reply) ([]sessions.Outgoing, error) {
	return do(s, "announce", func() ([]sessions.Outgoing, error) { return s.Mem.Outbox.Announce(ctx, l, r) })
}

// Claim implements sessions.Stores.
func (s *Store) Claim(ctx context.Context, l sessions.Lease, t sessions.SendAttempt) ([]sessions.Outgoing, error) {
	return do(s, "claim", func() ([]sessions.Outgoing, error) { return s.Mem.Outbox.Claim(ctx, l, t) })
}

// PutDown implements sessions.Stores.
func (s *Store) PutDown(ctx context.Context, o sessions.ReplicaID) error {
	_, err := do(s, "release replies", func() (none, error) { return none{}, s.Mem.Outbox.PutDown(ctx, o) })
	return err
}

// Settle implements sessions.Stores.
func (s *Store) Settle(ctx context.Context, t sessions.SendOutcome) error {
	_, err := do(s, "settle", func() (none, error) { return none{}, s.Mem.Outbox.Settle(ctx, t) })
	return err
}
