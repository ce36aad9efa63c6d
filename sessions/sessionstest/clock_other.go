//go:build !linux

package sessionstest

import "time"

// cpuTime is how long f takes.
func cpuTime(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
