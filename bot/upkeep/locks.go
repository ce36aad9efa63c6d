package upkeep

import (
	"context"
	"slices"
	"sync"
	"time"

	"ebb/bot/parts"
	"ebb/sessions"
)

// locks serve the waiters of a session in the order of their requests. So work that comes back at once, such as an owed flush over a model
// that hangs, never overtakes a person's command that waits.
type locks struct {
	mu   sync.Mutex
	held map[sessions.Key][]chan struct{} // the waiters of each held lock, the first one next
}

func (l *locks) lock(ctx context.Context, key sessions.Key) (unlock func(), err error) {
	l.mu.Lock()
	waiters, held := l.held[key]
	if !held {
		l.held[key] = nil
		l.mu.Unlock()
		return func() { l.pass(key) }, nil
	}
	turn := make(chan struct{})
	l.held[key] = append(waiters, turn)
	l.mu.Unlock()
	select {
	case <-turn:
		return func() { l.pass(key) }, nil
	case <-ctx.Done():
		if !l.leave(key, turn) { // it was this one's turn at the same time
			l.pass(key)
		}
		return nil, context.Cause(ctx)
	}
}

// pass gives the lock to the next waiter, or frees it.
func (l *locks) pass(key sessions.Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiters := l.held[key]
	if len(waiters) == 0 {
		delete(l.held, key)
		return
	}
	l.held[key] = waiters[1:]
	close(waiters[0])
}

// leave removes a waiter, and reports whether it still waited.
func (l *locks) leave(key sessions.Key, turn chan struct{}) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.held[key], turn)
	if i < 0 {
		return false
	}
	l.held[key] = slices.Delete(l.held[key], i, i+1)
	return true
}

func (l *locks) busy(key sessions.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, held := l.held[key]
	return held
}

func newLocks() *locks { return &locks{held: map[sessions.Key][]chan struct{}{}} }

// marker records in the storage that upkeep runs.
type marker struct {
	shared *parts.Shared
	marks  Marks
}

func (m marker) begin(ctx context.Context, l sessions.Lease) (end func(), err error) {
	limit := m.shared.CompactDeadline
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(deadline))
	}
	if err := m.marks.MarkUpkeep(ctx, l, limit); err != nil {
		return nil, err
	}
	return func() {
		one, stop := context.WithTimeout(context.WithoutCancel(ctx), m.shared.CommitTimeout)
		defer stop()
		_ = m.marks.MarkUpkeep(one, l, 0) // without it the mark ends at its limit
	}, nil
}
