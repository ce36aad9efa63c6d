package turn

import (
	"context"
	"testing"
	"testing/synctest"
)

// Suspects run one at a time, the least counted first. A suspect that leaves the line, or gets its place too late,
// blocks no other.
func TestSuspectsRunOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Suspects{Closed: make(chan struct{})}
		first, err := s.Enter(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		order := make(chan int, 4)
		for _, count := range []int{2, 1, 2, 1} {
			go func() {
				leave, err := s.Enter(t.Context(), count)
				if err == nil {
					order <- count
					leave()
				}
			}()
			synctest.Wait()
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { _, err := s.Enter(ctx, 1); ended <- err }()
		synctest.Wait()
		stop()
		if err := <-ended; err == nil {
			t.Error("a place was given to a suspect that had left")
		}
		want(t, "suspects that run beside the first", len(order), 0)
		first()
		first() // to leave twice gives one place
		var got []int
		for range 4 {
			got = append(got, <-order)
		}
		want(t, "order", got, []int{1, 1, 2, 2})
	})
}
