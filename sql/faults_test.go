package sql_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
)

// A statement that cannot get on ends with its caller's patience, and is done once at most.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u", false)
	a, err := s.Accept(t.Context(), "a", c.reader.Key, sessions.Message{ID: "m", Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "SELECT FROM dingtalk_sessions WHERE session_key = $1 FOR UPDATE", c.reader.Key); err != nil {
		t.Fatal(err)
	}
	turn := sessions.Turn{Taken: []int64{a.EventID}, TakenTokens: []int{1}}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Commit(short, c.lease, turn); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a commit behind a lock ended with %v, want its deadline", err)
	}
	// A message for a session whose row is locked is stored all the same: only turns need the row.
	if _, err := s.Accept(t.Context(), "a", c.reader.Key, sessions.Message{ID: "m2", Text: "hi"}); err != nil {
		t.Error(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The server may have got to the first commit before it noticed the cancelled caller: then the second is refused.
	if _, err := s.Commit(t.Context(), c.lease, turn); err != nil && !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("the commit after the lock was gone: %v", err)
	}
	if v, err := s.Session(t.Context(), c.reader.Key); err != nil || v.LastSeq != 3 {
		t.Errorf("the last place is %d (%v), want 3: the turn committed once", v.LastSeq, err)
	}
}

func TestConnectionsCut(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u", false)
	ended := make(chan error, 1)
	listening := make(chan struct{}, 10)
	go func() { ended <- s.Listen(t.Context(), "a", func(sessions.Key) { listening <- struct{}{} }) }()
	<-listening
	cut := func() {
		t.Helper()
		execute(t, pool, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	}
	cut()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("listening ended without an error when its connection was cut")
		}
	case <-time.After(time.Minute):
		t.Error("listening did not notice that its connection was cut")
	}
	// Each connection that was cut fails once, and aloud; then all is well again.
	var err error
	for range 10 {
		if _, err = s.Begin(t.Context(), c.lease, 1); err == nil {
			break
		}
	}
	if err != nil {
		t.Errorf("the store did not recover from cut connections: %v", err)
	}
}

func TestOpenFails(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{
		"nonsense":  "postgres://user:hunter2@host:port/",
		"no server": "postgres://user:hunter2@127.0.0.1:1/x?connect_timeout=5",
		"no socket": "host=/nonexistent user=user password=hunter2",
	} {
		s, err := sql.Open(t.Context(), sql.Options{URL: url})
		if err == nil {
			s.Close()
			t.Errorf("%s: a store was opened", name)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error has the password: %v", name, err)
		}
		if _, err := sql.Migrate(t.Context(), url); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: migrating gave %v", name, err)
		}
	}
}

// Messages and replies of a dead process are found by the next one, whatever it was doing.
func TestNextProcessFindsWorkOfADeadOne(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	s, pool := open(t, url)
	c := newChat(t, s, "cid", "u", false)
	a, err := s.Accept(t.Context(), "a", c.reader.Key, sessions.Message{ID: "m", Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(t.Context(), a.Lease, 10); err != nil {
		t.Fatal(err)
	}
	execute(t, pool, "UPDATE replicas SET heartbeat_at = now() - interval '6 seconds'")

	next, _ := open(t, url)
	if _, err := next.Beat(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	keys, err := next.Waiting(t.Context(), "b", 10)
	if err != nil || len(keys) != 1 {
		t.Fatalf("waiting are %v (%v), want the session of the dead process", keys, err)
	}
	l, err := next.Acquire(t.Context(), keys[0], "b")
	if err != nil {
		t.Fatal(err)
	}
	v, err := next.Begin(t.Context(), l, 10)
	if err != nil || len(v.Pending) != 1 || v.Pending[0].Attempts != 1 {
		t.Errorf("the next process sees %+v (%v), want the message with one attempt", v.Pending, err)
	}
	if _, err := s.Commit(t.Context(), a.Lease, sessions.Turn{Taken: []int64{a.EventID}, TakenTokens: []int{1}}); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("the dead process woke up and committed: %v", err)
	}
}

// The tables that others read are written as they expect.
func TestTablesForOthers(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u", false)
	if _, err := s.Compact(t.Context(), c.lease, summaryOf(0, 2, "s")); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		`SELECT concat_ws(' ', robot_code, conversation_id, conversation_type, compaction_count, flush_count) FROM dingtalk_sessions`:     "robot cid 2 1 0",
		`SELECT string_agg(concat_ws(':', role, seq, is_archived), ' ' ORDER BY id) FROM dingtalk_session_events`:                         "user:1:t assistant:2:t summary:f",
		`SELECT concat_ws(' ', start_seq, end_seq, end_msg_id - start_msg_id, msg_count, summary, level, status) FROM session_summaries`:  "1 2 1 2 s 0 active",
		`SELECT concat_ws(' ', start_seq, end_seq, outcome, summary_id = (SELECT id FROM session_summaries)) FROM compaction_log`:         "1 2 committed t",
		`SELECT concat_ws(' ', lease_owner, lease_term, last_active_at IS NOT NULL, updated_at >= last_active_at) FROM dingtalk_sessions`: "a 1 t t",
	} {
		var got string
		if err := pool.QueryRow(t.Context(), query).Scan(&got); err != nil && !errors.Is(err, pgx.ErrNoRows) || got != want {
			t.Errorf("%s\ngave %q (%v), want %q", query, got, err, want)
		}
	}
}
