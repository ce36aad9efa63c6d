package bot_test

import (
	"testing"

	"go.uber.org/goleak"

	"ebb/sql/sqltest"
)

// The server of the tests' databases runs to the end; nothing else may be left.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("ebb/sql/localpg.(*Server).supervise"), goleak.Cleanup(sqltest.Exit))
}
