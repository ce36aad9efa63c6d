package dingtalk

import (
	"sync"
	"time"

	"ebb/sessions"
)

// limits keeps the pace of each conversation: no more than so many messages in any minute, and silence for a while
// after DingTalk said that there were too many. The window slides, since DingTalk counts "per minute" from a moment
// that nobody knows: a bucket that refills would let twice the number into one of its minutes.
type limits struct {
	perMinute int
	now       func() time.Time

	mu    sync.Mutex
	paces map[sessions.ConversationID]*pace
}

type pace struct {
	sent    []time.Time // within the last minute, oldest first
	until   time.Time   // silence until then
	strikes int         // refusals in a row
}

// How long a conversation is silent after a refusal, doubling from one to the other: DingTalk blocks up to ten minutes.
const (
	firstSilence   = 2 * time.Second
	longestSilence = 10 * time.Minute
	window         = time.Minute
	manyPaces      = 4096 // conversations after which idle ones are forgotten
)

func newLimits(perMinute int) *limits {
	return &limits{perMinute: perMinute, now: time.Now, paces: map[sessions.ConversationID]*pace{}}
}

// take counts one message for a conversation, or says how long to wait before one may be sent.
func (l *limits) take(c sessions.ConversationID) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, now := l.pace(c), l.now()
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

// refused notes that DingTalk said "too many" and returns how long the conversation is silent now.
func (l *limits) refused(c sessions.ConversationID) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.pace(c)
	d := min(firstSilence<<min(p.strikes, 10), longestSilence)
	p.strikes++
	p.until = l.now().Add(d)
	return d
}

// arrived ends a row of refusals.
func (l *limits) arrived(c sessions.ConversationID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p := l.paces[c]; p != nil {
		p.strikes = 0
	}
}

func (l *limits) pace(c sessions.ConversationID) *pace {
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
