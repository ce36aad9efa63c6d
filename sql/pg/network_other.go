//go:build !linux

package pg

import (
	"syscall"
	"time"
)

// This kernel lacks the option. Keep-alive probes remain.
func giveUpAfter(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
