package retry

import (
	"context"
	"errors"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Pauses double from First to Max. Jitter varies each by up to this share of it, so that replicas do not retry in
// step.
type Pauses struct {
	First, Max time.Duration
	Jitter     float64
}

// Storage are the pauses during an outage. Work resumes within a second.
var Storage = Pauses{First: 50 * time.Millisecond, Max: time.Second}

// Series are the pauses of one series of failures.
type Series = backoff.ExponentialBackOff

// Start begins a series.
func (p Pauses) Start() *Series {
	s := &backoff.ExponentialBackOff{InitialInterval: p.First, RandomizationFactor: p.Jitter, Multiplier: 2, MaxInterval: p.Max}
	s.Reset()
	return s
}

// manyFailures make each further pause the longest.
const manyFailures = 63

// After returns the pause after a number of earlier failures.
func (p Pauses) After(failures int) time.Duration {
	s := p.Start()
	for range min(failures, manyFailures) {
		s.NextBackOff()
	}
	return s.NextBackOff()
}

// Do repeats f until it succeeds, fails with a [Permanent] error, or ctx ends. It calls f at least once and returns
// its last error.
func Do(ctx context.Context, p Pauses, f func() error) error {
	var last error
	// The error of Retry is ctx's cause when ctx ends. The last error of f says more.
	_, _ = backoff.Retry(ctx, func() (struct{}, error) {
		last = f()
		return struct{}{}, last
	}, backoff.WithBackOff(p.Start()), backoff.WithMaxElapsedTime(0))
	if final, ok := errors.AsType[*backoff.PermanentError](last); ok {
		return final.Unwrap()
	}
	return last
}

// Permanent marks an error that another attempt would not change.
func Permanent(err error) error { return backoff.Permanent(err) }

// Sleep waits for d and reports whether ctx is still valid then.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
