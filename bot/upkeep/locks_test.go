package upkeep

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ebb/sessions"
)

// Work that asks again at once does not overtake a waiter: a command waits for the work before it, and for no more.
func TestLocksServeInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := locks{held: map[sessions.Key][]chan struct{}{}}
		ctx := t.Context()
		go func() {
			for range 5 { // flushes over a model that hangs
				unlock, err := l.lock(ctx, "k")
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(2 * time.Minute)
				unlock()
			}
		}()
		time.Sleep(time.Second)
		began := time.Now()
		unlock, err := l.lock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited > 2*time.Minute {
			t.Errorf("a command waited %s behind work that came later", waited)
		}
		unlock()
		time.Sleep(time.Hour) // the flushes end
	})
}

// Waiters come and give up at any time. One at a time has a lock, in the order of their requests, and at the end it is free.
func TestLocksPassOn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		holds := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 12).Draw(rt, "seconds of holding")
		patience := rapid.SliceOfN(rapid.IntRange(1, 20), len(holds), len(holds)).Draw(rt, "seconds of patience")
		synctest.Test(t, func(t *testing.T) {
			l := locks{held: map[sessions.Key][]chan struct{}{}}
			var mu sync.Mutex
			var order []int
			inside, given := 0, errors.New("given up")
			for i := range holds {
				go func() {
					ctx, stop := context.WithTimeoutCause(t.Context(), time.Duration(patience[i])*time.Second, given)
					defer stop()
					unlock, err := l.lock(ctx, "k")
					if err != nil {
						if !errors.Is(err, given) {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					if inside++; inside != 1 {
						t.Error("two have the lock")
					}
					order = append(order, i)
					mu.Unlock()
					time.Sleep(time.Duration(holds[i]) * time.Second)
					mu.Lock()
					inside--
					mu.Unlock()
					unlock()
				}()
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Hour)
			mu.Lock()
			defer mu.Unlock()
			if !slices.IsSorted(order) {
				t.Errorf("they were served as %v", order)
			}
			if l.busy("k") {
				t.Error("the lock is not free at the end")
			}
		})
	})
}
