package sessionstest

import (
	"runtime"
	"syscall"
	"time"
)

// took is the processor's time that f takes: others on a busy machine do not count.
func took(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := spent()
	f()
	return spent() - before
}

// spent is the processor's time of this thread so far.
func spent() time.Duration {
	const thisThread = 1
	var u syscall.Rusage
	if err := syscall.Getrusage(thisThread, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
