package breaker

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/sessions"
	"ebb/sessions/retry"
)

// Breaker knows the pauses of one kind of calls. Its methods may be called from any goroutine.
type Breaker struct {
	mu     sync.Mutex
	closed time.Time // end of a failure of the application
	of     *lru.Cache[sessions.ConversationID, pause]

	silent   sessions.ConversationID // its call had no answer, since the last answer to any; empty: none
	open     bool                    // several conversations have no answers
	until    time.Time               // end of that pause
	failures int                     // pauses since the breaker opened
	trial    sessions.ConversationID // tries until then
}

// pause is that of one conversation.
type pause struct {
	refused  time.Time // end of a refusal
	silent   time.Time // end of the pause after calls without an answer
	failures int       // calls without an answer
}

const (
	maxPauses = 4096
	// trialTime is for one conversation's calls after a pause, before the next one may try.
	trialTime = 10 * time.Second
)

var silences = retry.Pauses{First: time.Minute, Max: 15 * time.Minute}

// New returns a closed breaker.
func New() *Breaker {
	of, err := lru.New[sessions.ConversationID, pause](maxPauses)
	if err != nil {
		panic(err) // the size is a positive constant
	}
	return &Breaker{of: of}
}

// Paused reports whether a conversation must begin nothing.
func (b *Breaker) Paused(c sessions.ConversationID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	p, _ := b.of.Get(c)
	return now.Before(b.closed) || now.Before(p.refused) || !b.mayTry(c, p)
}

// MayTry reports whether a conversation's call may have an answer. After a pause of all, the first conversation that asks may try.
func (b *Breaker) MayTry(c sessions.ConversationID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, _ := b.of.Get(c)
	return b.mayTry(c, p)
}

func (b *Breaker) mayTry(c sessions.ConversationID, p pause) bool {
	now := time.Now()
	if now.Before(p.silent) || b.open && now.Before(b.until) && c != b.trial {
		return false
	}
	if b.open && !now.Before(b.until) {
		b.trial, b.until = c, now.Add(trialTime)
	}
	return true
}

// Silent reports whether a call of a conversation would probably have no answer. It begins no trial.
func (b *Breaker) Silent(c sessions.ConversationID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, _ := b.of.Get(c)
	return time.Now().Before(p.silent) || b.open && c != b.trial
}

// Down reports whether no conversation gets answers, and none is due to try.
func (b *Breaker) Down() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open && time.Now().Before(b.until)
}

// CloseAll pauses all conversations after a failure of the application.
func (b *Breaker) CloseAll(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = time.Now().Add(d)
}

// Close pauses one conversation after a refusal.
func (b *Breaker) Close(c sessions.ConversationID, d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, _ := b.of.Get(c)
	p.refused = time.Now().Add(d)
	b.of.Add(c, p)
}

// Answered notes any answer, a refusal included.
func (b *Breaker) Answered(c sessions.ConversationID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.silent, b.open, b.failures, b.trial = "", false, 0, ""
	if p, ok := b.of.Peek(c); ok && p.failures > 0 {
		p.silent, p.failures = time.Time{}, 0
		b.of.Add(c, p)
	}
}

// Unanswered notes a call without an answer. It returns the pause, and whether it is that of all conversations; 0 for a call that
// began before the pause.
func (b *Breaker) Unanswered(c sessions.ConversationID) (d time.Duration, all bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	p, _ := b.of.Get(c)
	if now.Before(p.silent) {
		return 0, false
	}
	d = silences.After(p.failures)
	p.silent, p.failures = now.Add(d), p.failures+1
	b.of.Add(c, p)
	if b.open && now.Before(b.until) && c != b.trial {
		return 0, false
	}
	others := b.silent != "" && b.silent != c
	b.silent = c
	if !others && !b.open {
		return d, false
	}
	d = silences.After(b.failures)
	b.open, b.failures, b.until, b.trial = true, b.failures+1, now.Add(d), ""
	return d, true
}
