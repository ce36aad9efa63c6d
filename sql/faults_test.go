package sql_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

func TestConnectionsCut(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	ended := make(chan error, 1)
	listening := make(chan struct{}, 10)
	go func() { ended <- s.Inbox.Listen(t.Context(), "a", func(sessions.Key) { listening <- struct{}{} }) }()
	<-listening
	cut := func() {
		t.Helper()
		storetest.Execute(t, pool, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
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
		if _, err = s.Turns.Begin(t.Context(), c.Lease, 1); err == nil {
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

// The tables that others read are written as they expect.
func TestTablesForOthers(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	if _, err := s.Compactions.Compact(t.Context(), c.Lease, storetest.SummaryOf(0, 2, "s")); err != nil {
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
