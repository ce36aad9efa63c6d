package limits

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sql/pg"
)

const (
	// freshRows is the usage of a day that each look sums. A longer sum is kept for dayAge, with the tokens that this process counts
	// meanwhile. The tokens of other replicas come later.
	freshRows = 1000
	dayAge    = 2 * time.Second
	dayTime   = 30 * time.Second // for a sum that no turn waits for
)

// day is the last sum of a day's tokens.
type day struct {
	now     func() time.Time // the storage's clock
	counted func() int64     // tokens of this process since its start
	sum     func(context.Context) (daySum, error)

	mu      sync.Mutex
	last    daySum
	before  int64 // counted before the sum
	read    time.Time
	reading bool
}

type daySum struct {
	tokens, rows int64
	ends         time.Time
}

func newDay(db *pg.DB) *day {
	return &day{now: db.Clock.Now, counted: db.Tokens.Load, sum: func(ctx context.Context) (daySum, error) {
		row, err := db.Q.SpendDay(ctx, db.Pool)
		if err != nil {
			return daySum{}, fmt.Errorf("reading the day's tokens: %w", err)
		}
		return daySum{row.Tokens, row.OfRows, row.EndsAt}, nil
	}}
}

// usedTokens returns the tokens of this day (UTC) in all conversations.
func (d *day) usedTokens(ctx context.Context) (sessions.LimitUse, error) {
	d.mu.Lock()
	last, more := d.last, d.counted()-d.before
	kept := last.rows > freshRows && d.now().Before(last.ends)
	renew := kept && !d.reading && time.Since(d.read) > dayAge
	d.reading = d.reading || renew
	d.mu.Unlock()
	if renew {
		go d.renew(context.WithoutCancel(ctx))
	}
	if kept {
		return sessions.LimitUse{Count: int(last.tokens + more), Until: last.ends}, nil
	}
	last, err := d.again(ctx)
	return sessions.LimitUse{Count: int(last.tokens), Until: last.ends}, err
}

// renew leaves the last sum after a failure: a later turn tries again.
func (d *day) renew(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, dayTime)
	defer stop()
	guard.Run(ctx, guard.Storage, func() { _, _ = d.again(ctx) })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reading = false
}

func (d *day) again(ctx context.Context) (daySum, error) {
	before := d.counted()
	sum, err := d.sum(ctx)
	if err != nil {
		return sum, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last, d.before, d.read = sum, before, time.Now()
	return sum, nil
}
