package storetest

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// Number returns the number that a query gives.
func Number(t *testing.T, pool *pgxpool.Pool, query string, args ...any) int {
	t.Helper()
	var n int
	if err := pool.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Period of the tests: events of 50 hours and more are past it.
const Period = 49*time.Hour + 30*time.Minute

// PlacesOf lists the places of the events of a log.
func PlacesOf(t *testing.T, pool *pgxpool.Pool, key sessions.Key) []int64 {
	t.Helper()
	return Collect(t, pool, "SELECT seq FROM dingtalk_session_events WHERE session_key = $1 AND seq IS NOT NULL ORDER BY seq", pgx.RowTo[int64], key)
}

// AwaitBlocked waits until a statement of another connection waits for a lock.
func AwaitBlocked(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for Number(t, pool, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 0 {
		if t.Context().Err() != nil {
			t.Fatal("no statement waited for the lock")
		}
	}
}

// FlushesOf lists the receipts of a session, newest first.
func FlushesOf(t *testing.T, pool *pgxpool.Pool, key sessions.Key) []dbsqlc.MemoryFlush {
	t.Helper()
	rows, err := pool.Query(t.Context(), "SELECT * FROM memory_flushes WHERE session_key = $1 ORDER BY created_at DESC, id DESC", key)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByName[dbsqlc.MemoryFlush])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Execute runs a statement.
func Execute(t *testing.T, pool *pgxpool.Pool, statement string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// Collect returns the rows of a query.
func Collect[T any](t *testing.T, pool *pgxpool.Pool, query string, to pgx.RowToFunc[T], args ...any) []T {
	t.Helper()
	rows, err := pool.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, to)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// WantGone fails the test where a word is left in any table. A word has a letter: digits alone also stand in timestamps.
func WantGone(t *testing.T, pool *pgxpool.Pool, words ...string) {
	t.Helper()
	all := Dump(t, pool)
	for _, w := range words {
		if !strings.ContainsFunc(w, unicode.IsLetter) {
			t.Fatalf("%q has no letter", w)
		}
		if left := Lines(all, w); left != "" {
			t.Errorf("left of %s are\n%.600s", w, left)
		}
	}
}

// Dump is every row of every table that there is, as text.
func Dump(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	var all strings.Builder
	tables := Collect(t, pool, "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'", pgx.RowTo[string])
	for _, table := range tables {
		id := pgx.Identifier{table}.Sanitize()
		for _, row := range Collect(t, pool, "SELECT x::text || to_jsonb(x)::text FROM "+id+" x", pgx.RowTo[string]) {
			all.WriteString(table + " " + row + "\n")
		}
	}
	if len(tables) < 10 {
		t.Fatalf("only %d tables were looked at", len(tables))
	}
	return all.String()
}

// Lines are those of a text with a word in them.
func Lines(text, word string) string {
	var found []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}

// MemoryLike returns the number of the only fact in force that is LIKE a pattern.
func MemoryLike(t *testing.T, pool *pgxpool.Pool, like string) int64 {
	t.Helper()
	ids := Collect(t, pool, "SELECT id FROM memories WHERE superseded_by IS NULL AND content LIKE '"+like+"'", pgx.RowTo[int64])
	if len(ids) != 1 {
		t.Fatalf("%d memories are like %s", len(ids), like)
	}
	return ids[0]
}
