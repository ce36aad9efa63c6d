package document

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"
)

// The limits of a child. Files of 50 MB with 2,000 pages take some 200 MB and 20 s.
const (
	childMemory  = 512 << 20
	childSeconds = 60 // processor time
)

// watchTime is between two looks at the memory, for systems that don't bound it, and at the parent.
const watchTime = 20 * time.Millisecond

// confine bounds this process. The kernel ends it beyond the limits; where RLIMIT_DATA counts no mapped memory, as on macOS, the process ends
// itself. It ends with its parent too: a killed gateway leaves no parser behind.
func confine() error {
	debug.SetMemoryLimit(childMemory * 3 / 4)
	for what, most := range map[int]uint64{syscall.RLIMIT_DATA: childMemory, syscall.RLIMIT_CPU: childSeconds, syscall.RLIMIT_CORE: 0} {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(what, &now); err != nil {
			return err
		}
		most = min(most, now.Max)
		if err := syscall.Setrlimit(what, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return err
		}
	}
	parent := os.Getppid()
	go func() {
		total := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
		for range time.Tick(watchTime) {
			if metrics.Read(total); total[0].Value.Uint64() > childMemory || os.Getppid() != parent {
				os.Exit(1)
			}
		}
	}()
	return nil
}
