package lease

import (
	"context"
	"ebb/sessions"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Leases keep what one replica holds: they beat its heart, remember the leases it was given, and stop trusting them
// before anybody else may take them.
//
// A lease stands while the heartbeat is younger than the time to live, by the database's clock. This side can't see
// that clock, so it counts from before its last successful beat was sent: it distrusts too early, never too late. The
// fencing by term would refuse a late write anyway; the trust only saves work that could not be written.
type Holder struct {
	store sessions.Leaser
	owner sessions.ReplicaID
	ttl   time.Duration

	mu    sync.Mutex
	held  map[sessions.Key]heldLease
	alive time.Time // when the last beat that came through was sent
	since time.Time // when the first beat that Keep missed was sent; zero: none was missed since one came through
	clock clock
}

// heldLease is a lease with the time of its last use.
type heldLease struct {
	sessions.Lease
	used time.Time
}

// clock is that of the storage, as it was read once, and goes on by this machine's monotonic one: whatever the time of
// day is here, and whoever sets it meanwhile, it tells what the storage would, but for half of the way there and back.
type clock struct{ theirs, ours time.Time }

func (c clock) now() time.Time {
	if c.theirs.IsZero() {
		return time.Now()
	}
	return c.theirs.Add(time.Since(c.ours))
}

// NewLeases returns the leases of owner, none yet. ttl is the time to live that the store counts with.
func NewHolder(store sessions.Leaser, owner sessions.ReplicaID, ttl time.Duration) *Holder {
	return &Holder{store: store, owner: owner, ttl: ttl, held: map[sessions.Key]heldLease{}}
}

// Owner is the replica whose leases these are.
func (l *Holder) Owner() sessions.ReplicaID { return l.owner }

// Beat says once that the replica is alive; Keep does it again and again. A replica beats before it accepts anything. Where
// the time to live passed between two beats, another replica may hold the leases by now: they are forgotten, and the storage
// is asked for each again.
func (l *Holder) Beat(ctx context.Context) error {
	sent := time.Now()
	theirs, err := l.store.Beat(ctx, l.owner)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alive.Before(sent) { // beats may overtake each other
		// The storage counts by its own clock. Ours stands still while the machine is suspended.
		if theirs.Sub(l.clock.theirs) >= l.ttl {
			clear(l.held)
		}
		l.alive, l.clock = sent, clock{theirs: theirs, ours: sent.Add(time.Since(sent) / 2)}
	}
	return nil
}

// Now is the storage's clock, as near as a beat can tell it. What the storage wrote the time on is compared with it, and
// with no other: the clocks of replicas may be minutes apart. Before the first beat it is this machine's.
func (l *Holder) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock.now()
}

// Keep beats until ctx ends, several times within the time to live. A beat that hangs holds up none after it: where a
// connection is dead, or each answer takes seconds, the next one may well come through.
func (l *Holder) Keep(ctx context.Context) {
	t := time.NewTicker(l.ttl / 4)
	defer t.Stop()
	var beats sync.WaitGroup
	defer beats.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		beats.Go(func() { l.pulse(ctx) })
	}
}

// pulse is one of the beats of Keep. It logs each one that was missed, and the first that comes through after that: who reads
// the log of an outage looks for its end.
func (l *Holder) pulse(ctx context.Context) {
	one, stop := context.WithTimeout(ctx, l.ttl) // later it would say nothing any more
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
	case err != nil && l.since.IsZero() && l.alive.Before(sent): // else one that was sent later has come through
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

// Trusted reports whether the leases can still be ours.
func (l *Holder) Trusted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.alive) < l.ttl
}

// Get returns the session's lease, from memory where it is known.
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

// Learn notes a lease that came with an accepted message; one of another owner is forgotten.
func (l *Holder) Learn(lease sessions.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held, ok := l.held[lease.Key]; ok && lease.Term < held.Term {
		return // a slow answer tells of an older term
	}
	if lease.Owner == l.owner {
		l.held[lease.Key] = heldLease{lease, time.Now()}
	} else {
		delete(l.held, lease.Key)
	}
}

// Drop forgets the session's lease and returns it, if it was known.
func (l *Holder) Drop(key sessions.Key) (sessions.Lease, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h, ok := l.held[key]
	delete(l.held, key)
	return h.Lease, ok
}

// restBatch is how many leases are given up in one statement.
const restBatch = 500

// Rest gives up the leases of sessions at rest, as [Leaser.Rest] does: of those that were not used for as long and are not
// busy. A replica holds no more leases than it has active sessions. It returns how many it gave up.
func (l *Holder) Rest(ctx context.Context, rest, unflushed time.Duration, busy func(sessions.Key) bool) (int, error) {
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
		if err != nil {
			return n, err
		}
		l.mu.Lock()
		for _, key := range freed {
			if !l.held[key].used.After(since) { // else the next write finds out that it is lost
				delete(l.held, key)
			}
		}
		l.mu.Unlock()
		n += len(freed)
	}
	return n, nil
}

// Check forgets the session's lease where err says that it is lost, and returns err.
func (l *Holder) Check(key sessions.Key, err error) error {
	if errors.Is(err, sessions.ErrLeaseLost) {
		l.mu.Lock()
		delete(l.held, key)
		l.mu.Unlock()
	}
	return err
}

// Holds reports whether the session's lease is in memory.
func (l *Holder) Holds(key sessions.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.held[key]
	return ok
}

// Held is the number of leases in memory.
func (l *Holder) Held() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}
