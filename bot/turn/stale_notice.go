package turn

import (
	"sync"
	"time"

	"ebb/sessions"
)

// staleNotices remembers for a moment who was notified of an outdated backlog. A backlog of several turns needs only
// one notice for each person.
type staleNotices struct {
	mu   sync.Mutex
	when map[noticeKey]time.Time
}

type noticeKey struct {
	key    sessions.Key
	sender sessions.UserID
}

// staleNoticeTTL is the time for which a notice suppresses others.
const staleNoticeTTL = time.Minute

// cover reports whether all senders have a recent notice.
func (t *staleNotices) cover(key sessions.Key, asked []sessions.Event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range asked {
		if time.Since(t.when[noticeKey{key, e.SenderID}]) > staleNoticeTTL {
			return false
		}
	}
	return true
}

// record stores the notice of all senders.
func (t *staleNotices) record(key sessions.Key, asked []sessions.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := map[noticeKey]time.Time{}
	for who, at := range t.when {
		if time.Since(at) <= staleNoticeTTL {
			fresh[who] = at
		}
	}
	for _, e := range asked {
		fresh[noticeKey{key, e.SenderID}] = time.Now()
	}
	t.when = fresh
}
