package slot

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ebb/sessions/llm"
)

// For any suspects and other turns, in any order: no more suspects run together than the width of each allows. A suspect of
// width 1 runs beside no turn at all. Every turn begins.
func TestSuspectsKeepTheirWidths(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		widths := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 20).Draw(rt, "widths")
		starts := rapid.SliceOfN(rapid.IntRange(0, 4), len(widths), len(widths)).Draw(rt, "starts")
		long := rapid.SliceOfN(rapid.IntRange(1, 8), len(widths), len(widths)).Draw(rt, "seconds")
		quits := rapid.SliceOfN(rapid.IntRange(0, 20), len(widths), len(widths)).Draw(rt, "leave the line")
		var broken []string
		began := 0
		synctest.Test(t, func(*testing.T) {
			s := &Suspects{Closed: make(chan struct{})}
			var mu sync.Mutex
			var running []int
			check := func() {
				suspects, least := 0, math.MaxInt
				for _, w := range running {
					if w > 0 {
						suspects++
						least = min(least, w)
					}
				}
				if suspects > least || least == 1 && len(running) > 1 {
					broken = append(broken, "too many run")
				}
			}
			for i, w := range widths {
				go func() {
					time.Sleep(time.Duration(starts[i]) * time.Second)
					time.Sleep(time.Duration(i) * time.Microsecond) // one at a time
					ctx, stop := context.WithCancel(context.Background())
					defer stop()
					if quits[i] == 0 {
						stop()
					}
					leave, ok := func() {}, false
					if w == 0 {
						leave, ok = s.TryEnter()
					}
					if !ok {
						var err error
						if leave, err = s.Enter(ctx, w, func() {}); err != nil {
							mu.Lock()
							defer mu.Unlock()
							began++
							return
						}
					}
					mu.Lock()
					running = append(running, w)
					check()
					began++
					mu.Unlock()
					time.Sleep(time.Duration(long[i]) * time.Second)
					mu.Lock()
					running = slices.Delete(running, slices.Index(running, w), slices.Index(running, w)+1)
					mu.Unlock()
					leave()
				}()
			}
			time.Sleep(time.Duration(len(widths)) * (2*suspectAlone + 10*time.Second))
			synctest.Wait()
		})
		if len(broken) > 0 || began != len(widths) {
			rt.Fatalf("%q, and %d of %d turns began", broken, began, len(widths))
		}
	})
}

// A suspect that runs alone holds other turns up for a while only, and so do other turns that hang.
func TestHangingTurnsHoldUpSuspectsForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Suspects{Closed: make(chan struct{})}
		hangs, ok := s.TryEnter()
		want(t, "a turn without suspects begins", ok, true)
		joined := 0
		enter := func(width int) (time.Duration, func()) {
			began := time.Now()
			leave, err := s.Enter(t.Context(), width, func() { joined++ })
			if err != nil {
				t.Error(err)
			}
			return time.Since(began), leave
		}
		waited, beside := enter(1)
		want(t, "wait for a turn that hangs", waited, suspectAlone)
		waited, more := enter(0)
		want(t, "wait for a suspect beside another turn", waited, 0)
		want(t, "suspects that are known to run beside others", joined, 1)
		hangs()
		beside()
		more()
		_, alone := enter(1)
		_, ok = s.TryEnter()
		want(t, "a turn begins beside a suspect", ok, false)
		waited, other := enter(0)
		want(t, "wait for a suspect that hangs", waited, suspectAlone)
		want(t, "suspects that are known to run beside others", joined, 2)
		other()
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		_, err := s.Enter(ctx, 4, func() {})
		want(t, "another suspect begins meanwhile", err, error(context.DeadlineExceeded))
		alone()
		waited, wide := enter(4)
		want(t, "wait for a place that is free", waited, 0)
		wide()
	})
}

// A suspect that others joined before its last death runs alone until it ends, however long.
func TestSuspectRunsAloneAfterADeathBesideOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Suspects{Closed: make(chan struct{})}
		plain, _ := s.TryEnter()
		time.AfterFunc(3*suspectAlone, plain)
		began := time.Now()
		leave, err := s.Enter(t.Context(), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "wait for the last other turn", time.Since(began), 3*suspectAlone)
		time.AfterFunc(5*suspectAlone, leave)
		other, err := s.Enter(t.Context(), 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "wait for the end of the suspect", time.Since(began), 8*suspectAlone)
		other()
	})
}

// The drain ends all waits.
func TestDrainEndsTheLineOfSuspects(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{})
	s := &Suspects{Closed: closed}
	leave, err := s.Enter(t.Context(), 1, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer leave()
	close(closed)
	if _, err := s.Enter(t.Context(), 1, func() {}); !errors.Is(err, llm.ErrStop) {
		t.Errorf("the wait ends with %v", err)
	}
}
