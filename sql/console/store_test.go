package console_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sql/yardstick"
)

// notePeople adds the people of logs that a test wrote.
func notePeople(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	if err := yardstick.NotePeople(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
}
