package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"ebb/sessions"
	"ebb/sessions/lease"
	"ebb/sessions/memstore"
)

const ttl = 5 * time.Second

// slowBeats is a storage that takes its time with a heartbeat, or does not take it at all.
type slowBeats struct {
	memstore.Leases
	mem   *memstore.Store
	mu    sync.Mutex
	delay time.Duration
	skew  time.Duration // offset of the storage's clock
	err   error
}

func (s *slowBeats) Beat(ctx context.Context, o sessions.ReplicaID) (time.Time, error) {
	s.mu.Lock()
	delay, skew, err := s.delay, s.skew, s.err
	s.mu.Unlock()
	if err != nil {
		return time.Time{}, err
	}
	now, err := s.Leases.Beat(ctx, o)
	if err != nil {
		return time.Time{}, err
	}
	select {
	case <-time.After(delay):
		return now.Add(skew), nil
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
}

func over(m *memstore.Store, delay, skew time.Duration) *slowBeats {
	return &slowBeats{Leases: m.Leases, mem: m, delay: delay, skew: skew}
}

func (s *slowBeats) set(delay time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay, s.err = delay, err
}

// opened makes a session in a store.
func opened(t *testing.T, m *memstore.Store, owner sessions.ReplicaID) sessions.Accepted {
	t.Helper()
	a, err := m.Inbox.Accept(t.Context(), owner, "k", sessions.Message{ID: sessions.MessageID(owner), Text: "words"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// While this side trusts its lease, no other replica can take it: whatever the delays and losses of heartbeats.
func TestTrustEndsBeforeAnotherMayTake(t *testing.T) {
	t.Parallel()
	for delay := time.Duration(0); delay < ttl/2; delay += 600 * time.Millisecond {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := over(memstore.New(ttl), delay, 0)
				l := lease.NewHolder(s, "a", ttl)
				if l.Trusted() {
					t.Error("trusted before the first heartbeat")
				}
				if err := l.Beat(t.Context()); err != nil {
					t.Fatal(err)
				}
				held := opened(t, s.mem, "a").Lease
				l.Learn(held)
				if older := (sessions.Lease{Key: held.Key, Owner: held.Owner, Term: held.Term - 1}); !l.Trusted() || !l.Owns(held) || l.Owns(older) {
					t.Error("not trusted after a heartbeat, or under an older term")
				}
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				wg.Go(func() { l.Keep(ctx) })
				<-time.After(7 * time.Second)
				if !l.Trusted() {
					t.Error("not trusted while it beats")
				}
				s.set(0, errors.New("away"))
				for end := time.Now().Add(3 * ttl); time.Now().Before(end); <-time.After(10 * time.Millisecond) {
					trusted := l.Trusted()
					if _, err := s.Acquire(t.Context(), "k", "b"); err == nil {
						if trusted {
							t.Error("b took a lease that a trusts")
						}
						break
					}
				}
				if l.Trusted() || l.Owns(held) {
					t.Error("still trusted long after the last heartbeat")
				}
				s.set(0, nil)
				<-time.After(ttl)
				if !l.Trusted() || l.Owns(held) {
					t.Error("not trusted again when the storage is back, or with a lease that others may have taken")
				}
				stop()
				wg.Wait()
			})
		})
	}
}

// The storage's clock is known between heartbeats too, for any difference from this machine's, to within half of the
// way to the storage and back.
func TestNowIsTheStoragesClock(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{7 * time.Minute, -7 * time.Minute} {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := over(memstore.New(ttl), 100*time.Millisecond, skew)
				l := lease.NewHolder(s, "a", ttl)
				off := func() time.Duration { return l.Now().Sub(time.Now().Add(skew)) }
				if off() != -skew {
					t.Errorf("before the first heartbeat the clock is %v from this machine's", off()+skew)
				}
				if err := l.Beat(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, wait := range []time.Duration{0, time.Second, time.Hour} {
					<-time.After(wait)
					if off().Abs() > 50*time.Millisecond {
						t.Errorf("%v after the heartbeat the clock is %v from the storage's", wait, off())
					}
				}
				if l.Trusted() {
					t.Error("trusted an hour after the last heartbeat")
				}
			})
		})
	}
}

// keepHolder returns a holder that sends heartbeats until stop.
func keepHolder(t *testing.T, ctx context.Context, s sessions.Leases) (l *lease.Holder, stop func()) {
	t.Helper()
	l = lease.NewHolder(s, "a", ttl)
	if err := l.Beat(ctx); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { l.Keep(ctx) })
	return l, func() {
		cancel()
		wg.Wait()
	}
}

// hangOnce makes the next heartbeat of a holder hang, and no other.
func (s *slowBeats) hangOnce() {
	s.set(time.Hour, nil)
	<-time.After(ttl/4 + time.Millisecond)
	s.set(0, nil)
}

// A heartbeat that hangs holds up none after it: a connection may be dead while others live.
func TestHangingHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := over(memstore.New(ttl), 0, 0)
		l, stop := keepHolder(t, t.Context(), s)
		s.hangOnce()
		for end := time.Now().Add(3 * ttl); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
			if !l.Trusted() {
				t.Fatal("one heartbeat that hangs took the trust from the leases")
			}
		}
		stop()
	})
}

// The end of an outage is in the log once, with its length; one heartbeat that hangs while others succeed is none.
func TestEndOfAnOutageIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := over(memstore.New(ttl), 0, 0)
		var text strings.Builder
		_, stop := keepHolder(t, zerolog.New(zerolog.SyncWriter(&text)).WithContext(t.Context()), s)
		s.hangOnce()
		<-time.After(2 * ttl)
		s.set(0, errors.New("away"))
		<-time.After(ttl) // four are missed
		s.set(0, nil)
		<-time.After(2 * ttl)
		stop()
		if n := strings.Count(text.String(), "Heartbeat missed"); n != 5 {
			t.Errorf("%d heartbeats missed, want the one that hung and four of the outage:\n%s", n, &text)
		}
		if n := strings.Count(text.String(), "Database answers again"); n != 1 ||
			!strings.Contains(text.String(), fmt.Sprintf(`"level":"info","away_ms":%d,"message":"Database answers again"`, ttl.Milliseconds())) {
			t.Errorf("the end of the outage of %s is logged %d times:\n%s", ttl, n, &text)
		}
	})
}

// counting counts the calls of the storage.
type counting struct {
	memstore.Leases
	mem      *memstore.Store
	acquires int
}

func (c *counting) Acquire(ctx context.Context, k sessions.Key, o sessions.ReplicaID) (sessions.Lease, error) {
	c.acquires++
	return c.Leases.Acquire(ctx, k, o)
}

// A lease is asked for once, remembered, and forgotten when it is lost or another owner's.
func TestLeasesAreRemembered(t *testing.T) {
	t.Parallel()
	m := memstore.New(ttl)
	s := &counting{Leases: m.Leases, mem: m}
	l := lease.NewHolder(s, "a", ttl)
	if _, err := l.Get(t.Context(), "k"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("lease of no session: %v", err)
	}
	if err := l.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	opened(t, s.mem, "a")
	s.acquires = 0
	first, err := l.Get(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.Get(t.Context(), "k")
	if err != nil || first != second || s.acquires != 1 || l.Count() != 1 {
		t.Errorf("leases %+v and %+v (%v) with %d questions", first, second, err, s.acquires)
	}
	if err := l.Check("k", errPassing); !errors.Is(err, errPassing) || l.Count() != 1 {
		t.Errorf("Check gave %v and left %d leases", err, l.Count())
	}
	if err := l.Check("k", fmt.Errorf("commit: %w", sessions.ErrLeaseLost)); !errors.Is(err, sessions.ErrLeaseLost) || l.Count() != 0 {
		t.Errorf("Check gave %v and left %d leases", err, l.Count())
	}
	l.Learn(first)
	l.Learn(sessions.Lease{Key: "k", Owner: "b", Term: first.Term + 1})
	if l.Count() != 0 {
		t.Error("a lease that another replica holds is still remembered")
	}
}

// No two sessions share a key, and the parts of a key can be separated (ids hold slashes and signs).
func TestKeysAreDistinct(t *testing.T) {
	t.Parallel()
	part := rapid.StringOfN(rapid.SampledFrom([]rune("aA/%2F$:+= 中")), 1, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		draw := func(n string) [3]string {
			p := [3]string{part.Draw(t, n), part.Draw(t, n), ""}
			if rapid.Bool().Draw(t, n) {
				p[2] = part.Draw(t, n)
			}
			return p
		}
		key := func(p [3]string) sessions.Key {
			return sessions.NewKey(sessions.RobotCode(p[0]), sessions.ConversationID(p[1]), sessions.UserID(p[2]))
		}
		a, b := draw("a"), draw("b")
		if (a == b) != (key(a) == key(b)) {
			t.Fatalf("%q and %q have the keys %s and %s", a, b, key(a), key(b))
		}
	})
}

// A machine that was suspended has a clock that stood still: only the storage's says that others may have taken the leases.
// They are asked for again with the first beat after that.
func TestSuspendedMachineForgetsItsLeases(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{0, ttl} {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := over(memstore.New(ttl), 0, 0)
				l := lease.NewHolder(s, "a", ttl)
				if err := l.Beat(t.Context()); err != nil {
					t.Fatal(err)
				}
				l.Learn(opened(t, s.mem, "a").Lease)
				s.mem.Expire("a") // the storage's clock goes on
				if _, err := s.Beat(t.Context(), "b"); err != nil {
					t.Fatal(err)
				}
				if _, err := s.Acquire(t.Context(), "k", "b"); err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Second)
				s.skew = skew
				if err := l.Beat(t.Context()); err != nil {
					t.Fatal(err)
				}
				_, err := l.Get(t.Context(), "k")
				if forgot := errors.Is(err, sessions.ErrLeaseHeld); forgot != (skew > 0) {
					t.Errorf("after %v by the storage's clock the lease is given out with error %v", skew, err)
				}
			})
		})
	}
}

// Work that meets a lost lease begins again under the current one, at most once more than erasures may cut it. Other errors, and
// a lease of another replica, end it.
func TestDoBeginsAgainUnderTheCurrentLease(t *testing.T) {
	t.Parallel()
	m := memstore.New(ttl)
	s := &counting{Leases: m.Leases, mem: m}
	l := lease.NewHolder(s, "a", ttl)
	if err := l.Beat(t.Context()); err != nil {
		t.Fatal(err)
	}
	held := opened(t, s.mem, "a").Lease
	l.Learn(sessions.Lease{Key: held.Key, Owner: held.Owner, Term: held.Term - 1}) // its term ended
	var terms []int64
	work := func(lost int) func(sessions.Lease) error {
		terms = nil
		return func(one sessions.Lease) error {
			if terms = append(terms, one.Term); len(terms) <= lost {
				return fmt.Errorf("write: %w", sessions.ErrLeaseLost)
			}
			return nil
		}
	}
	if err := l.Do(t.Context(), held.Key, work(1)); err != nil || len(terms) != 2 || terms[1] != held.Term || !l.Owns(held) {
		t.Errorf("work ran under the terms %v with %v, want an ended one and %d", terms, err, held.Term)
	}
	if err := l.Do(t.Context(), held.Key, work(100)); !errors.Is(err, sessions.ErrLeaseLost) || len(terms) != sessions.MaxCuts+1 || l.Count() != 0 {
		t.Errorf("work that is lost each time ran %d times with %v and left %d leases", len(terms), err, l.Count())
	}
	runs := 0
	if err := l.Do(t.Context(), held.Key, func(sessions.Lease) error { runs++; return errPassing }); !errors.Is(err, errPassing) || runs != 1 {
		t.Errorf("work that fails otherwise ran %d times with %v", runs, err)
	}
	l.Drop(held.Key)
	if err := s.Release(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Beat(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), held.Key, "b"); err != nil {
		t.Fatal(err)
	}
	if err := l.Do(t.Context(), held.Key, work(0)); !errors.Is(err, sessions.ErrLeaseHeld) || len(terms) != 0 {
		t.Errorf("with another owner work ran %d times with %v", len(terms), err)
	}
}

// breaking frees the first lease of a list, and fails then.
type breaking struct{ memstore.Leases }

func (b breaking) Rest(_ context.Context, _ sessions.ReplicaID, keys []sessions.Key, _, _ time.Duration) ([]sessions.Key, error) {
	return keys[:1], errPassing
}

// Leases that rested before an error of the storage are forgotten: another replica may have them.
func TestLeasesThatRestedBeforeAnErrorAreForgotten(t *testing.T) {
	t.Parallel()
	l := lease.NewHolder(breaking{memstore.New(ttl).Leases}, "a", ttl)
	l.Learn(sessions.Lease{Key: "k1", Owner: "a", Term: 1})
	l.Learn(sessions.Lease{Key: "k2", Owner: "a", Term: 1})
	n, err := l.ReleaseIdle(t.Context(), 0, 0, func(sessions.Key) bool { return false })
	if n != 1 || l.Count() != 1 || !errors.Is(err, errPassing) {
		t.Errorf("%d leases rested and %d are left, after %v", n, l.Count(), err)
	}
}
