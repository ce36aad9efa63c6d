package periodic_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/sessions/periodic"
)

// A task that panics ends neither the process nor itself. Its pauses grow while it panics, and its interval comes back afterwards.
func TestPanicOfATask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var runs atomic.Int64
		var broken atomic.Bool
		broken.Store(true)
		done := make(chan struct{})
		go func() {
			defer close(done)
			periodic.Run(ctx, periodic.Task{Interval: time.Second, Do: func(context.Context) error {
				runs.Add(1)
				if broken.Load() {
					panic("broken")
				}
				return nil
			}})
		}()
		time.Sleep(10 * time.Minute)
		if n := runs.Load(); n < 5 || n > 12 {
			t.Errorf("a task that panics ran %d times in ten minutes", n)
		}
		broken.Store(false)
		time.Sleep(10 * time.Minute)
		before := runs.Load()
		time.Sleep(time.Minute)
		if n := runs.Load() - before; n < 59 || n > 61 {
			t.Errorf("after that it ran %d times in a minute", n)
		}
		stop()
		<-done
	})
}
