package erasure_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// keptOfDeleted are the tables that keep rows of a deleted session, with the reason.
var keptOfDeleted = map[string]string{
	"audit": "it says who deleted what, until its period of retention ends",
	"cards": "an open card stays until it is closed, and is deleted then",
}

// P80: each table of the schema with a session_key is empty of a deleted session. A new table is found without a change of this test.
func TestDeletionReachesEachTable(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	s, pool := storetest.Open(t, url)
	c := storetest.NewChat(t, s, "cid", "u", false)
	c.Say("u", "hello")
	tables := storetest.Collect(t, pool, `SELECT c.relname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
		WHERE a.attname = 'session_key' AND NOT a.attisdropped AND c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`, pgx.RowTo[string])
	if len(tables) < 15 {
		t.Fatalf("found %d tables with a session_key: this test looks in the wrong place", len(tables))
	}
	count := func(table string) int {
		return storetest.Collect(t, pool, fmt.Sprintf(`SELECT count(*)::int FROM %s WHERE session_key = '%s'`, table, c.Reader.Key), pgx.RowTo[int])[0]
	}
	for _, table := range tables {
		for _, check := range storetest.Collect(t, pool, `SELECT conname::text FROM pg_constraint WHERE contype IN ('c', 'f') AND conrelid = '`+table+`'::regclass`, pgx.RowTo[string]) {
			storetest.Execute(t, pool, fmt.Sprintf(`ALTER TABLE %s DROP CONSTRAINT %q`, table, check)) // a row need not make sense
		}
		if count(table) == 0 {
			storetest.Execute(t, pool, fillerOf(t, pool, table), c.Reader.Key)
		}
	}
	if _, err := s.Erasure.Delete(t.Context(), c.Reader.Key); err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if n := count(table); n > 0 && keptOfDeleted[table] == "" {
			t.Errorf("%s keeps %d rows of a deleted session: delete them in SessionDelete", table, n)
		} else if n == 0 && keptOfDeleted[table] != "" {
			t.Errorf("%s keeps no row of a deleted session, and needs no exception", table)
		}
	}
}

// fillerOf is a statement that adds a row of the session $1 to a table, with a value of each column that needs one.
func fillerOf(t *testing.T, pool *pgxpool.Pool, table string) string {
	t.Helper()
	names, values := []string{"session_key"}, []string{"$1"}
	for _, column := range storetest.Collect(t, pool, `SELECT column_name || ' ' || udt_name FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name = '`+table+`' AND column_name <> 'session_key' AND is_nullable = 'NO' AND column_default IS NULL
		  AND is_generated = 'NEVER' AND is_identity = 'NO'`, pgx.RowTo[string]) {
		name, kind, _ := strings.Cut(column, " ")
		value := "'1'"
		switch {
		case strings.HasPrefix(kind, "_"), kind == "jsonb":
			value = "'{}'"
		case strings.HasPrefix(kind, "timestamp"), kind == "date":
			value = "now()"
		}
		names, values = append(names, name), append(values, value)
	}
	return fmt.Sprintf(`INSERT INTO %s (%s) VALUES (%s)`, table, strings.Join(names, ", "), strings.Join(values, ", "))
}
