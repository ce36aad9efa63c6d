package lease

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sessions/periodic"
)

// Store has the leases of all replicas. See [sessions.Leases].
type Store interface {
	Beat(ctx context.Context, owner sessions.ReplicaID) (time.Time, error)
	Acquire(ctx context.Context, key sessions.Key, owner sessions.ReplicaID) (sessions.Lease, error)
	Rest(ctx context.Context, owner sessions.ReplicaID, keys []sessions.Key, rest, unflushed time.Duration) ([]sessions.Key, error)
}

// Holder holds the leases of one replica and sends its heartbeat.
//
// A lease is valid while the heartbeat is younger than the time to live by the database's clock. The holder counts
// from the send time of its last successful heartbeat: it distrusts too early, never too late. The term would refuse a
// late write anyway; the trust only saves work.
type Holder struct {
	store Store
	owner sessions.ReplicaID
	ttl   time.Duration

	mu    sync.Mutex
	held  map[sessions.Key]heldLease
	alive time.Time // send time of the last successful heartbeat
	since time.Time // send time of the first heartbeat missed since a success; zero for none
	clock clock
}

type heldLease struct {
	sessions.Lease
	used time.Time
}

// clock is the storage's clock, continued by the local monotonic one: changes of the local time have no effect. The
// error is half of a round trip.
type clock struct{ theirs, ours time.Time }

func (c clock) now() time.Time {
	if c.theirs.IsZero() {
		return time.Now()
	}
	return c.theirs.Add(time.Since(c.ours))
}

// NewHolder returns the leases of owner, initially none. ttl is the store's time to live.
func NewHolder(store Store, owner sessions.ReplicaID, ttl time.Duration) *Holder {
	return &Holder{store: store, owner: owner, ttl: ttl, held: map[sessions.Key]heldLease{}}
}

// Owner is the replica of the leases.
func (l *Holder) Owner() sessions.ReplicaID { return l.owner }

// Beat sends one heartbeat. A replica sends one before it accepts messages. After a gap of the time to live, another
// replica may hold the leases: they are forgotten and acquired again.
func (l *Holder) Beat(ctx context.Context) error {
	sent := time.Now()
	theirs, err := l.store.Beat(ctx, l.owner)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alive.Before(sent) { // heartbeats can overtake
		// The storage's clock decides: the local one stops while the machine is suspended.
		if theirs.Sub(l.clock.theirs) >= l.ttl {
			clear(l.held)
		}
		l.alive, l.clock = sent, clock{theirs: theirs, ours: sent.Add(time.Since(sent) / 2)}
	}
	return nil
}

// Now is the storage's clock, for comparison with stored times: clocks of replicas may differ by minutes. Before the
// first heartbeat it is the local clock.
func (l *Holder) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock.now()
}

// Keep sends heartbeats until ctx ends, several within the time to live. A hanging one does not delay the next, which
// may succeed on another connection.
func (l *Holder) Keep(ctx context.Context) {
	var beats sync.WaitGroup
	defer beats.Wait()
	periodic.Run(ctx, periodic.Task{Interval: l.ttl / 4, Do: func(context.Context) error {
		beats.Go(func() {
			guard.Run(ctx, guard.Task, func() { l.sendHeartbeat(ctx) })
		})
		return nil
	}})
}

// sendHeartbeat logs failures, and the end of an outage.
func (l *Holder) sendHeartbeat(ctx context.Context) {
	one, stop := context.WithTimeout(ctx, l.ttl) // later it would be worthless
	defer stop()
	sent := time.Now()
	err := l.Beat(one)
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	var away time.Duration
	switch {
	case err == nil && !l.since.IsZero():
		away, l.since = time.Since(l.since), time.Time{}
	case err != nil && l.since.IsZero() && l.alive.Before(sent): // otherwise a later heartbeat succeeded
		l.since = sent
	}
	l.mu.Unlock()
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Heartbeat missed")
	}
	if away > 0 {
		zerolog.Ctx(ctx).Info().Dur("away_ms", away).Msg("Database answers again")
	}
}

// Trusted reports whether the leases can still be valid.
func (l *Holder) Trusted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.alive) < l.ttl
}

// Get returns the session's lease, from memory if known.
func (l *Holder) Get(ctx context.Context, key sessions.Key) (sessions.Lease, error) {
	l.mu.Lock()
	h, ok := l.held[key]
	if ok {
		h.used = time.Now()
		l.held[key] = h
	}
	l.mu.Unlock()
	if ok {
		return h.Lease, nil
	}
	lease, err := l.store.Acquire(ctx, key, l.owner)
	if err != nil {
		return sessions.Lease{}, err
	}
	l.mu.Lock()
	l.held[key] = heldLease{lease, time.Now()}
	l.mu.Unlock()
	return lease, nil
}

// maxTries bounds the leases of one piece of work: erasures spare it after [sessions.MaxCuts] of them.
const maxTries = sessions.MaxCuts + 1

// Do runs work under the session's lease. A lease that is lost is forgotten; work then begins again under the one that
// is acquired next, up to a bound. The error is that of the last try or of its acquisition: [sessions.ErrLeaseHeld]
// if another replica has the session.
func (l *Holder) Do(ctx context.Context, key sessions.Key, work func(sessions.Lease) error) error {
	for try := 1; ; try++ {
		lease, err := l.Get(ctx, key)
		if err != nil {
			return err
		}
		err = l.Check(key, work(lease))
		if !errors.Is(err, sessions.ErrLeaseLost) || try == maxTries || ctx.Err() != nil {
			return err
		}
	}
}

// Learn stores a lease that came with an accepted message, and forgets one of another owner.
func (l *Holder) Learn(lease sessions.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held, ok := l.held[lease.Key]; ok && lease.Term < held.Term {
		return // a late answer
	}
	if lease.Owner == l.owner {
		l.held[lease.Key] = heldLease{lease, time.Now()}
	} else {
		delete(l.held, lease.Key)
	}
}

// Drop forgets the session's lease.
func (l *Holder) Drop(key sessions.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, key)
}

const restBatch = 500

// ReleaseIdle releases leases that were unused for the given time and are not busy, see [sessions.Leases]. It returns
// their number.
func (l *Holder) ReleaseIdle(ctx context.Context, rest, unflushed time.Duration, busy func(sessions.Key) bool) (int, error) {
	var idle []sessions.Key
	since := time.Now().Add(-rest)
	l.mu.Lock()
	for key, h := range l.held {
		if !h.used.After(since) {
			idle = append(idle, key)
		}
	}
	l.mu.Unlock()
	n := 0
	for batch := range slices.Chunk(slices.DeleteFunc(idle, busy), restBatch) {
		freed, err := l.store.Rest(ctx, l.owner, batch, rest, unflushed)
		l.mu.Lock()
		for _, key := range freed {
			if !l.held[key].used.After(since) { // otherwise the next write fails with ErrLeaseLost
				delete(l.held, key)
			}
		}
		l.mu.Unlock()
		if n += len(freed); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Check forgets the session's lease if err is ErrLeaseLost, and returns err.
func (l *Holder) Check(key sessions.Key, err error) error {
	if errors.Is(err, sessions.ErrLeaseLost) {
		l.Drop(key)
	}
	return err
}

// Held returns the session's lease if it is in memory.
func (l *Holder) Held(key sessions.Key) (sessions.Lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.held[key]
	return h.Lease, ok
}

// Holds reports whether the session's lease is in memory.
func (l *Holder) Holds(key sessions.Key) bool {
	_, ok := l.Held(key)
	return ok
}

// Owns reports whether a lease is in memory under its term and can still be valid.
func (l *Holder) Owns(lease sessions.Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[lease.Key].Lease == lease && time.Since(l.alive) < l.ttl
}

// Count is the number of leases in memory.
func (l *Holder) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}
