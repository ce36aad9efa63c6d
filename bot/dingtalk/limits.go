package dingtalk

import (
	"sync"
	"time"

	"ebb/sessions"
	"ebb/sessions/retry"
)

// limits is a sliding window by conversation, with a pause after refusals. DingTalk's minutes begin at an unknown
// moment: a token bucket could exceed the limit twofold within one.
type limits struct {
	perMinute int
	now       func() time.Time

	mu    sync.Mutex
	paces map[sessions.ConversationID]*pace // no cache: eviction of an active one would exceed the limit
}

type pace struct {
	sent    []time.Time // within the last minute, oldest first
	until   time.Time   // end of the pause
	strikes int         // consecutive refusals
}

// A pause after a refusal doubles up to DingTalk's longest block of ten minutes.
const (
	firstSilence   = 2 * time.Second
	longestSilence = 10 * time.Minute
	window         = time.Minute
	manyPaces      = 4096 // Above this number of conversations, idle ones are removed.
)

var silences = retry.Pauses{First: firstSilence, Max: longestSilence}

func newLimits(perMinute int) *limits {
	return &limits{perMinute: perMinute, now: time.Now, paces: map[sessions.ConversationID]*pace{}}
}

// takePlace counts one message of a conversation, or returns the wait before the next one.
func (l *limits) takePlace(c sessions.ConversationID) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, now := l.paceOf(c), l.now()
	if p.until.After(now) {
		return p.until.Sub(now)
	}
	if l.perMinute <= 0 {
		return 0
	}
	for len(p.sent) > 0 && now.Sub(p.sent[0]) >= window {
		p.sent = p.sent[1:]
	}
	if len(p.sent) >= l.perMinute {
		return window - now.Sub(p.sent[0])
	}
	p.sent = append(p.sent, now)
	return 0
}

// NoteRefusal implements [request.Pauses].
func (l *limits) NoteRefusal(c sessions.ConversationID) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.paceOf(c)
	d := silences.After(p.strikes)
	p.strikes++
	p.until = l.now().Add(d)
	return d
}

func (l *limits) noteArrival(c sessions.ConversationID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.paces[c]; p != nil {
		p.strikes = 0
	}
}

func (l *limits) paceOf(c sessions.ConversationID) *pace {
	if p := l.paces[c]; p != nil {
		return p
	}
	if len(l.paces) >= manyPaces {
		now := l.now()
		for id, p := range l.paces {
			if now.Sub(p.until) > longestSilence && (len(p.sent) == 0 || now.Sub(p.sent[len(p.sent)-1]) > window) {
				delete(l.paces, id)
			}
		}
	}
	p := &pace{}
	l.paces[c] = p
	return p
}
