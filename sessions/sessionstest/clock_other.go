//go:build !linux

package sessionstest

import "time"

// took is how long f takes.
func took(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
