// Package persist repeats the writes of a turn through an outage of the storage, so that the model's work is not lost.
package persist

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions"
	"ebb/sessions/retry"
)

// Write repeats a write until ctx ends while the storage is unavailable, and at least once. timeout bounds one attempt. event is the log
// message of a failure.
func Write(ctx context.Context, timeout time.Duration, event string, write func(context.Context) error) error {
	return retry.Do(ctx, retry.Storage, func() error {
		one, stop := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer stop()
		err := write(one)
		if err != nil && sessions.IsFinal(err) {
			return retry.Permanent(err)
		}
		if err != nil {
			zerolog.Ctx(ctx).Warn().Err(err).Msg(event)
		}
		return err
	})
}
