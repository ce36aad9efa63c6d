package bot

import (
	"testing"

	"go.uber.org/goleak"

	"ebb/compaction/tokens"
	"ebb/sql/sqltest"
)

// counter is loaded once: its table takes a second under the race detector.
var counter = func() *tokens.Counter {
	c, err := tokens.NewCounter()
	if err != nil {
		panic(err)
	}
	return c
}()

// The server of the tests' databases runs to the end; nothing else may be left.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("ebb/sql/localpg.(*Server).keep"), goleak.Cleanup(sqltest.Exit))
}
