package pg

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"ebb/sessions/guard"
)

// Calls that come while all lanes are busy are one batch, in the order in which they came, and each gets its own error.
func TestConcurrentStatementsAreBatched(t *testing.T) {
	t.Parallel()
	began, release := make(chan []int, 10), make(chan struct{})
	g := &Batcher[int]{Do: func(_ context.Context, all []int) []error {
		began <- slices.Clone(all)
		<-release
		errs := make([]error, len(all))
		for i, n := range all {
			errs[i] = fmt.Errorf("error of %d", n)
		}
		return errs
	}}
	var wg sync.WaitGroup
	join := func(n int) {
		wg.Go(func() {
			if err := g.Submit(t.Context(), n); err == nil || err.Error() != fmt.Sprintf("error of %d", n) {
				t.Errorf("%d got %v", n, err)
			}
		})
	}
	for n := range batchLanes {
		join(n)
		if all := <-began; len(all) != 1 || all[0] != n {
			t.Errorf("the first in a lane were %v", all)
		}
	}
	var want []int
	for n := 10; n < 15; n++ {
		join(n)
		g.awaitWaiting(n - 9)
		want = append(want, n)
	}
	close(release)
	if all := <-began; !slices.Equal(all, want) {
		t.Errorf("done in one go: %v, want %v", all, want)
	}
	wg.Wait()
	select {
	case all := <-began:
		t.Errorf("done again: %v", all)
	default:
	}
}

// A batch that panics costs its own callers an error, and no lane.
func TestPanicOfABatch(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}, 10), make(chan struct{})
	g := &Batcher[string]{Do: func(_ context.Context, all []string) []error {
		began <- struct{}{}
		<-release
		if slices.Contains(all, "panic") {
			panic("broken")
		}
		return make([]error, len(all))
	}}
	submit := func(what string) (err error) {
		defer func() {
			if recover() != nil {
				err = guard.ErrPanicked
			}
		}()
		return g.Submit(t.Context(), what)
	}
	var wg sync.WaitGroup
	for range batchLanes { // each fails in the goroutine of its caller
		wg.Go(func() {
			if err := submit("panic"); !errors.Is(err, guard.ErrPanicked) {
				t.Errorf("the first in a lane got %v", err)
			}
		})
		<-began
	}
	for n, what := range []string{"fine", "panic"} { // a batch
		wg.Go(func() {
			if err := submit(what); !errors.Is(err, guard.ErrPanicked) {
				t.Errorf("%s in a batch got %v", what, err)
			}
		})
		g.awaitWaiting(n + 1)
	}
	close(release)
	wg.Wait()
	for range 2 * batchLanes {
		if err := submit("fine"); err != nil {
			t.Errorf("a later one got %v", err)
		}
	}
}

// awaitWaiting returns when n wait. The list itself is the only sign of that.
func (g *Batcher[T]) awaitWaiting(n int) {
	for {
		g.mu.Lock()
		got := len(g.waiting)
		g.mu.Unlock()
		if got == n {
			return
		}
	}
}

// A cancelled caller is not waited for, and its call is not done after that.
func TestCancelledCallersLeaveTheBatch(t *testing.T) {
	t.Parallel()
	began, release := make(chan []int, 10), make(chan struct{})
	g := &Batcher[int]{Do: func(_ context.Context, all []int) []error {
		began <- slices.Clone(all)
		<-release
		return make([]error, len(all))
	}}
	var wg sync.WaitGroup
	for n := range batchLanes {
		wg.Go(func() { _ = g.Submit(t.Context(), n) })
		<-began
	}
	gone := errors.New("gone")
	ctx, leave := context.WithCancelCause(t.Context())
	left := make(chan error, 1)
	go func() { left <- g.Submit(ctx, 10) }()
	g.awaitWaiting(1)
	wg.Go(func() { _ = g.Submit(t.Context(), 11) })
	g.awaitWaiting(2)
	leave(gone)
	if err := <-left; !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	close(release)
	if all := <-began; !slices.Equal(all, []int{11}) {
		t.Errorf("done: %v", all)
	}
	wg.Wait()
}
