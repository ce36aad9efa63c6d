package memstore

import (
	"context"

	"ebb/sessions"
)

func (l *wakeListener) addKey(key sessions.Key) {
	l.mu.Lock()
	l.queue = append(l.queue, key)
	l.mu.Unlock()
	select {
	case l.some <- struct{}{}:
	default:
	}
}

func (l *wakeListener) takeKeys() []sessions.Key {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys := l.queue
	l.queue = nil
	return keys
}

// Listen implements sessions.Inbox. It first calls wake with the empty key.
func (m Inbox) Listen(ctx context.Context, owner sessions.ReplicaID, wake func(sessions.Key)) error {
	l := &wakeListener{owner: owner, some: make(chan struct{}, 1)}
	m.t.mu.Lock()
	m.t.listeners[l] = true
	m.t.mu.Unlock()
	defer func() {
		m.t.mu.Lock()
		delete(m.t.listeners, l)
		m.t.mu.Unlock()
	}()
	wake("")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-l.some:
			for _, key := range l.takeKeys() {
				wake(key)
			}
		}
	}
}

// An empty owner stands for all. The caller holds the mutex.
func (m *tables) wakeListeners(owner sessions.ReplicaID, key sessions.Key) {
	for l := range m.listeners {
		if owner == "" || l.owner == owner {
			l.addKey(key)
		}
	}
}
