package openai

import (
	"sync"
	"time"

	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/retry"
)

// breaker is a model's circuit breaker. While it is open the model is asked last; after a pause one call at a time is
// a trial, see [probe]. An answer closes it, a failed trial doubles the pause.
type breaker struct {
	mu      sync.Mutex
	strikes int
	open    bool
	until   time.Time // end of the pause
	named   bool      // The provider named the pause.
	trial   bool
	pauses  *retry.Series
	waiting map[*func()]struct{} // calls without a first token, by what ends their waiting
	signs   int                  // first tokens and answers so far
	hung    *sessions.Key        // conversation of a silent call since the last answer; nil: none
}

// enough opens a breaker by consecutive failures: two failed requests, silence to two conversations, or one failure without hope. A
// silent call is one without hope if no other had a sign of life meanwhile. Otherwise its question may be a slow one.
const enough = 2

// The longest pause between two trials, in first-token deadlines. The first one is half a deadline.
const longestPause = 10

func newBreaker(first time.Duration) *breaker {
	return &breaker{pauses: retry.Pauses{First: first / 2, Max: longestPause * first, Jitter: 0.2}.Start()}
}

// pass is a call's permission to ask a model, returned by [pass.endPass].
type pass struct {
	of    *breaker
	trial bool
	wait  time.Duration // time until the provider accepts requests
	signs int           // sum of the model before the call
}

// enterPass also returns whether the model is up or due for a trial. Otherwise only calls without another model use the
// pass.
func (b *breaker) enterPass() (p pass, up bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := time.Until(b.until)
	switch {
	case !b.open:
		return pass{of: b, signs: b.signs}, true
	case wait <= 0 && !b.trial:
		b.trial = true
		return pass{of: b, trial: true, signs: b.signs}, true
	case b.named:
		return pass{of: b, wait: max(wait, 0)}, false
	}
	return pass{of: b}, false
}

// endPass returns the pause if the breaker opened. Weight 0 is neutral. Failures of calls that began before the breaker
// opened do not count.
func (p pass) endPass(weight int, after time.Duration) (pause time.Duration) {
	b := p.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if p.trial {
		b.trial = false
	}
	if weight == 0 || b.open && !p.trial {
		return 0
	}
	if b.strikes += weight; b.strikes < enough && after == 0 && !p.trial {
		return 0
	}
	b.open, b.named, pause = true, after > 0, b.pauses.NextBackOff()
	if b.named {
		pause = min(after, b.pauses.MaxInterval)
	}
	b.until = time.Now().Add(pause)
	return pause
}

// silenceWeight is the weight of a call that was silent for too long; own are the signs of life that it had itself.
func (p pass) silenceWeight(of sessions.Key, own int) (weight int) {
	b := p.of
	b.mu.Lock()
	defer b.mu.Unlock()
	isKnown := b.hung != nil && *b.hung == of
	b.hung = &of
	switch {
	case b.signs-own == p.signs:
		return enough
	case isKnown:
		return 0
	}
	return 1
}

// noteLife notes a first token.
func (b *breaker) noteLife() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.signs++
}

func (p pass) noteAnswer() (again bool) {
	b := p.of
	b.mu.Lock()
	defer b.mu.Unlock()
	again = b.open
	b.open, b.named, b.strikes, b.hung = false, false, 0, nil
	b.signs++
	if p.trial {
		b.trial = false
	}
	b.pauses.Reset()
	return again
}

// watchPass returns the end of a watch. Until then a hang of another call calls gaveUp, once: who waits for the same model need not
// wait as long.
func (b *breaker) watchPass(gaveUp func()) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting == nil {
		b.waiting = map[*func()]struct{}{}
	}
	b.waiting[&gaveUp] = struct{}{}
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiting, &gaveUp)
	}
}

func (b *breaker) wakeWaiting() {
	b.mu.Lock()
	woken := b.waiting
	b.waiting = nil
	b.mu.Unlock()
	for gaveUp := range woken {
		(*gaveUp)()
	}
}

func (b *breaker) state() llm.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.open:
		return llm.Up
	case b.trial || time.Now().After(b.until):
		return llm.OnTrial
	}
	return llm.Down
}
