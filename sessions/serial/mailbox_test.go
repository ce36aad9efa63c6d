package serial_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"ebb/sessions"
	"ebb/sessions/serial"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errPassing = errors.New("trouble that passes")

// A wake-up is never lost and work of one session never overlaps, whatever wakes when and however the work ends.
func TestNoWakeUpIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		keys := rapid.IntRange(1, 3).Draw(rt, "sessions")
		wakes := rapid.SliceOfN(rapid.IntRange(0, keys-1), 1, 40).Draw(rt, "wakes")
		ends := rapid.SliceOfN(rapid.IntRange(0, 4), 1, 40).Draw(rt, "ends")
		var inbox [3]atomic.Int32 // waiting messages of each session
		var busy [3]atomic.Int32
		var run atomic.Int32
		var m *serial.Mailboxes
		m = serial.NewMailboxes(t.Context(), func(_ context.Context, key sessions.Key) (bool, error) {
			i := int(key[0] - '0')
			if busy[i].Add(1) > 1 {
				panic("two works in one session")
			}
			defer busy[i].Add(-1)
			n := inbox[i].Load()
			switch runs := int(run.Add(1)); ends[runs%len(ends)] {
			case 0:
				if runs > 100 {
					break // enough came while it worked
				}
				inbox[i].Add(1) // something arrives while it works
				m.Wake(key)
			case 1:
				if n > 1 { // takes one and says that there is more
					inbox[i].Add(-1)
					return true, nil
				}
			}
			inbox[i].Add(-n)
			return false, nil
		})
		var wg sync.WaitGroup
		for _, i := range wakes {
			wg.Go(func() {
				inbox[i].Add(1)
				m.Wake(sessions.Key(fmt.Sprint(i)))
			})
		}
		wg.Wait()
		for m.Live() > 0 {
			if err := m.Wait(t.Context()); err != nil {
				rt.Fatal(err)
			}
		}
		for i := range inbox {
			if n := inbox[i].Load(); n != 0 {
				rt.Fatalf("%d messages of session %d were never looked at", n, i)
			}
		}
	})
}

// k wake-ups during a run cost exactly one more (P40).
func TestWakeUpsCoalesce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int32
		hold := make(chan struct{})
		m := serial.NewMailboxes(t.Context(), func(context.Context, sessions.Key) (bool, error) {
			runs.Add(1)
			<-hold
			return false, nil
		})
		m.Wake("a")
		synctest.Wait()
		for range 100 {
			m.Wake("a")
		}
		close(hold)
		synctest.Wait()
		if n := runs.Load(); n != 2 {
			t.Errorf("the work ran %d times, want 2", n)
		}
		if m.Live() != 0 {
			t.Error("an idle session has a goroutine")
		}
	})
}

// How the work ends decides when it runs again.
func TestResultOfWorkDecidesItsNextRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ends func(run int) (bool, error)
		runs int           // within a minute
		last time.Duration // when the last one began, at the earliest
	}{
		"done":               {func(int) (bool, error) { return false, nil }, 1, 0},
		"more, three times":  {func(run int) (bool, error) { return run < 3, nil }, 3, 0},
		"held elsewhere":     {func(int) (bool, error) { return true, fmt.Errorf("x: %w", sessions.ErrLeaseHeld) }, 1, 0},
		"no such session":    {func(int) (bool, error) { return true, fmt.Errorf("x: %w", sessions.ErrNotFound) }, 1, 0},
		"trouble, twice":     {func(run int) (bool, error) { return false, unless(run > 2) }, 3, 150 * time.Millisecond},
		"trouble, ten times": {func(run int) (bool, error) { return false, unless(run > 10) }, 11, 5550 * time.Millisecond},
		"panic, once": {func(run int) (bool, error) {
			if run == 1 {
				panic("in the work")
			}
			return false, nil
		}, 2, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				runs, began := 0, time.Now()
				var last time.Duration
				m := serial.NewMailboxes(t.Context(), func(context.Context, sessions.Key) (bool, error) {
					runs++
					last = time.Since(began)
					return c.ends(runs)
				})
				m.Wake("a")
				<-time.After(time.Minute)
				m.Close(func(sessions.Key) {})
				if err := m.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				if runs != c.runs || last < c.last || last > c.last+10*time.Second {
					t.Errorf("%d runs, the last after %s; want %d, not before %s", runs, last, c.runs, c.last)
				}
			})
		})
	}
}

func unless(fine bool) error {
	if fine {
		return nil
	}
	return errPassing
}

// One session that panics or hangs delays no other.
func TestSessionsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		done := map[sessions.Key]bool{}
		var mu sync.Mutex
		m := serial.NewMailboxes(t.Context(), func(_ context.Context, key sessions.Key) (bool, error) {
			switch key {
			case "hangs":
				<-hold
			case "panics":
				if mu.Lock(); !done[key] {
					done[key] = true
					mu.Unlock()
					panic("no")
				}
				mu.Unlock()
			}
			mu.Lock()
			defer mu.Unlock()
			done[key] = true
			return false, nil
		})
		for _, key := range []sessions.Key{"hangs", "panics", "fine"} {
			m.Wake(key)
		}
		synctest.Wait()
		mu.Lock()
		if !done["fine"] {
			t.Error("the fine session waited")
		}
		mu.Unlock()
		close(hold)
	})
}

// Close lets work finish and starts none; Wait waits for it, but not longer than its context.
func TestCloseAndWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var runs atomic.Int32
		m := serial.NewMailboxes(t.Context(), func(context.Context, sessions.Key) (bool, error) {
			runs.Add(1)
			<-hold
			return true, nil
		})
		m.Wake("a")
		synctest.Wait()
		m.Wake("a")
		m.Close(func(sessions.Key) {})
		m.Close(func(sessions.Key) {})
		m.Wake("b")
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Second, errPassing)
		defer stop()
		if err := m.Wait(ctx); !errors.Is(err, errPassing) {
			t.Errorf("Wait gave %v while work ran", err)
		}
		close(hold)
		if err := m.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if n := runs.Load(); n != 1 {
			t.Errorf("%d runs after Close, want the one that ran", n)
		}
	})
}

// The end of the context ends a pause after trouble.
func TestCancelEndsAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var runs atomic.Int32
		m := serial.NewMailboxes(ctx, func(context.Context, sessions.Key) (bool, error) { runs.Add(1); return false, errPassing })
		m.Wake("a")
		<-time.After(5 * time.Second)
		before := runs.Load()
		cancel()
		if err := m.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := runs.Load(); n != before || m.Live() != 0 {
			t.Errorf("%d runs after the end, %d sessions live", n-before, m.Live())
		}
	})
}

// A lasting fault is logged ever more rarely, and work goes on within a second after it.
func TestLastingFaultsAreLoggedRarely(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logger := zerolog.New(&log)
		over := time.Now().Add(time.Minute)
		var tries int
		var done time.Time
		m := serial.NewMailboxes(logger.WithContext(t.Context()), func(context.Context, sessions.Key) (bool, error) {
			if tries++; time.Now().Before(over) {
				return false, errPassing
			}
			done = time.Now()
			return false, nil
		})
		m.Wake("k")
		if err := m.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if late := done.Sub(over); late > time.Second {
			t.Errorf("work went on %s after the trouble, want within a second", late)
		}
		if tries < 60 || tries > 90 {
			t.Errorf("%d tries in a minute, want about one a second", tries)
		}
		if lines := bytes.Count(log.Bytes(), []byte("\n")); lines != 7 { // 1, 2, 4, … 64
			t.Errorf("%d lines for %d tries, want 7:\n%s", lines, tries, &log)
		}
	})
}
