// Package storetest is the world of tests below package sql: a store on a database, chats in it, its rows, and tracers of its
// statements. The databases are those of package sqltest.
package storetest

import (
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sql"
	"ebb/sql/facts"
	"ebb/sql/pg"
)

// Open opens a store on a database, and a pool for the statements of a test.
func Open(t *testing.T, url string) (*sql.Store, *pgxpool.Pool) {
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

// OpenTraced opens a store whose tracer sees each statement before it is sent, until the test ends.
func OpenTraced(t *testing.T, url string, conns int, tracer pgx.QueryTracer) *sql.Store {
	t.Helper()
	s, err := sql.Open(t.Context(), sql.Options{URL: url, MaxConns: conns, Configure: func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// OpenDB opens the base of stores, for a store that a test makes alone.
func OpenDB(t *testing.T, o pg.Options) *pg.DB {
	t.Helper()
	db, err := pg.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// Secret is what must be found nowhere after an erasure.
const Secret = "Zq7-13800138000"

// Must ends the test on an error.
func Must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// MissingDatabase is the address of a database that is not there, on the server of another one.
func MissingDatabase(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/no_such_database"
	return u.String()
}

// Library is memory as package show reads it.
type Library struct {
	*facts.Store
	*facts.Digests
}
