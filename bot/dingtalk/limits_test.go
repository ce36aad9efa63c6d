package dingtalk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ebb/sessions"
)

// The law: in no minute more messages than configured, and a caller that waits for the returned time is served.
func TestLimitsHoldInEveryMinute(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 25).Draw(r, "per minute")
		l := newLimits(n)
		now := time.Unix(1_800_000_000, 0)
		l.now = func() time.Time { return now }
		var sent []time.Time
		for range 200 {
			now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(r, "step")) * time.Millisecond)
			if wait := l.takePlace("c"); wait > 0 {
				now = now.Add(wait)
				if l.takePlace("c") > 0 {
					r.Fatalf("refused after waiting %s as told", wait)
				}
			}
			sent = append(sent, now)
			if len(sent) > n && sent[len(sent)-1].Sub(sent[len(sent)-1-n]) < time.Minute {
				r.Fatalf("%d messages within %s", n+1, sent[len(sent)-1].Sub(sent[len(sent)-1-n]))
			}
		}
	})
}

func TestLimitsBackOffPerConversation(t *testing.T) {
	t.Parallel()
	l := newLimits(0)
	now := time.Unix(1_800_000_000, 0)
	l.now = func() time.Time { return now }
	var last time.Duration
	for range 12 {
		d := l.noteRefusal("c")
		if d < last || d > longestSilence {
			t.Errorf("silence of %s after one of %s", d, last)
		}
		if wait := l.takePlace("c"); wait != d {
			t.Errorf("take says %s, refused said %s", wait, d)
		}
		last = d
	}
	if last != longestSilence {
		t.Errorf("the longest silence is %s", last)
	}
	if l.takePlace("other") != 0 {
		t.Error("another conversation has to wait as well")
	}
	now = now.Add(last)
	if l.takePlace("c") != 0 {
		t.Error("the silence does not end")
	}
	l.noteArrival("c")
	if d := l.noteRefusal("c"); d != firstSilence {
		t.Errorf("after a success the first silence is %s", d)
	}
}

func TestLimitsForgetIdleConversations(t *testing.T) {
	t.Parallel()
	l := newLimits(20)
	now := time.Unix(1_800_000_000, 0)
	l.now = func() time.Time { return now }
	for i := range 5 * manyPaces {
		now = now.Add(time.Second)
		l.takePlace(sessions.ConversationID(fmt.Sprint(i)))
	}
	if n := len(l.paces); n > manyPaces {
		t.Errorf("%d conversations are remembered", n)
	}
}

func TestTokensAreFetchedOnce(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int64
	k := newTokens(func(context.Context) (string, time.Duration, error) {
		return fmt.Sprint("token", fetched.Add(1)), time.Hour, nil
	})
	ctx := testContext(t)
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
		if v, _ := k.tokenInForce(testContext(t)); v != fmt.Sprint("token", want) {
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
			if _, err := k.tokenInForce(testContext(t)); !errors.Is(err, down) {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	if n := fetched.Load(); n > 5 {
		t.Errorf("%d requests for 50 askers within a moment", n)
	}
	over, cancel := context.WithCancel(testContext(t))
	cancel()
	k.lock <- struct{}{}
	if _, err := k.tokenInForce(over); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting does not end with the context: %v", err)
	}
}
