package bottest

import (
	"context"
	"errors"
	"sync"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/memstore"
)

// ErrAway is what the storage says while a test has it away.
var ErrAway = errors.New("storage is away")

// Store is the storage of these tests: memstore.Store for sessions, and a memory over its log. Several bots may
// share one, each through a store of its own with the same shelf. Calls can be made to fail, and are listed.
type Store struct {
	*Shelf
	mu    sync.Mutex
	fault func(op string) error // asked before every call; nil: all is well
	after func(op string) error // asked when a call has done its work: its answer gets lost
	open  int                   // calls under way, Listen aside
	calls []string
	Paid  []sessions.Spending                                             // charged apart from other writes
	Find  func(ctx context.Context, q memory.Query) ([]memory.Hit, error) // result of searches; nil: facts that hold the words
}

// Shelf is what outlives a process.
type Shelf struct {
	Mem      *memstore.Store
	Mu       sync.Mutex
	flushed  map[sessions.Key]*FlushState
	Memories []memory.Memory
	days     map[day]*DayState
	Portion  int               // length of a list of days
	Passed   []sessions.UserID // see Pass

	ttl time.Duration // time to live of leases
}

// FlushState is the state of the flushes of a session.
type FlushState struct {
	Seq             int64
	Epoch           int
	count, Failures int
	Owed            int64
	Debt            memory.OwedFlush // owed flush to list
	owedAt          time.Time        // time of its last failure
	marked          []int64          // ids of candidates
	Ranges          [][2]int64
	Triggers        []string // triggers of the successful flushes
	Hidden          int      // turns that no search is to find
}

// NewShelf makes an empty one.
func NewShelf() *Shelf { return newShelf(LeaseTTL) }

// NewShelfOfDays is NewShelf for tests over days. Leases last for minutes, and bots send their heartbeats and sweep as seldom: 80,000 of
// each in a day cost seconds.
func NewShelfOfDays() *Shelf { return newShelf(100 * LeaseTTL) }

func newShelf(ttl time.Duration) *Shelf {
	return &Shelf{Mem: memstore.New(ttl), flushed: map[sessions.Key]*FlushState{}, ttl: ttl}
}

func (s *Shelf) store() *Store { return &Store{Shelf: s} }

// of is the flush state of a session; the caller holds the shelf's mutex.
func (s *Shelf) of(key sessions.Key) *FlushState {
	f := s.flushed[key]
	if f == nil {
		f = &FlushState{Epoch: -1}
		s.flushed[key] = f
	}
	return f
}

// Flushes is a copy of the flush state of a session.
func (s *Shelf) Flushes(key sessions.Key) FlushState {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return *s.of(key)
}

func do[T any](s *Store, op string, f func() (T, error)) (T, error) {
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

// Fail has calls fail as f says from now on; nil ends it.
func (s *Store) Fail(f func(op string) error) { s.mu.Lock(); defer s.mu.Unlock(); s.fault = f }

// Lose has the answers of calls get lost as f says from now on.
func (s *Store) Lose(f func(op string) error) { s.mu.Lock(); defer s.mu.Unlock(); s.after = f }

// Times makes a fault of the first n calls of op.
func Times(n int, op string, err error) func(string) error {
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

// Called counts the calls of op so far.
func (s *Store) Called(op string) int {
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

// UnderWay is the number of calls that did not return yet.
func (s *Store) UnderWay() int { s.mu.Lock(); defer s.mu.Unlock(); return s.open }

type none struct{}

// Beat implements sessions.Stores.
func (s *Store) Beat(ctx context.Context, o sessions.ReplicaID) (time.Time, error) {
	return do(s, "beat", func() (time.Time, error) { return s.Mem.Leases.Beat(ctx, o) })
}

// LeaseOf implements sessions.Stores.
func (s *Store) LeaseOf(ctx context.Context, k sessions.Key) (sessions.Lease, error) {
	return s.Mem.Cards.LeaseOf(ctx, k)
}

// Acquire implements sessions.Stores.
func (s *Store) Acquire(ctx context.Context, k sessions.Key, o sessions.ReplicaID) (sessions.Lease, error) {
	return do(s, "acquire", func() (sessions.Lease, error) { return s.Mem.Leases.Acquire(ctx, k, o) })
}

// Rest implements sessions.Stores.
func (s *Store) Rest(ctx context.Context, o sessions.ReplicaID, keys []sessions.Key, rest, unflushed time.Duration) ([]sessions.Key, error) {
	return do(s, "rest", func() ([]sessions.Key, error) { return s.Mem.Leases.Rest(ctx, o, keys, rest, unflushed) })
}

// Resign implements sessions.Stores.
func (s *Store) Resign(ctx context.Context, o sessions.ReplicaID) (int, error) {
	return do(s, "resign", func() (int, error) { return s.Mem.Leases.Resign(ctx, o) })
}

// Accept implements sessions.Inbox.
func (s *Store) Accept(ctx context.Context, o sessions.ReplicaID, k sessions.Key, m sessions.Message) (sessions.Accepted, error) {
	return do(s, "accept", func() (sessions.Accepted, error) { return s.Mem.Inbox.Accept(ctx, o, k, m) })
}

// AcceptHere implements sessions.Inbox.
func (s *Store) AcceptHere(
	ctx context.Context, o sessions.ReplicaID, k sessions.Key, m sessions.Message, among []sessions.Key,
) (sessions.Accepted, error) {
	return do(s, "accept", func() (sessions.Accepted, error) { return s.Mem.Inbox.AcceptHere(ctx, o, k, m, among) })
}

// LearnIDs implements sessions.Inbox.
func (s *Store) LearnIDs(ctx context.Context, m sessions.Message) error {
	_, err := do(s, "learn", func() (none, error) { return none{}, s.Mem.Inbox.LearnIDs(ctx, m) })
	return err
}

// LinkedIDs implements sessions.Inbox.
func (s *Store) LinkedIDs(ctx context.Context, robot sessions.RobotCode, id sessions.UserID) ([]sessions.UserID, error) {
	return s.Mem.Inbox.LinkedIDs(ctx, robot, id)
}

// Pending implements sessions.Inbox.
func (s *Store) Pending(ctx context.Context, key sessions.Key, limit int) ([]sessions.Event, error) {
	return do(s, "pending", func() ([]sessions.Event, error) { return s.Mem.Inbox.Pending(ctx, key, limit) })
}

// Revive implements sessions.Inbox.
func (s *Store) Revive(ctx context.Context, under []sessions.Lease) ([]sessions.Key, error) {
	return do(s, "revive", func() ([]sessions.Key, error) { return s.Mem.Inbox.Revive(ctx, under) })
}

// Waiting implements sessions.Inbox.
func (s *Store) Waiting(ctx context.Context, o sessions.ReplicaID, limit int) ([]sessions.Key, error) {
	return do(s, "waiting", func() ([]sessions.Key, error) { return s.Mem.Inbox.Waiting(ctx, o, limit) })
}

// Listen implements sessions.Inbox.
func (s *Store) Listen(ctx context.Context, o sessions.ReplicaID, wake func(sessions.Key)) error {
	return s.Mem.Inbox.Listen(ctx, o, wake)
}
