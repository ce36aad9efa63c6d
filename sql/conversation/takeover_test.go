package conversation_test

import (
	"errors"
	"testing"

	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// Messages and replies of a dead process are found by the next one, whatever it was doing.
func TestNextProcessFindsWorkOfADeadOne(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	s, pool := storetest.Open(t, url)
	c := storetest.NewChat(t, s, "cid", "u", false)
	a, err := s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{ID: "m", Text: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Turns.Begin(t.Context(), a.Lease, 10); err != nil {
		t.Fatal(err)
	}
	storetest.Execute(t, pool, "UPDATE replicas SET heartbeat_at = now() - interval '6 seconds'")

	next, _ := storetest.Open(t, url)
	if _, err := next.Leases.Beat(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	keys, err := next.Inbox.Waiting(t.Context(), "b", 10)
	if err != nil || len(keys) != 1 {
		t.Fatalf("waiting are %v (%v), want the session of the dead process", keys, err)
	}
	l, err := next.Leases.Acquire(t.Context(), keys[0], "b")
	if err != nil {
		t.Fatal(err)
	}
	v, err := next.Turns.Begin(t.Context(), l, 10)
	if err != nil || len(v.Pending) != 1 || v.Pending[0].Attempts != 1 {
		t.Errorf("the next process sees %+v (%v), want the message with one attempt", v.Pending, err)
	}
	if _, err := s.Turns.Commit(t.Context(), a.Lease, sessions.TurnResult{Taken: []int64{a.EventID}, TakenTokens: []int{1}}); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("the dead process woke up and committed: %v", err)
	}
}
