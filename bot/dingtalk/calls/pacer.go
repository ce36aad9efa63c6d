package calls

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// A number of calls may begin in this time: a second, and the variation of delays on the way.
const window = 1100 * time.Millisecond

// pacer is a sliding window, because a token bucket admits up to twice its rate within one second. Replicas have equal shares: the
// platform counts the calls of all.
type pacer struct {
	replicas *atomic.Int64
	turn     *semaphore.Weighted // Waiting callers are served in order.

	mu    sync.Mutex
	begun []time.Time // ring buffer of the latest calls
	next  int
	until time.Time // end of the pause
}

func newPacer(perWindow int, replicas *atomic.Int64) *pacer {
	return &pacer{replicas: replicas, turn: semaphore.NewWeighted(1), begun: make([]time.Time, perWindow)}
}

func (p *pacer) wait(ctx context.Context) error {
	if err := p.turn.Acquire(ctx, 1); err != nil {
		return err
	}
	defer p.turn.Release(1)
	for {
		d := p.delay(time.Now())
		if d <= 0 {
			break
		}
		timer := time.NewTimer(d)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun[p.next] = time.Now()
	p.next = (p.next + 1) % len(p.begun)
	return nil
}

// A pause may begin during the delay.
func (p *pacer) delay(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.until.Sub(now)
	share, stretch := p.share()
	if oldest := p.begun[(p.next+len(p.begun)-share)%len(p.begun)]; !oldest.IsZero() {
		d = max(d, oldest.Add(stretch).Sub(now))
	}
	return d
}

// share is the number of calls that this replica may begin in a time. More replicas than calls have one in a longer time each.
func (p *pacer) share() (n int, in time.Duration) {
	all, replicas := len(p.begun), int(p.replicas.Load())
	if replicas > all {
		return 1, window * time.Duration(replicas) / time.Duration(all)
	}
	return all / replicas, window
}

func (p *pacer) pause(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.until) {
		p.until = until
	}
}
