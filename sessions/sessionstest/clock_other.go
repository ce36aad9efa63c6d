//go:build !linux

package sessionstest

import "time"

func cpuTime(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
