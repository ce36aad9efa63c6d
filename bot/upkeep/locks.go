package upkeep

import (
	"context"
	"slices"
	"sync"

	"ebb/sessions"
)

// Lock excludes flushes and compactions of the session until unlock. The error is ctx's cause.
func (u *Worker) Lock(ctx context.Context, key sessions.Key) (unlock func(), err error) {
	return u.locks.lock(ctx, key)
}

// Busy implements turn.Upkeep.
func (u *Worker) Busy(key sessions.Key) bool { return u.locks.busy(key) }

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
