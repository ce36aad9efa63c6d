package pg

import (
	"sync/atomic"
	"time"
)

// Clock is the server's clock, by its answer to the last heartbeat or ping: clocks of replicas may differ by hours. [Open] sets it.
type Clock struct{ last atomic.Pointer[reading] }

type reading struct{ theirs, ours time.Time }

// Set notes what the server's clock showed between sent and now.
func (c *Clock) Set(theirs, sent time.Time) {
	c.last.Store(&reading{theirs: theirs, ours: sent.Add(time.Since(sent) / 2)})
}

// Now is the time by the server's clock.
func (c *Clock) Now() time.Time {
	r := c.last.Load()
	if r == nil {
		return time.Now()
	}
	return r.theirs.Add(time.Since(r.ours))
}
