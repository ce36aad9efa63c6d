package turn

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/sessions"
)

// staleNotices remembers for a moment who was notified of an outdated backlog. A backlog of several turns needs only
// one notice for each person.
type staleNotices struct {
	when *lru.Cache[noticeKey, time.Time]
}

type noticeKey struct {
	key    sessions.Key
	sender sessions.UserID
}

const (
	// staleNoticeTTL is the time for which a notice suppresses others.
	staleNoticeTTL = time.Minute
	// maxStaleNotices bounds the notices that are remembered.
	maxStaleNotices = 10_000
)

func newStaleNotices() staleNotices {
	when, _ := lru.New[noticeKey, time.Time](maxStaleNotices) // it fails only without a size
	return staleNotices{when}
}

// cover reports whether all senders have a recent notice.
func (t staleNotices) cover(key sessions.Key, asked []sessions.Event) bool {
	for _, e := range asked {
		if at, ok := t.when.Get(noticeKey{key, e.SenderID}); !ok || time.Since(at) > staleNoticeTTL {
			return false
		}
	}
	return true
}

// record stores the notice of all senders.
func (t staleNotices) record(key sessions.Key, asked []sessions.Event) {
	for _, e := range asked {
		t.when.Add(noticeKey{key, e.SenderID}, time.Now())
	}
}
