package sqltest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/sql/sqltest"
)

func TestMain(m *testing.M) { sqltest.Main(m) }

func count(t *testing.T, url, query string) int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var n int
	if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

const (
	tables  = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
	beating = "SELECT count(*) FROM replicas"
)

func TestDatabasesAreApart(t *testing.T) {
	t.Parallel()
	a, b := sqltest.URL(t), sqltest.URL(t)
	if a == b {
		t.Fatalf("two databases have the address %s", a)
	}
	conn, err := pgx.Connect(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "INSERT INTO replicas (id) VALUES ('x')"); err != nil {
		t.Fatal(err)
	}
	if got := count(t, b, beating); got != 0 {
		t.Errorf("the other database has %d rows of the first", got)
	}
}

func TestEmptyIsEmpty(t *testing.T) {
	t.Parallel()
	if got := count(t, sqltest.Empty(t), tables); got != 0 {
		t.Errorf("an empty database has %d tables", got)
	}
}

func TestDatabaseGoesWithItsTest(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("inner", func(t *testing.T) {
		url = sqltest.URL(t)
		if err := sqltest.New(t).Ping(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Error("the database of a test that ended is still there")
	}
}
