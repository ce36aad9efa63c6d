package upkeep

import (
	"context"
	"sync"

	"ebb/sessions"
)

// Lock excludes flushes and compactions of the session until unlock. The error is ctx's cause.
func (u *Worker) Lock(ctx context.Context, key sessions.Key) (unlock func(), err error) {
	return u.locks.lock(ctx, key)
}

// Busy implements turn.Upkeep.
func (u *Worker) Busy(key sessions.Key) bool { return u.locks.busy(key) }

type locks struct {
	mu   sync.Mutex
	held map[sessions.Key]chan struct{}
}

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

func (l *locks) busy(key sessions.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[key] != nil
}
