package pg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A statement that cannot get on ends with its caller's patience, and is done once at most.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	a, err := s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{ID: "m", Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), "SELECT FROM dingtalk_sessions WHERE session_key = $1 FOR UPDATE", c.Reader.Key); err != nil {
		t.Fatal(err)
	}
	turn := sessions.TurnResult{Taken: []int64{a.EventID}, TakenTokens: []int{1}}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Turns.Commit(short, c.Lease, turn); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a commit behind a lock ended with %v, want its deadline", err)
	}
	// A message for a session whose row is locked is stored all the same: only turns need the row.
	if _, err := s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{ID: "m2", Text: "hi"}); err != nil {
		t.Error(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The server may have got to the first commit before it noticed the cancelled caller: then the second is refused.
	if _, err := s.Turns.Commit(t.Context(), c.Lease, turn); err != nil && !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("the commit after the lock was gone: %v", err)
	}
	if v, err := s.Sessions.Session(t.Context(), c.Reader.Key); err != nil || v.LastSeq != 3 {
		t.Errorf("the last place is %d (%v), want 3: the turn committed once", v.LastSeq, err)
	}
}
