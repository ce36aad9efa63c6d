package sql_test

import (
	"testing"

	"ebb/sql"
	"ebb/sql/sqltest"
)

func TestTrace(t *testing.T) {
	t.Parallel()
	address := sqltest.URL(t)
	direct, err := sql.Trace(t.Context(), address)
	if err != nil || direct.Between != sql.Nothing || direct.Version == "" {
		t.Fatalf("the server itself is %+v (%v)", direct, err)
	}
	through, err := sql.Trace(t.Context(), sqltest.Pooler(t, address).Through(address))
	if err != nil || through.Between != sql.TransactionPooler || through.Identity != direct.Identity {
		t.Errorf("through a pooler it is %+v (%v), want the same database as %+v", through, err, direct)
	}
	other, err := sql.Trace(t.Context(), sqltest.URL(t))
	if err != nil || other.Identity == direct.Identity {
		t.Errorf("another database is %+v (%v), the same as %+v", other, err, direct)
	}
	if _, err := sql.Trace(t.Context(), missing(t, address)); err == nil {
		t.Error("a database that is not there answers")
	}
}
