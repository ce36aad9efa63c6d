package calls

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// A number of calls may begin in this time: a second, and the variation of delays on the way.
const window = 1100 * time.Millisecond

// pacer is a sliding window, because a token bucket admits up to twice its rate within one second.
type pacer struct {
	turn *semaphore.Weighted // Waiting callers are served in order.

	mu    sync.Mutex
	begun []time.Time // ring buffer of the latest calls
	next  int
	until time.Time // end of the pause
}

func newPacer(perWindow int) *pacer {
	return &pacer{turn: semaphore.NewWeighted(1), begun: make([]time.Time, perWindow)}
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
	if oldest := p.begun[p.next]; !oldest.IsZero() {
		d = max(d, oldest.Add(window).Sub(now))
	}
	return d
}

func (p *pacer) pause(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(d); until.After(p.until) {
		p.until = until
	}
}
