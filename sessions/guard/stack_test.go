package guard

import (
	"testing"
)

// deep goes as deep as a turn, by small frames with pointers in them.
//
//go:noinline
func deep(n int, from *[16]*int) int {
	var frame [16]*int
	frame[n%16] = from[(n+1)%16]
	if n == 0 {
		return 1
	}
	return 1 + deep(n-1, &frame)
}

// A goroutine that goes deep at once costs less when it first makes the room.
func BenchmarkGoroutine(b *testing.B) {
	for name, first := range map[string]func(){"grows in steps": func() {}, "grows at once": GrowStack} {
		b.Run(name, func(b *testing.B) {
			done := make(chan int)
			for b.Loop() {
				go func() {
					first()
					done <- deep(220, new([16]*int))
				}()
				<-done
			}
		})
	}
}
