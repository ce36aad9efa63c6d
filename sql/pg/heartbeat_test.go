package pg_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// While every connection waits for a locked table, the replica lives all the same, and knows the leader.
func TestHeartbeatWaitsBehindNothing(t *testing.T) {
	t.Parallel()
	const conns, waiting = 3, 8
	url := sqltest.URL(t)
	_, pool := storetest.Open(t, url)
	s := storetest.Must[*sql.Store](t)(sql.Open(t.Context(), sql.Options{URL: url, MaxConns: conns, LeaseTTL: time.Minute}))
	defer s.Close()
	storetest.Must[time.Time](t)(s.Leases.Beat(t.Context(), "a"))
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "LOCK TABLE dingtalk_session_events IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, waiting)
	for i := range waiting {
		key := sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint("c", i)), "")
		go func() {
			_, err := s.Inbox.Accept(t.Context(), "a", key, sessions.Message{ID: "m", Text: "hi"})
			ended <- err
		}()
	}
	for n := 0; n < conns; { // all of them hang
		row := pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		if err := row.Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	for range 3 {
		storetest.Must[time.Time](t)(s.Leases.Beat(ctx, "a"))
	}
	if err := s.Replicas.Mark(ctx, "a", sessions.ReplicaStatus{Connected: true}); err != nil {
		t.Error(err)
	}
	if l := storetest.Must[sessions.Leader](t)(s.Replicas.Leader(ctx)); l != (sessions.Leader{Replica: "a", Connected: true}) {
		t.Errorf("who leads: %+v", l)
	}
	if err := s.Ping(ctx); err != nil {
		t.Error(err)
	}
	if len(ended) > 0 {
		t.Errorf("a message was stored while the table was held: %v", <-ended)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range waiting {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
