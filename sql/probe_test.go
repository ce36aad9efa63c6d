package sql_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
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
	if _, err := sql.Trace(t.Context(), storetest.MissingDatabase(t, address)); err == nil {
		t.Error("a database that is not there answers")
	}
}

// Another client of a pooler may use the process that answered last. A pooler that uses its processes in turn shows the same.
func TestTraceOfPoolers(t *testing.T) {
	t.Parallel()
	address := sqltest.URL(t)
	for name, tt := range map[string]struct {
		settings string
		want     sql.Between
	}{
		"in turn":    {"pool_mode = transaction\nserver_round_robin = 1", sql.TransactionPooler},
		"by session": {"pool_mode = session", sql.SessionPooler},
	} {
		t.Run(name, func(t *testing.T) {
			through := sqltest.PoolerOf(t, address, tt.settings+"\nignore_startup_parameters = extra_float_digits\n").Through(address)
			useProcesses(t, through, 4)
			for range 5 {
				if lead, err := sql.Trace(t.Context(), through); err != nil || lead.Between != tt.want {
					t.Errorf("found %q (%v), want %q", lead.Between, err, tt.want)
				}
			}
		})
	}
}

// useProcesses has the pooler start processes, by transactions at the same time.
func useProcesses(t *testing.T, address string, count int) {
	t.Helper()
	for range count {
		conn, err := pgx.Connect(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
				t.Error(err)
			}
		}()
	}
}
