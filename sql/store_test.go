package sql_test

import (
	"embed"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/sessionstest"
	"ebb/sql"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
	"ebb/sql/yardstick"
)

// open opens a store on a database, and a pool for the statements of a test.
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

// openTraced opens a store whose tracer sees each statement before it is sent, until the test ends.
func openTraced(t *testing.T, url string, conns int, tracer pgx.QueryTracer) *sql.Store {
	t.Helper()
	s, err := sql.Open(t.Context(), sql.Options{URL: url, MaxConns: conns, Configure: func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// openDB opens the base of stores, for a store that a test makes alone.
func openDB(t *testing.T, o pg.Options) *pg.DB {
	t.Helper()
	db, err := pg.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func execute(t *testing.T, pool *pgxpool.Pool, statement string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

// notePeople adds the people of logs that a test wrote.
func notePeople(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	if err := yardstick.NotePeople(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
}

func TestStore(t *testing.T) {
	sessionstest.TestStore(t, func(t *testing.T) sessionstest.Harness {
		t.Helper()
		url := sqltest.URL(t)
		a, pool := open(t, url)
		b, _ := open(t, url)
		return harness(a, b, pool)
	})
}

// Behind a pooler that hands out connections by the transaction all is the same.
func TestStoreBehindPooler(t *testing.T) {
	through := sqltest.Pooler(t, sqltest.URL(t)).Through
	sessionstest.TestStore(t, func(t *testing.T) sessionstest.Harness {
		t.Helper()
		url := sqltest.URL(t)
		_, pool := open(t, url)
		var stores [2]*sql.Store
		for i := range stores {
			s, err := sql.Open(t.Context(), sql.Options{URL: through(url), DirectURL: url, Pooler: true, MaxConns: 4})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			stores[i] = s
		}
		return harness(stores[0], stores[1], pool)
	})
}

// harness is what the suite needs of two stores on one database.
func harness(a, b *sql.Store, pool *pgxpool.Pool) sessionstest.Harness {
	return sessionstest.Harness{
		Store: a, Other: b, Histories: 12,
		Expire: func(t *testing.T, owner sessions.ReplicaID) {
			t.Helper()
			execute(t, pool, "UPDATE replicas SET heartbeat_at = now() - interval '1 hour' WHERE id = $1", owner)
		},
		DeleteRow: func(t *testing.T, key sessions.Key) {
			t.Helper()
			execute(t, pool, "DELETE FROM dingtalk_sessions WHERE session_key = $1", key)
		},
		EndWindows: func(t *testing.T, ago time.Duration) {
			t.Helper()
			execute(t, pool, "UPDATE limit_windows SET ends_at = now() - $1 * interval '1 second'", ago.Seconds())
		},
		FailFlush: func(t *testing.T, l sessions.Lease, failures int) {
			t.Helper()
			if err := a.Owe(t.Context(), l, memory.Debt{Failures: failures, Reason: "busy"}); err != nil {
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
		Summaries: func(t *testing.T, key sessions.Key) []sessions.Summary {
			t.Helper()
			return collect(t, pool, `SELECT id, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary AS text, level, status
				FROM session_summaries WHERE session_key = $1 ORDER BY id`, pgx.RowToStructByNameLax[sessions.Summary], key)
		},
		Blobs: func(t *testing.T, key sessions.Key) []string {
			t.Helper()
			return collect(t, pool, "SELECT blob_id FROM blobs WHERE session_key = $1 ORDER BY blob_id", pgx.RowTo[string], key)
		},
		SpoilBlob: func(t *testing.T, key sessions.Key, blob, body string) {
			t.Helper()
			if body == "" {
				execute(t, pool, "DELETE FROM blobs WHERE session_key = $1 AND blob_id = $2", key, blob)
				return
			}
			execute(t, pool, "UPDATE blobs SET body = $3 WHERE session_key = $1 AND blob_id = $2", key, blob, body)
		},
		Edit: func(t *testing.T, key sessions.Key, seq int64, content string) {
			t.Helper()
			execute(t, pool, "UPDATE dingtalk_session_events SET content = $3 WHERE session_key = $1 AND seq = $2", key, seq, content)
		},
	}
}

// summaryOf is a compaction of the events (from, through] into one summary.
func summaryOf(from, through int64, text string) sessions.Compaction {
	return sessions.Compaction{
		From: from, Through: through,
		Summaries: []sessions.NewSummary{{StartSeq: from + 1, EndSeq: through, Text: text, Tokens: 3}},
	}
}

func collect[T any](t *testing.T, pool *pgxpool.Pool, query string, to pgx.RowToFunc[T], args ...any) []T {
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

//go:embed testdata
var testdata embed.FS
