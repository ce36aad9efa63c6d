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
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

func TestStore(t *testing.T) {
	sessionstest.TestStore(t, func(t *testing.T) sessionstest.Harness {
		t.Helper()
		url := sqltest.URL(t)
		a, pool := storetest.Open(t, url)
		b, _ := storetest.Open(t, url)
		return harness(a, b, pool)
	})
}

// Behind a pooler that hands out connections by the transaction all is the same.
func TestStoreBehindPooler(t *testing.T) {
	through := sqltest.Pooler(t, sqltest.URL(t)).Through
	sessionstest.TestStore(t, func(t *testing.T) sessionstest.Harness {
		t.Helper()
		url := sqltest.URL(t)
		_, pool := storetest.Open(t, url)
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

func storage(s *sql.Store) sessionstest.Storage {
	return sessionstest.Storage{Stores: s.Ports(), Erasure: s.Erasure, Replicas: s.Replicas, Approvals: s.Approvals}
}

// harness is what the suite needs of two stores on one database.
func harness(a, b *sql.Store, pool *pgxpool.Pool) sessionstest.Harness {
	return sessionstest.Harness{
		Store: storage(a), Other: storage(b), Histories: 12,
		Expire: func(t *testing.T, owner sessions.ReplicaID) {
			t.Helper()
			storetest.Execute(t, pool, "UPDATE replicas SET heartbeat_at = now() - interval '1 hour' WHERE id = $1", owner)
		},
		DeleteRow: func(t *testing.T, key sessions.Key) {
			t.Helper()
			storetest.Execute(t, pool, "DELETE FROM dingtalk_sessions WHERE session_key = $1", key)
		},
		EndWindows: func(t *testing.T, ago time.Duration) {
			t.Helper()
			storetest.Execute(t, pool, "UPDATE limit_windows SET ends_at = now() - $1 * interval '1 second'", ago.Seconds())
		},
		FailFlush: func(t *testing.T, l sessions.Lease, failures int) {
			t.Helper()
			if err := a.Flushes.Owe(t.Context(), l, memory.Debt{Failures: failures, Reason: "busy"}); err != nil {
				t.Fatal(err)
			}
		},
		Log: func(t *testing.T, key sessions.Key) []sessions.Event {
			t.Helper()
			events, err := a.Lists.Events(t.Context(), key, 0, 1000)
			if err != nil {
				t.Fatal(err)
			}
			return events
		},
		Summaries: func(t *testing.T, key sessions.Key) []sessions.Summary {
			t.Helper()
			return storetest.Collect(t, pool, `SELECT id, start_seq, end_seq, start_msg_id, end_msg_id, msg_count, summary AS text, level, status
				FROM session_summaries WHERE session_key = $1 ORDER BY id`, pgx.RowToStructByNameLax[sessions.Summary], key)
		},
		Blobs: func(t *testing.T, key sessions.Key) []string {
			t.Helper()
			return storetest.Collect(t, pool, "SELECT blob_id FROM blobs WHERE session_key = $1 ORDER BY blob_id", pgx.RowTo[string], key)
		},
		SpoilBlob: func(t *testing.T, key sessions.Key, blob, body string) {
			t.Helper()
			if body == "" {
				storetest.Execute(t, pool, "DELETE FROM blobs WHERE session_key = $1 AND blob_id = $2", key, blob)
				return
			}
			storetest.Execute(t, pool, "UPDATE blobs SET body = $3 WHERE session_key = $1 AND blob_id = $2", key, blob, body)
		},
		Edit: func(t *testing.T, key sessions.Key, seq int64, content string) {
			t.Helper()
			storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET content = $3 WHERE session_key = $1 AND seq = $2", key, seq, content)
		},
	}
}

//go:embed testdata
var testdata embed.FS
