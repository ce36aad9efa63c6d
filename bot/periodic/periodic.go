package periodic

import (
	"context"
	"time"

	"github.com/rs/zerolog"
)

// Every calls f at each tick at which ready holds. It returns when ctx ends.
func Every(ctx context.Context, d time.Duration, ready func() bool, f func(context.Context)) {
	t := time.NewTicker(d)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if ready() {
			f(ctx)
		}
	}
}

// LogFailure logs a failure of background work, unless ctx has ended: a stop is no failure.
func LogFailure(ctx context.Context, err error, event string) {
	if ctx.Err() == nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg(event)
	}
}
