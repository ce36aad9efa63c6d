package sql_test

import (
	"embed"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sessions"
	"ebb/sessions/sessionstest"
	"ebb/sql"
	"ebb/sql/sqltest"
)

// open opens a store on a database, and a pool beside it for what only a test would do.
func open(t *testing.T, url string) (*sql.Store, *pgxpool.Pool) {
	t.Helper()
	s, err := sql.Open(t.Context(), sql.Options{URL: url, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return s, pool
}

func execute(t *testing.T, pool *pgxpool.Pool, statement string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func TestStore(t *testing.T) {
	sessionstest.TestStore(t, func(t *testing.T) sessionstest.Harness {
		t.Helper()
		url := sqltest.URL(t)
		a, pool := open(t, url)
		b, _ := open(t, url)
		return sessionstest.Harness{
			Store: a, Other: b,
			Expire: func(t *testing.T, owner sessions.ReplicaID) {
				t.Helper()
				execute(t, pool, "UPDATE replicas SET heartbeat_at = now() - interval '1 hour' WHERE id = $1", owner)
			},
			FailFlush: func(t *testing.T, l sessions.Lease, failures int) {
				t.Helper()
				if err := a.Owe(t.Context(), l, 0, failures, "busy"); err != nil {
					t.Fatal(err)
				}
			},
			Log: func(t *testing.T, key sessions.Key) []sessions.Event {
				t.Helper()
				events, err := a.Events(t.Context(), key, 0, 1000)
				if err != nil {
					t.Fatal(err)
				}
				return events
			},
		}
	})
}

//go:embed testdata
var testdata embed.FS
