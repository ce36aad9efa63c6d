package rig

import (
	"context"
	"time"

	"ebb/sessions/retry"
)

// Interval is a half-open stretch of time.
type Interval struct{ From, To time.Time }

// Contains includes From and excludes To.
func (s Interval) Contains(t time.Time) bool { return !t.Before(s.From) && t.Before(s.To) }

// WaitUntil reports whether ctx is still alive then.
func WaitUntil(ctx context.Context, at time.Time) bool { return retry.Sleep(ctx, time.Until(at)) }
