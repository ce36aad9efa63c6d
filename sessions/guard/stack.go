package guard

import "runtime"

// roomOnStack is the stack of a turn that asks a model, approximately. It becomes the next power of two, 64 KB.
const roomOnStack = 56 << 10

// GrowStack makes room on the stack of a goroutine before it goes deep. Otherwise the stack grows in several steps, each of which
// copies all of it and corrects the pointers in it.
//
//go:noinline
func GrowStack() {
	var room [roomOnStack]byte
	runtime.KeepAlive(room[:])
}
