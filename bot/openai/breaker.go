package openai

import (
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"ebb/bot"
)

// breaker remembers for a while that a model is down, so that calls go to the next model without a new wait. All calls
// of a process share it. While it is open the model is asked last; after a pause one call at a time tries the model
// again. An answer closes the breaker, a failed trial makes the next pause longer.
type breaker struct {
	mu      sync.Mutex
	strikes int
	open    bool
	until   time.Time // the end of the pause
	named   bool      // by the provider, which wants no request before
	trial   bool      // a call tries the model now
	pauses  *backoff.ExponentialBackOff
}

// enough is the weight of failures in a row that opens a breaker: two failed requests, or one failure of which no
// repetition is worth the wait.
const enough = 2

// longestPause is the longest pause between two trials, as a multiple of the model's deadline to the first token. The
// first pause is half of that deadline.
const longestPause = 10

func newBreaker(first time.Duration) *breaker {
	pauses := &backoff.ExponentialBackOff{InitialInterval: first / 2, RandomizationFactor: 0.2, Multiplier: 2, MaxInterval: longestPause * first}
	pauses.Reset()
	return &breaker{pauses: pauses}
}

// pass is a call's permission to ask a model. It is given back with [pass.end].
type pass struct {
	of    *breaker
	trial bool
	wait  time.Duration // until the provider takes requests again
}

// enter returns a pass, and whether the model is up or due for a trial. With false the model is down, or another call
// tries it: the pass is for those who have no other model.
func (b *breaker) enter() (p pass, up bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wait := time.Until(b.until)
	switch {
	case !b.open:
		return pass{of: b}, true
	case wait <= 0 && !b.trial:
		b.trial = true
		return pass{of: b, trial: true}, true
	case b.named:
		return pass{of: b, wait: max(wait, 0)}, false
	}
	return pass{of: b}, false
}

// end reports how the model did, and returns the pause where that opened the breaker. A weight of 0 says nothing about the
// model. A failure of a call that began before the breaker opened changes nothing.
func (p pass) end(weight int, after time.Duration) (pause time.Duration) {
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

// answered reports that the model is up, whatever it answered, and returns whether it was down.
func (p pass) answered() (again bool) {
	b := p.of
	b.mu.Lock()
	defer b.mu.Unlock()
	again = b.open
	b.open, b.named, b.strikes = false, false, 0
	if p.trial {
		b.trial = false
	}
	b.pauses.Reset()
	return again
}

// state is the breaker's state for metrics.
func (b *breaker) state() bot.ModelState {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.open:
		return bot.ModelUp
	case b.trial || time.Now().After(b.until):
		return bot.ModelOnTrial
	}
	return bot.ModelDown
}
