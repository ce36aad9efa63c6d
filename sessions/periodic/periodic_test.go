package periodic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions/retry"
)

// runFor runs a task for a time and returns the moments of its runs in seconds, and the log.
func runFor(t *testing.T, d time.Duration, task Task) (at []float64, log string) {
	t.Helper()
	var out bytes.Buffer
	ctx, stop := context.WithTimeout(zerolog.New(&out).WithContext(t.Context()), d)
	defer stop()
	began, do := time.Now(), task.Do
	task.Do = func(ctx context.Context) error {
		at = append(at, time.Since(began).Seconds())
		return do(ctx)
	}
	Run(ctx, task)
	return at, out.String()
}

func TestRunRepeatsAtIntervals(t *testing.T) {
	t.Parallel()
	quick := func(context.Context) error { return nil }
	looks := 0
	for _, tt := range []struct {
		name string
		task Task
		want []float64
	}{
		{"after the interval", Task{Do: quick}, []float64{1, 2, 3}},
		{"at once", Task{Do: quick, AtOnce: true}, []float64{0, 1, 2, 3}},
		{"ready later", Task{Do: quick, AtOnce: true, Ready: func() bool { looks++; return looks > 2 }}, []float64{2, 3}},
		{"not the leader", Task{Do: quick, Leads: func(context.Context) (bool, error) { return false, nil }}, nil},
		{"the leader", Task{Do: quick, Leads: func(context.Context) (bool, error) { return true, nil }}, []float64{1, 2, 3}},
		{"an error", Task{Do: func(context.Context) error { return errors.New("busy") }}, []float64{1, 2, 3}},
		{"slow", Task{AtOnce: true, Do: func(ctx context.Context) error { retry.Sleep(ctx, 1500*time.Millisecond); return nil }}, []float64{0, 1.5, 3}},
		{"a run with a timeout", Task{AtOnce: true, Timeout: 500 * time.Millisecond, Do: func(ctx context.Context) error { <-ctx.Done(); return nil }}, []float64{0, 1, 2, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				tt.task.Interval = time.Second
				if at, _ := runFor(t, 3500*time.Millisecond, tt.task); !slices.Equal(at, tt.want) {
					t.Errorf("ran at %v, want %v", at, tt.want)
				}
			})
		})
	}
}

// waitError asks for a pause.
type waitError time.Duration

func (w waitError) Error() string       { return "busy" }
func (w waitError) Wait() time.Duration { return time.Duration(w) }

// Failures are logged one by one; with pauses of their own, an outage and its end are.
func TestRunLogsFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fails := []error{nil, errors.New("busy"), errors.New("busy"), fmt.Errorf("ask: %w", waitError(6*time.Second)), fmt.Errorf("ask: %w", waitError(time.Hour)), nil, nil}
		n := 0
		task := Task{Interval: time.Second, AtOnce: true, Failure: "Failed", Recovery: "Recovered", Do: func(context.Context) error {
			n++
			return fails[(n-1)%len(fails)]
		}}
		at, log := runFor(t, 4500*time.Millisecond, task)
		if want := []float64{0, 1, 2, 3, 4}; !slices.Equal(at, want) || strings.Count(log, "Failed") != 4 || strings.Contains(log, "Recovered") {
			t.Errorf("ran at %v, want %v; log:\n%s", at, want, log)
		}
		n, task.Pauses = 0, retry.Pauses{First: 2 * time.Second, Max: 10 * time.Second}
		at, log = runFor(t, 25*time.Second, task)
		if want := []float64{0, 1, 3, 7, 15, 25}; !slices.Equal(at[:min(len(at), 5)], want[:5]) || strings.Count(log, "Failed") != 1 {
			t.Errorf("ran at %v, want %v; log:\n%s", at, want, log)
		}
		n = 0
		at, log = runFor(t, 26500*time.Millisecond, task)
		if want := []float64{0, 1, 3, 7, 15, 25, 26}; !slices.Equal(at, want) || strings.Count(log, "Recovered") != 1 {
			t.Errorf("ran at %v, want %v; log:\n%s", at, want, log)
		}
		n, fails = 0, []error{errors.New("busy")}
		task.Leads = func(context.Context) (bool, error) { return n < 2, nil } // the lead is lost within the outage
		if at, log = runFor(t, time.Minute, task); len(at) != 2 || strings.Contains(log, "Recovered") {
			t.Errorf("ran at %v without the lead; log:\n%s", at, log)
		}
	})
}

func TestPollAwaitsItsCondition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, gone := time.Now(), errors.New("gone")
		after := func(d time.Duration, err error) func() (bool, error) {
			return func() (bool, error) {
				if time.Since(began) < d {
					return false, nil
				}
				return err == nil, err
			}
		}
		if err := Poll(t.Context(), time.Second, after(0, nil)); err != nil || time.Since(began) != 0 {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if err := Poll(t.Context(), time.Second, after(1500*time.Millisecond, nil)); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if err := Poll(t.Context(), time.Second, after(3*time.Second, gone)); !errors.Is(err, gone) {
			t.Errorf("got %v, want the error of the function", err)
		}
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Second, gone)
		defer stop()
		if err := Poll(ctx, time.Second, after(time.Hour, nil)); !errors.Is(err, gone) {
			t.Errorf("got %v, want the cause of the end", err)
		}
	})
}
