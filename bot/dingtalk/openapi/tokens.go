package openapi

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// tokens caches the access token with one request at a time.
type tokens struct {
	fetch func(context.Context) (string, time.Duration, error)
	lock  chan struct{} // guards the fields below; a channel, so that waiting ends with a context

	value    string
	until    time.Time
	failure  error
	failedAt time.Time
}

// A failure is cached for this time, so that callers do not queue for a timeout each.
const afterFailure = time.Second

func newTokens(fetch func(context.Context) (string, time.Duration, error)) *tokens {
	return &tokens{fetch: fetch, lock: make(chan struct{}, 1)}
}

// tokenInForce lets one caller fetch and the others wait. A failure is kept for a moment, so that waiting callers do not repeat it one after
// another. A token is renewed a while before its end: clocks differ.
func (k *tokens) tokenInForce(ctx context.Context) (string, error) {
	select {
	case k.lock <- struct{}{}:
		defer func() { <-k.lock }()
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for an access token: %w", ctx.Err())
	}
	if k.value != "" && time.Now().Before(k.until) {
		return k.value, nil
	}
	if k.failure != nil && time.Since(k.failedAt) < afterFailure {
		return "", k.failure
	}
	value, life, err := k.fetch(ctx)
	if err != nil {
		if ctx.Err() == nil { // our cancellation does not fail other callers
			k.failure, k.failedAt = err, time.Now()
		}
		return "", err
	}
	k.value, k.failure = value, nil
	k.until = time.Now().Add(life - min(life/10, 5*time.Minute))
	return value, nil
}

// dropToken forgets a refused token unless it was replaced.
func (k *tokens) dropToken(ctx context.Context, value string) {
	select {
	case k.lock <- struct{}{}:
		if k.value == value {
			k.value = ""
		}
		<-k.lock
	case <-ctx.Done():
	}
}

// ErrCredentials is DingTalk's refusal of the application.
var ErrCredentials = errors.New("DingTalk refuses the client id or secret")
