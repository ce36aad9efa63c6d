package limits

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Turns at one moment share a sum of a long day, and wait for none but the first. The next day is summed at once.
func TestSumOfALongDay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sums, counted atomic.Int64
		tokens, midnight := int64(5000), time.Now().Add(time.Hour)
		d := &day{now: time.Now, counted: counted.Load, sum: func(context.Context) (daySum, error) {
			if sums.Add(1) > 1 {
				time.Sleep(time.Second)
			}
			return daySum{tokens, freshRows + 1, midnight}, nil
		}}
		use := func(want int) {
			t.Helper()
			began := time.Now()
			u, err := d.usedTokens(t.Context())
			if err != nil || u.Count != want || !u.Until.Equal(midnight) || time.Since(began) > 0 {
				t.Errorf("the day has %+v after %v (%v), want %d tokens at once", u, time.Since(began), err, want)
			}
		}
		use(5000)
		counted.Add(10)
		tokens = 5100 // the own 10 are among them
		for range 50 {
			use(5010)
		}
		time.Sleep(dayAge + time.Millisecond)
		for range 50 {
			use(5010)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		use(5100)
		if n := sums.Load(); n != 2 {
			t.Errorf("the day was summed %d times, want 2", n)
		}
		time.Sleep(time.Hour)
		tokens, midnight = 0, midnight.Add(24*time.Hour)
		if u, err := d.usedTokens(t.Context()); err != nil || u.Count != 0 || !u.Until.Equal(midnight) {
			t.Errorf("the next day has %+v (%v), want no tokens", u, err)
		}
	})
}
