package upkeep

import (
	"context"
	"sync"

	"ebb/sessions"
)

// Lock waits until no flush or compaction of the session is under way, and keeps others out until unlock.
func (u *Worker) Lock(ctx context.Context, key sessions.Key) (unlock func(), err error) {
	return u.Locks.lock(ctx, key)
}

// Busy reports whether a flush or a compaction of the session is under way.
func (u *Worker) Busy(key sessions.Key) bool { return u.Locks.Busy(key) }

// locks are one lock for each session, held by whoever compacts or flushes it.
type locks struct {
	mu   sync.Mutex
	held map[sessions.Key]chan struct{}
}

// lock waits for the session's lock and returns what gives it back; the error is ctx's cause.
func (l *locks) lock(ctx context.Context, key sessions.Key) (unlock func(), err error) {
	for {
		l.mu.Lock()
		busy, ok := l.held[key]
		if !ok {
			done := make(chan struct{})
			l.held[key] = done
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				delete(l.held, key)
				l.mu.Unlock()
				close(done)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Busy reports whether somebody holds the session's lock.
func (l *locks) Busy(key sessions.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[key] != nil
}
