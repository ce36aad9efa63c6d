package periodic

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions/guard"
	"ebb/sessions/retry"
)

// Task is background work that is repeated. Only Interval and Do are required.
type Task struct {
	Interval time.Duration
	AtOnce   bool                                    // the first run does not wait for Interval
	Timeout  time.Duration                           // limit of one run
	Ready    func() bool                             // nil, or false to skip a run
	Leads    func(ctx context.Context) (bool, error) // nil, or false to skip a run on a replica that does not lead
	Do       func(ctx context.Context) error
	Failure  string // log event of an error; without one, Do logs its errors

	// Pauses replace Interval after errors. An outage is logged once then, and its end as the event Recovery. An error
	// with a method Wait names the minimum of its pause, up to Pauses.Max.
	Pauses   retry.Pauses
	Recovery string
}

// Run repeats a task until ctx ends. Runs do not overlap. A panic is an error of its run; the next one comes after a growing pause.
func Run(ctx context.Context, t Task) {
	tick := time.NewTicker(t.Interval)
	defer tick.Stop()
	var outage *retry.Series
	for again := t.AtOnce; ; again = true {
		if again {
			ran, err := t.runOnce(ctx)
			switch {
			case ran && err == nil && outage != nil:
				if t.Recovery != "" {
					zerolog.Ctx(ctx).Info().Msg(t.Recovery)
				}
				outage = nil
				tick.Reset(t.Interval)
			case err != nil && outage == nil && t.Failure != "" && !errors.Is(err, guard.ErrPanicked): // a panic is logged
				LogFailure(ctx, err, t.Failure)
			}
			pauses := t.Pauses
			if errors.Is(err, guard.ErrPanicked) && pauses == (retry.Pauses{}) {
				pauses = retry.Pauses{First: max(t.Interval, time.Second), Max: max(t.Interval, longestPanicPause)}
			}
			if err != nil && pauses != (retry.Pauses{}) {
				if outage == nil {
					outage = pauses.Start()
				}
				tick.Reset(pause(outage, pauses.Max, err))
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (t *Task) runOnce(ctx context.Context) (ran bool, err error) {
	if t.Ready != nil && !t.Ready() {
		return false, nil
	}
	if t.Timeout > 0 {
		one, stop := context.WithTimeout(ctx, t.Timeout)
		defer stop()
		ctx = one
	}
	if t.Leads != nil {
		if leads, err := t.Leads(ctx); err != nil || !leads {
			return false, err
		}
	}
	return true, guard.Do(ctx, guard.Task, func() error { return t.Do(ctx) })
}

// longestPanicPause bounds the pauses of a task that panics each time.
const longestPanicPause = 5 * time.Minute

func pause(outage *retry.Series, longest time.Duration, err error) time.Duration {
	d := outage.NextBackOff()
	if waits, ok := errors.AsType[interface {
		error
		Wait() time.Duration
	}](err); ok {
		d = max(d, min(waits.Wait(), longest))
	}
	return d
}

// Poll calls f at once and then at intervals until it reports true or an error. It returns ctx's cause when ctx ends
// first.
func Poll(ctx context.Context, interval time.Duration, f func() (bool, error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if done, err := f(); done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// LogFailure logs a failure of background work, unless ctx has ended.
func LogFailure(ctx context.Context, err error, event string) {
	if ctx.Err() == nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg(event)
	}
}
