package pg

import (
	"context"
	"sync"
	"time"

	"ebb/sessions/guard"
)

// Batcher runs requests that arrive while it is busy as one batch, in one round trip and one commit. A single request runs at once.
type Batcher[T any] struct {
	// Do runs the requests, in one transaction or one after another, and returns the error of each.
	Do func(ctx context.Context, all []T) []error

	mu      sync.Mutex
	busy    int
	waiting []*joiner[T]
}

type joiner[T any] struct {
	ctx  context.Context //nolint:containedctx // of the call that it stands for
	what T
	done chan error
}

const (
	batchLanes = 2 // A batch that waits for a lock must not block all others.
	maxBatch   = 64
	batchTime  = 5 * time.Second // for a batch without a caller's deadline
)

// Submit returns the error of its request. When ctx ends first, the request may have run or may run later.
func (g *Batcher[T]) Submit(ctx context.Context, what T) error {
	j := &joiner[T]{ctx: ctx, what: what, done: make(chan error, 1)}
	g.mu.Lock()
	if g.busy < batchLanes {
		g.busy++
		g.mu.Unlock()
		defer g.next()
		return g.Do(ctx, []T{what})[0]
	}
	g.waiting = append(g.waiting, j)
	g.mu.Unlock()
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// next frees the lane, or passes it to waiting requests.
func (g *Batcher[T]) next() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.busy--
		return
	}
	n := min(len(g.waiting), maxBatch)
	all := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	go g.run(all)
}

// run does the work of all that still wait, under a context of its own: the first caller may give up while others need the result. A
// panic is the error of each of them.
func (g *Batcher[T]) run(all []*joiner[T]) {
	defer g.next()
	var here []*joiner[T]
	var what []T
	for _, j := range all {
		if j.ctx.Err() == nil {
			here, what = append(here, j), append(what, j.what)
		}
	}
	if len(here) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(here[0].ctx), batchTime)
	defer stop()
	var errs []error
	panicked := guard.Do(ctx, guard.Storage, func() error { errs = g.Do(ctx, what); return nil })
	for i, j := range here {
		if panicked != nil {
			j.done <- panicked
			continue
		}
		j.done <- errs[i]
	}
}
