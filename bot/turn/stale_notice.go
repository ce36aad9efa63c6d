package turn

import (
	"sync"
	"time"

	"ebb/sessions"
)

// told remembers for a moment who was told that a backlog is out of date: a backlog that takes several turns is worth
// one word to each person.
type told struct {
	mu   sync.Mutex
	when map[askerOf]time.Time
}

type askerOf struct {
	key    sessions.Key
	sender sessions.UserID
}

// toldFor is how long a word holds.
const toldFor = time.Minute

// all reports whether everybody who asked was told.
func (t *told) all(key sessions.Key, asked []sessions.Event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range asked {
		if time.Since(t.when[askerOf{key, e.SenderID}]) > toldFor {
			return false
		}
	}
	return true
}

// note remembers that everybody who asked was told.
func (t *told) note(key sessions.Key, asked []sessions.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := map[askerOf]time.Time{}
	for who, at := range t.when {
		if time.Since(at) <= toldFor {
			fresh[who] = at
		}
	}
	for _, e := range asked {
		fresh[askerOf{key, e.SenderID}] = time.Now()
	}
	t.when = fresh
}
