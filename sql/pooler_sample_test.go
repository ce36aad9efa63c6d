package sql_test

import (
	"os"
	"strings"
	"testing"

	"ebb/sql"
	"ebb/sql/sqltest"
)

// The sample of docs/postgres.md loads as it stands, and the store works through it.
func TestPgBouncerSampleOfTheDocsWorks(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```ini\n[pgbouncer]\n")
	settings, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("docs/postgres.md has no sample of PgBouncer's settings")
	}
	address := sqltest.URL(t)
	pooler := sqltest.PoolerOf(t, address, settings)
	s, err := sql.Open(t.Context(), sql.Options{URL: pooler.Through(address), DirectURL: address, Pooler: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Leases.Beat(t.Context(), "replica"); err != nil {
		t.Fatal(err)
	}
}
