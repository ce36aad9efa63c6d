package openapi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestTokensAreFetchedOnce(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int64
	k := newTokens(func(context.Context) (string, time.Duration, error) {
		return fmt.Sprint("token", fetched.Add(1)), time.Hour, nil
	})
	ctx := t.Context()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if v, err := k.tokenInForce(ctx); v != "token1" || err != nil {
				t.Errorf("got %q, %v", v, err)
			}
		})
	}
	all.Wait()
	// Many calls learn at once that the token is refused: one new token serves them all.
	for range 50 {
		all.Go(func() {
			k.dropToken(ctx, "token1")
			if v, err := k.tokenInForce(ctx); v != "token2" || err != nil {
				t.Errorf("got %q, %v", v, err)
			}
		})
	}
	all.Wait()
	if n := fetched.Load(); n != 2 {
		t.Errorf("%d tokens were fetched", n)
	}
}

func TestTokensThatEndSoonAreNotUsed(t *testing.T) {
	t.Parallel()
	n := 0
	k := newTokens(func(context.Context) (string, time.Duration, error) {
		n++
		return fmt.Sprint("token", n), 0, nil
	})
	for want := 1; want <= 2; want++ {
		if v, _ := k.tokenInForce(t.Context()); v != fmt.Sprint("token", want) {
			t.Errorf("got %q", v)
		}
	}
}

func TestTokensFailTogether(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int64
	down := errors.New("down")
	k := newTokens(func(context.Context) (string, time.Duration, error) {
		fetched.Add(1)
		return "", 0, down
	})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, err := k.tokenInForce(t.Context()); !errors.Is(err, down) {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if n := fetched.Load(); n > 5 {
		t.Errorf("%d requests for 50 askers within a moment", n)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	k.lock <- struct{}{}
	if _, err := k.tokenInForce(over); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting does not end with the context: %v", err)
	}
}
