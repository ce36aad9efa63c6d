package bot

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/memstore"
)

// errAway is what the storage says while a test has it away.
var errAway = errors.New("storage is away")

// store is the storage of these tests: memstore.Store for sessions, and a memory over its log. Several bots may
// share one, each through a store of its own with the same shelf. Calls can be made to fail, and are listed.
type store struct {
	*shelf
	mu    sync.Mutex
	fault func(op string) error // asked before every call; nil: all is well
	after func(op string) error // asked when a call has done its work: its answer gets lost
	open  int                   // calls under way, Listen aside
	calls []string
	paid  []sessions.Spending                                             // charged apart from other writes
	find  func(ctx context.Context, q memory.Query) ([]memory.Hit, error) // result of searches; nil: facts that hold the words
}

// shelf is what outlives a process.
type shelf struct {
	mem      *memstore.Store
	mu       sync.Mutex
	flushed  map[sessions.Key]*flushState
	memories []memory.Memory
	days     map[day]*dayState
	portion  int               // length of a list of days
	passed   []sessions.UserID // see Pass
}

type flushState struct {
	seq             int64
	epoch           int
	count, failures int
	owed            int64
	debt            memory.OwedFlush // owed flush to list
	owedAt          time.Time        // time of its last failure
	marked          []int64          // ids of candidates
	ranges          [][2]int64
	triggers        []string // triggers of the successful flushes
	hidden          int      // turns that no search is to find
}

func newShelf() *shelf {
	return &shelf{mem: memstore.New(0), flushed: map[sessions.Key]*flushState{}}
}

func (s *shelf) store() *store { return &store{shelf: s} }

// of is the flush state of a session; the caller holds the shelf's mutex.
func (s *shelf) of(key sessions.Key) *flushState {
	f := s.flushed[key]
	if f == nil {
		f = &flushState{epoch: -1}
		s.flushed[key] = f
	}
	return f
}

// flushes is a copy of the flush state of a session.
func (s *shelf) flushes(key sessions.Key) flushState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.of(key)
}

func do[T any](s *store, op string, f func() (T, error)) (T, error) {
	s.mu.Lock()
	fault, after := s.fault, s.after
	s.open++
	s.calls = append(s.calls, op)
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.open--; s.mu.Unlock() }()
	var none T
	if fault != nil {
		if err := fault(op); err != nil {
			return none, err
		}
	}
	v, err := f()
	if err == nil && after != nil {
		if err := after(op); err != nil {
			return none, err
		}
	}
	return v, err
}

// fail has calls fail as f says from now on; nil ends it.
func (s *store) fail(f func(op string) error) { s.mu.Lock(); defer s.mu.Unlock(); s.fault = f }

// lose has the answers of calls get lost as f says from now on.
func (s *store) lose(f func(op string) error) { s.mu.Lock(); defer s.mu.Unlock(); s.after = f }

// times makes a fault of the first n calls of op.
func times(n int, op string, err error) func(string) error {
	var mu sync.Mutex
	return func(o string) error {
		mu.Lock()
		defer mu.Unlock()
		if o != op || n == 0 {
			return nil
		}
		n--
		return err
	}
}

// called counts the calls of op so far.
func (s *store) called(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, c := range s.calls {
		if c == op {
			n++
		}
	}
	return n
}

func (s *store) underWay() int { s.mu.Lock(); defer s.mu.Unlock(); return s.open }

type none struct{}

func (s *store) Beat(ctx context.Context, o sessions.ReplicaID) (time.Time, error) {
	return do(s, "beat", func() (time.Time, error) { return s.mem.Beat(ctx, o) })
}

func (s *store) LeaseOf(ctx context.Context, k sessions.Key) (sessions.Lease, error) {
	return s.mem.LeaseOf(ctx, k)
}

func (s *store) Acquire(ctx context.Context, k sessions.Key, o sessions.ReplicaID) (sessions.Lease, error) {
	return do(s, "acquire", func() (sessions.Lease, error) { return s.mem.Acquire(ctx, k, o) })
}

func (s *store) Rest(ctx context.Context, o sessions.ReplicaID, keys []sessions.Key, rest, unflushed time.Duration) ([]sessions.Key, error) {
	return do(s, "rest", func() ([]sessions.Key, error) { return s.mem.Rest(ctx, o, keys, rest, unflushed) })
}

func (s *store) Resign(ctx context.Context, o sessions.ReplicaID) (int, error) {
	return do(s, "resign", func() (int, error) { return s.mem.Resign(ctx, o) })
}

func (s *store) Accept(ctx context.Context, o sessions.ReplicaID, k sessions.Key, m sessions.Message) (sessions.Accepted, error) {
	return do(s, "accept", func() (sessions.Accepted, error) { return s.mem.Accept(ctx, o, k, m) })
}

func (s *store) AcceptHere(
	ctx context.Context, o sessions.ReplicaID, k sessions.Key, m sessions.Message, q sessions.PlaceQuery,
) (sessions.Accepted, error) {
	return do(s, "accept", func() (sessions.Accepted, error) { return s.mem.AcceptHere(ctx, o, k, m, q) })
}

func (s *store) PlaceOf(ctx context.Context, q sessions.PlaceQuery) (sessions.Place, error) {
	return do(s, "place", func() (sessions.Place, error) { return s.mem.PlaceOf(ctx, q) })
}

func (s *store) ChooseScope(ctx context.Context, l sessions.Lease, scope sessions.Scope) error {
	_, err := do(s, "scope", func() (struct{}, error) { return struct{}{}, s.mem.ChooseScope(ctx, l, scope) })
	return err
}

func (s *store) LearnIDs(ctx context.Context, m sessions.Message) error {
	_, err := do(s, "learn", func() (none, error) { return none{}, s.mem.LearnIDs(ctx, m) })
	return err
}

func (s *store) LinkedIDs(ctx context.Context, robot sessions.RobotCode, id sessions.UserID) ([]sessions.UserID, error) {
	return s.mem.LinkedIDs(ctx, robot, id)
}

func (s *store) Pending(ctx context.Context, key sessions.Key, limit int) ([]sessions.Event, error) {
	return do(s, "pending", func() ([]sessions.Event, error) { return s.mem.Pending(ctx, key, limit) })
}

func (s *store) Revive(ctx context.Context, under []sessions.Lease) ([]sessions.Key, error) {
	return do(s, "revive", func() ([]sessions.Key, error) { return s.mem.Revive(ctx, under) })
}

func (s *store) Waiting(ctx context.Context, o sessions.ReplicaID, limit int) ([]sessions.Key, error) {
	return do(s, "waiting", func() ([]sessions.Key, error) { return s.mem.Waiting(ctx, o, limit) })
}

func (s *store) Listen(ctx context.Context, o sessions.ReplicaID, wake func(sessions.Key)) error {
	return s.mem.Listen(ctx, o, wake)
}

func (s *store) Begin(ctx context.Context, l sessions.Lease, limit int) (sessions.View, error) {
	return s.begin(ctx, l, func() (sessions.View, error) { return s.mem.Begin(ctx, l, limit) })
}

func (s *store) BeginAlone(ctx context.Context, l sessions.Lease, limit int, a sessions.Alone) (sessions.View, error) {
	return s.begin(ctx, l, func() (sessions.View, error) { return s.mem.BeginAlone(ctx, l, limit, a) })
}

func (s *store) Suspects(ctx context.Context) (int, error) {
	return do(s, "suspects", func() (int, error) { return s.mem.Suspects(ctx) })
}

func (s *store) Abandon(ctx context.Context, l sessions.Lease, blamed []int64) error {
	_, err := do(s, "abandon", func() (none, error) { return none{}, s.mem.Abandon(ctx, l, blamed) })
	return err
}

func (s *store) begin(ctx context.Context, l sessions.Lease, of func() (sessions.View, error)) (sessions.View, error) {
	return do(s, "begin", func() (sessions.View, error) {
		v, err := of()
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		f := s.of(l.Key)
		v.Session.FlushedSeq, v.Session.FlushEpoch = f.seq, f.epoch
		v.Session.FlushCount, v.Session.FlushFailures = f.count, f.failures
		v.Session.Candidates = s.candidates(ctx, l.Key)
		return v, err
	})
}

func (s *store) Release(ctx context.Context, l sessions.Lease) error {
	_, err := do(s, "release", func() (none, error) { return none{}, s.mem.Release(ctx, l) })
	return err
}

func (s *store) Session(ctx context.Context, key sessions.Key) (sessions.Session, error) {
	return do(s, "session", func() (sessions.Session, error) {
		got, err := s.mem.Session(ctx, key)
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		f := s.of(key)
		got.FlushedSeq, got.FlushEpoch, got.FlushCount, got.FlushFailures = f.seq, f.epoch, f.count, f.failures
		got.Candidates = s.candidates(ctx, key)
		return got, err
	})
}

func (s *store) Commit(ctx context.Context, l sessions.Lease, t sessions.Turn) (sessions.Committed, error) {
	return do(s, "commit", func() (sessions.Committed, error) {
		if s.forgotten(t.Pinned) {
			return sessions.Committed{}, sessions.ErrLeaseLost
		}
		c, err := s.mem.Commit(ctx, l, t)
		if err == nil {
			s.shelf.mu.Lock()
			defer s.shelf.mu.Unlock()
			f := s.of(l.Key)
			f.marked = append(f.marked, t.Marked...)
			if t.Command {
				f.hidden++
			}
		}
		return c, err
	})
}

func (s *store) RecordRun(ctx context.Context, l sessions.Lease, r sessions.ToolRun) error {
	_, err := do(s, "record", func() (none, error) { return none{}, s.mem.RecordRun(ctx, l, r) })
	return err
}

func (s *store) Compact(ctx context.Context, l sessions.Lease, c sessions.Compaction) (sessions.Compacted, error) {
	return do(s, "compact", func() (sessions.Compacted, error) {
		if s.forgotten(c.Pinned) {
			return sessions.Compacted{}, sessions.ErrLeaseLost
		}
		done, err := s.mem.Compact(ctx, l, c)
		if err == nil && len(c.Summaries) > 0 {
			s.shelf.mu.Lock()
			s.of(l.Key).failures = 0 // they are counted in a cycle, and this begins one
			s.shelf.mu.Unlock()
		}
		return done, err
	})
}

// forgotten reports whether a write pins a memory that is deleted.
func (s *store) forgotten(p *sessions.Pinned) bool {
	s.shelf.mu.Lock()
	defer s.shelf.mu.Unlock()
	return p != nil && slices.ContainsFunc(p.Rows, func(id int64) bool {
		return !slices.ContainsFunc(s.memories, func(m memory.Memory) bool { return m.ID == id })
	})
}

func (s *store) OpenJob(ctx context.Context, l sessions.Lease, j sessions.Job) (sessions.Source, error) {
	return do(s, "open", func() (sessions.Source, error) { return s.mem.OpenJob(ctx, l, j) })
}

func (s *store) StageJob(ctx context.Context, l sessions.Lease, j sessions.Job, staged []byte, paid sessions.Spending) error {
	_, err := do(s, "stage", func() (none, error) { return none{}, s.mem.StageJob(ctx, l, j, staged, paid) })
	return err
}

func (s *store) MarkUpkeep(ctx context.Context, l sessions.Lease, limit time.Duration) error {
	_, err := do(s, "upkeep", func() (none, error) { return none{}, s.mem.MarkUpkeep(ctx, l, limit) })
	return err
}

func (s *store) Job(ctx context.Context, key sessions.Key) (sessions.Job, error) {
	return do(s, "job", func() (sessions.Job, error) { return s.mem.Job(ctx, key) })
}

func (s *store) Undo(ctx context.Context, l sessions.Lease, event int64, rest int) (sessions.LogEntry, error) {
	return do(s, "undo", func() (sessions.LogEntry, error) { return s.mem.Undo(ctx, l, event, rest) })
}

func (s *store) Rewrite(ctx context.Context, l sessions.Lease, w sessions.Rewritten) error {
	_, err := do(s, "rewrite", func() (none, error) { return none{}, s.mem.Rewrite(ctx, l, w) })
	return err
}

func (s *store) Configure(ctx context.Context, l sessions.Lease, settings string) error {
	_, err := do(s, "configure", func() (none, error) { return none{}, s.mem.Configure(ctx, l, settings) })
	return err
}

func (s *store) Renew(ctx context.Context, l sessions.Lease) error {
	_, err := do(s, "renew", func() (none, error) {
		err := s.mem.Renew(ctx, l)
		if err == nil {
			s.shelf.mu.Lock()
			s.of(l.Key).epoch = -1
			s.shelf.mu.Unlock()
		}
		return none{}, err
	})
	return err
}

func (s *store) Erase(ctx context.Context, key sessions.Key, seqs []int64) (sessions.Erased, error) {
	return do(s, "erase", func() (sessions.Erased, error) { return s.mem.Erase(ctx, key, seqs) })
}

func (s *store) Delete(ctx context.Context, key sessions.Key) (sessions.Deleted, error) {
	return do(s, "delete", func() (sessions.Deleted, error) { return s.mem.Delete(ctx, key) })
}

func (s *store) Backlogs(
	ctx context.Context, owner sessions.ReplicaID, tokens int, after sessions.Key, limit int,
) ([]sessions.Session, error) {
	return do(s, "backlogs", func() ([]sessions.Session, error) { return s.mem.Backlogs(ctx, owner, tokens, after, limit) })
}

func (s *store) Compactions(ctx context.Context, key sessions.Key, limit int) ([]sessions.LogEntry, error) {
	return do(s, "compactions", func() ([]sessions.LogEntry, error) { return s.mem.Compactions(ctx, key, limit) })
}

func (s *store) Blob(ctx context.Context, key sessions.Key, blob string) (string, error) {
	return do(s, "blob", func() (string, error) { return s.mem.Blob(ctx, key, blob) })
}

func (s *store) Log(ctx context.Context, l sessions.Lease, e sessions.LogEntry) error {
	_, err := do(s, "log", func() (none, error) { return none{}, s.mem.Log(ctx, l, e) })
	return err
}

func (s *store) Unsent(ctx context.Context, l sessions.Lease) ([]sessions.Outgoing, error) {
	return do(s, "unsent", func() ([]sessions.Outgoing, error) { return s.mem.Unsent(ctx, l) })
}

func (s *store) Announce(ctx context.Context, l sessions.Lease, r sessions.Reply) ([]sessions.Outgoing, error) {
	return do(s, "announce", func() ([]sessions.Outgoing, error) { return s.mem.Announce(ctx, l, r) })
}

func (s *store) Claim(ctx context.Context, l sessions.Lease, t sessions.Try) ([]sessions.Outgoing, error) {
	return do(s, "claim", func() ([]sessions.Outgoing, error) { return s.mem.Claim(ctx, l, t) })
}

func (s *store) PutDown(ctx context.Context, o sessions.ReplicaID) error {
	_, err := do(s, "put down", func() (none, error) { return none{}, s.mem.PutDown(ctx, o) })
	return err
}

func (s *store) Settle(ctx context.Context, t sessions.Settled) error {
	_, err := do(s, "settle", func() (none, error) { return none{}, s.mem.Settle(ctx, t) })
	return err
}

// Save and the methods from here on are the memory.
func (s *store) Save(ctx context.Context, l sessions.Lease, drafts []memory.Draft) (memory.Receipt, error) {
	return do(s, "save", func() (memory.Receipt, error) {
		if _, err := s.mem.Begin(ctx, l, 0); err != nil {
			return memory.Receipt{}, err
		}
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		return s.put(l.Key, drafts), nil
	})
}

// put stores drafts that are not there yet; the caller holds the shelf's mutex.
func (s *shelf) put(key sessions.Key, drafts []memory.Draft) (r memory.Receipt) {
	for _, d := range drafts {
		at := slices.IndexFunc(s.memories, func(m memory.Memory) bool {
			return m.Scope == d.Scope && m.ScopeID == d.ScopeID && m.Content == d.Content
		})
		if at >= 0 {
			r.Duplicate = append(r.Duplicate, s.memories[at].ID)
			continue
		}
		id := int64(len(s.memories) + 1)
		s.memories = append(s.memories, memory.Memory{
			ID: id, Scope: d.Scope, ScopeID: d.ScopeID, Kind: d.Kind, Content: d.Content, SourceSession: key, CreatedAt: time.Now(),
		})
		r.Saved, r.New = append(r.Saved, id), append(r.New, d)
	}
	return r
}

func (s *store) Flush(ctx context.Context, l sessions.Lease, f memory.Flush) (memory.Receipt, error) {
	return do(s, "flush", func() (memory.Receipt, error) {
		v, err := s.mem.Begin(ctx, l, 0)
		if err != nil {
			return memory.Receipt{}, err
		}
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		st := s.of(l.Key)
		if st.seq != f.From || f.Through < f.From || f.Through > v.Session.LastSeq {
			return memory.Receipt{}, sessions.ErrConflict
		}
		if st.seq, st.count, st.failures = f.Through, st.count+1, 0; f.Gen == v.Session.Gen {
			st.epoch = f.Epoch
		}
		st.ranges = append(st.ranges, [2]int64{f.From, f.Through})
		if st.owed <= f.Through {
			st.owed, st.debt = 0, memory.OwedFlush{}
		}
		st.triggers = append(st.triggers, f.Trigger)
		_ = s.mem.Charge(ctx, l.Key, sessions.Spending{Kind: sessions.SpentFlush, Usage: f.Usage, Cost: f.Cost}) // never fails
		return s.put(l.Key, f.Drafts), nil
	})
}

func (s *store) Owe(ctx context.Context, l sessions.Lease, d memory.Debt) error {
	_, err := do(s, "owe", func() (none, error) {
		if _, err := s.mem.Begin(ctx, l, 0); err != nil {
			return none{}, err
		}
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		st := s.of(l.Key)
		st.failures, st.owed = d.Failures, d.Through
		d.Failures = max(d.Failures, st.debt.Failures)
		since := st.debt.Since
		if since.IsZero() {
			since = time.Now()
		}
		st.debt, st.owedAt = memory.OwedFlush{FlushCandidate: memory.FlushCandidate{Key: l.Key, Since: since}, Debt: d}, time.Now()
		_ = s.mem.Charge(ctx, l.Key, sessions.Spending{Kind: sessions.SpentFlush, Usage: d.Usage, Cost: d.Cost}) // never fails
		return none{}, nil
	})
	return err
}

func (s *store) Unflushed(ctx context.Context, owner sessions.ReplicaID) ([]memory.UnflushedSession, error) {
	return do(s, "unflushed", func() ([]memory.UnflushedSession, error) {
		s.shelf.mu.Lock()
		defer s.shelf.mu.Unlock()
		var out []memory.UnflushedSession
		for key, f := range s.flushed {
			if st, err := s.mem.Session(ctx, key); err != nil || st.Lease.Owner != owner {
				continue
			}
			u := memory.UnflushedSession{Key: key}
			for _, e := range s.log(ctx, key) {
				if e.Seq > f.seq {
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
