package bot

import (
	"testing"

	"go.uber.org/goleak"

	"ebb/compaction"
)

// counter is loaded once: its table takes a second under the race detector.
var counter = func() *compaction.Counter {
	c, err := compaction.NewCounter()
	if err != nil {
		panic(err)
	}
	return c
}()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
