package pg

import (
	"net"
	"time"

	"github.com/jackc/pgx/v5"
)

// A broken network reports nothing to either side. The kernel ends a connection when the server has not acknowledged
// data for deadAfter, and probes a silent one after askAfter. Otherwise dead connections would fill the pool.
const (
	deadAfter = 3 * time.Second
	askAfter  = 5 * time.Second
)

func detectDeadConns(c *pgx.ConnConfig) {
	dialer := &net.Dialer{
		Timeout: c.ConnectTimeout, // cancel requests have no other bound
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: askAfter, Interval: time.Second, Count: int(deadAfter / time.Second),
		},
		Control: giveUpAfter(deadAfter),
	}
	c.DialFunc = dialer.DialContext
}
