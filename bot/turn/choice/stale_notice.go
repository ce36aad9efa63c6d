package choice

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/sessions"
)

// A backlog of several turns needs one notice a person.
type staleNotices struct {
	when *lru.Cache[noticeKey, time.Time]
}

type noticeKey struct {
	key    sessions.Key
	sender sessions.UserID
}

const (
	staleNoticeTTL  = time.Minute
	maxStaleNotices = 10_000
)

func newStaleNotices() staleNotices {
	when, _ := lru.New[noticeKey, time.Time](maxStaleNotices) // it fails only without a size
	return staleNotices{when}
}

func (t staleNotices) cover(key sessions.Key, asked []sessions.Event) bool {
	for _, e := range asked {
		if at, ok := t.when.Get(noticeKey{key, e.SenderID}); !ok || time.Since(at) > staleNoticeTTL {
			return false
		}
	}
	return true
}

func (t staleNotices) record(key sessions.Key, asked []sessions.Event) {
	for _, e := range asked {
		t.when.Add(noticeKey{key, e.SenderID}, time.Now())
	}
}
