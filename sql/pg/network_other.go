//go:build !linux

package pg

import (
	"syscall"
	"time"
)

// giveUpAfter does nothing, since this kernel lacks the option. Keep-alive probes remain.
func giveUpAfter(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
