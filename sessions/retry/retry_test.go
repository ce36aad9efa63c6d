package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Pauses double from the first to the longest, and stay within their jitter.
func TestPausesDouble(t *testing.T) {
	t.Parallel()
	for _, p := range []Pauses{
		{First: time.Second, Max: time.Minute},
		{First: time.Second, Max: time.Minute, Jitter: 0.25},
		{First: time.Minute, Max: time.Minute},
		{First: time.Hour, Max: 7 * 24 * time.Hour, Jitter: 1},
	} {
		s := p.Start()
		for failures := range 100 {
			want := float64(min(p.First<<min(failures, 20), p.Max))
			for _, d := range []time.Duration{s.NextBackOff(), p.After(failures)} {
				if low, high := want*(1-p.Jitter), want*(1+p.Jitter)+1; float64(d) < low || float64(d) > high {
					t.Errorf("%+v: pause after %d failures is %s, want %g to %g", p, failures, d, low, high)
				}
			}
		}
	}
}

func TestDoRepeatsFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, busy, began := Pauses{First: time.Second, Max: 3 * time.Second}, errors.New("busy"), time.Now()
		calls := 0
		err := Do(t.Context(), p, func() error {
			if calls++; calls < 5 {
				return busy
			}
			return nil
		})
		if took := time.Since(began); err != nil || calls != 5 || took != (1+2+3+3)*time.Second {
			t.Errorf("%d calls in %s: %v", calls, took, err)
		}
	})
}

func TestDoReturnsTheLastError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, busy := Pauses{First: time.Second, Max: time.Second}, errors.New("busy")
		ctx, stop := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer stop()
		calls := 0
		fail := func() error { calls++; return busy }
		if err := Do(ctx, p, fail); err != busy || calls != 4 { //nolint:errorlint // the very error
			t.Errorf("%d calls until the end of the context: %v", calls, err)
		}
		if err := Do(ctx, p, fail); err != busy || calls != 5 { //nolint:errorlint // the very error
			t.Errorf("after the end of the context, %d calls in all: %v", calls, err)
		}
		if err := Do(t.Context(), p, func() error { calls++; return Permanent(busy) }); err != busy || calls != 6 { //nolint:errorlint // the very error
			t.Errorf("a permanent error, %d calls in all: %v", calls, err)
		}
		if Sleep(ctx, time.Second) || Sleep(ctx, 0) || !Sleep(t.Context(), time.Second) || !Sleep(t.Context(), 0) {
			t.Error("Sleep must report whether the context is valid")
		}
	})
}
