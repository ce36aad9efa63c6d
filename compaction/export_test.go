package compaction

import (
	"sync"

	"ebb/compaction/tokens"
)

// counter is loaded once: the table takes a second under the race detector.
var counter = sync.OnceValue(func() *tokens.Counter {
	c, err := tokens.NewCounter()
	if err != nil {
		panic(err)
	}
	return c
})

// TestCounter is the counter of the tests, for those outside the package.
var TestCounter = counter
