package limits

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ebb/sessions"
)

const (
	// freshRows is the usage of a day that each look sums. A longer sum is kept for dayAge, with the tokens that this process counts
	// meanwhile: those of other replicas come later.
	freshRows = 1000
	dayAge    = 2 * time.Second
	dayTime   = 30 * time.Second // for a sum that no turn waits for
)

// day is the last sum of a day's tokens.
type day struct {
	mu      sync.Mutex
	tokens  int64
	counted int64 // by this process before the sum
	rows    int64
	ends    time.Time
	read    time.Time
	reading bool
}

// today returns the tokens of this day (UTC) in all conversations.
func (s *Store) today(ctx context.Context) (sessions.Use, error) {
	d := s.day
	d.mu.Lock()
	use, ok := d.use(s.Clock.Now(), s.Tokens.Load())
	renew := ok && !d.reading && time.Since(d.read) > dayAge
	d.reading = d.reading || renew
	d.mu.Unlock()
	if renew {
		go func() {
			background, stop := context.WithTimeout(context.WithoutCancel(ctx), dayTime)
			defer stop()
			_, _ = s.sumDay(background) // the last sum stays, and the next turn tries again
			d.mu.Lock()
			d.reading = false
			d.mu.Unlock()
		}()
	}
	if ok {
		return use, nil
	}
	return s.sumDay(ctx)
}

// use reports false without a sum that may be kept. The lock is held.
func (d *day) use(now time.Time, counted int64) (sessions.Use, bool) {
	return sessions.Use{Count: int(d.tokens + counted - d.counted), Until: d.ends}, d.rows > freshRows && now.Before(d.ends)
}

func (s *Store) sumDay(ctx context.Context) (sessions.Use, error) {
	counted := s.Tokens.Load()
	row, err := s.Q.SpendDay(ctx, s.Pool)
	if err != nil {
		return sessions.Use{}, fmt.Errorf("reading the day's tokens: %w", err)
	}
	d := s.day
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens, d.counted, d.rows, d.ends, d.read = row.Tokens, counted, row.OfRows, row.EndsAt, time.Now()
	return sessions.Use{Count: int(row.Tokens), Until: row.EndsAt}, nil
}
