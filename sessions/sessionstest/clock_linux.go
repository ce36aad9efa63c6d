package sessionstest

import (
	"runtime"
	"syscall"
	"time"
)

// cpuTime is the processor's time that f takes: others on a busy machine do not count.
func cpuTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	f()
	return threadTime() - before
}

// threadTime is the processor's time of this thread so far.
func threadTime() time.Duration {
	const thisThread = 1
	var u syscall.Rusage
	if err := syscall.Getrusage(thisThread, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
