package pg

import (
	"net"
	"time"

	"github.com/jackc/pgx/v5"
)

// A network that swallows what is sent tells nobody. The system finds a connection dead when the server has not taken what
// was sent for deadAfter, and asks one that is silent for askAfter whether it lives. Without that the places of the pool
// would be full of connections which wait for an answer that can't come, long after the network is back.
const (
	deadAfter = 3 * time.Second
	askAfter  = 5 * time.Second
)

// lively has the connections that c is for found out when they are dead.
func lively(c *pgx.ConnConfig) {
	dialer := &net.Dialer{
		Timeout: c.ConnectTimeout, // a request to cancel something is bounded by nothing else
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: askAfter, Interval: time.Second, Count: int(deadAfter / time.Second),
		},
		Control: giveUpAfter(deadAfter),
	}
	c.DialFunc = dialer.DialContext
}
