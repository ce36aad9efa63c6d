package approvals_test

import (
	"testing"

	"ebb/sql/sqltest"
)

func TestMain(m *testing.M) { sqltest.Main(m) }
