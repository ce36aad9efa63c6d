//go:build !linux

package sessionstest

import "time"

// took is how long f takes.
func took(f func(string), text string) time.Duration {
	began := time.Now()
	f(text)
	return time.Since(began)
}
