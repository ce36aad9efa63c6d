package pg

import (
	"context"
	"sync"
	"time"
)

// Batcher does at once what is asked for at the same time: what comes while it is busy waits, and is then done in one go,
// which is one round trip and one commit. Nothing waits for company: what comes alone is done alone, at once.
type Batcher[T any] struct {
	// do does all of them, in one transaction or one after another, and returns the error of each.
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
	togetherLanes = 2               // goes at once: one that waits for a lock must not hold up all others
	togetherMost  = 64              // in one go
	togetherTime  = 5 * time.Second // of a go that nobody's own time bounds
)

// Submit has what done and returns its error. Where ctx ends first it may have been done, or may be yet.
func (g *Batcher[T]) Submit(ctx context.Context, what T) error {
	j := &joiner[T]{ctx: ctx, what: what, done: make(chan error, 1)}
	g.mu.Lock()
	if g.busy < togetherLanes {
		g.busy++
		g.mu.Unlock()
		err := g.Do(ctx, []T{what})[0]
		g.next()
		return err
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

// next gives up the lane, or hands it to those who wait.
func (g *Batcher[T]) next() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.busy--
		return
	}
	n := min(len(g.waiting), togetherMost)
	all := g.waiting[:n:n]
	g.waiting = g.waiting[n:]
	go g.run(all)
}

// run does what waited, but for those who waited no longer.
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
	ctx, stop := context.WithTimeout(context.WithoutCancel(here[0].ctx), togetherTime)
	defer stop()
	for i, err := range g.Do(ctx, what) {
		here[i].done <- err
	}
}
