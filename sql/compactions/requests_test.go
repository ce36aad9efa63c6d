package compactions_test

import (
	"errors"
	"testing"

	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A requested compaction is one a session, is given to the replica that has the session or may take it, and stays until its end.
func TestCompactionRequests(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	key := c.Reader.Key
	if err := s.Requests.RequestCompaction(t.Context(), sessions.CompactionRequest{Key: "r/missing"}); !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("a request for no session gave %v", err)
	}
	if err := s.Requests.RequestCompaction(t.Context(), sessions.CompactionRequest{Key: key, Settings: `{"policy":"turns"}`, Focus: "端口", RequestedBy: "admin.token"}); err != nil {
		t.Fatal(err)
	}
	if err := s.Requests.RequestCompaction(t.Context(), sessions.CompactionRequest{Key: key}); !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("a second request gave %v", err)
	}
	due := func(owner sessions.ReplicaID, want int) []sessions.CompactionRequest {
		t.Helper()
		list, err := s.Requests.CompactionRequests(t.Context(), owner, 10)
		if err != nil || len(list) != want {
			t.Fatalf("replica %s gets %d requests (%v), want %d", owner, len(list), err, want)
		}
		return list
	}
	due("another", 0)
	if r := due(c.Lease.Owner, 1)[0]; r.Settings != `{"policy":"turns"}` || r.Focus != "端口" || r.RequestedBy != "admin.token" || !r.Started.IsZero() {
		t.Errorf("the request is %+v", r)
	}
	stale := c.Lease
	stale.Term--
	if n, err := s.Requests.StartRequest(t.Context(), stale); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("under an old lease attempt %d began (%v)", n, err)
	}
	start := func(l sessions.Lease, want int) {
		t.Helper()
		if n, err := s.Requests.StartRequest(t.Context(), l); err != nil || n != want {
			t.Fatalf("attempt %d began (%v), want %d", n, err, want)
		}
	}
	start(c.Lease, 1)
	if err := s.Requests.ReturnRequest(t.Context(), c.Lease, 1); err != nil {
		t.Fatal(err)
	}
	if r := due(c.Lease.Owner, 1)[0]; r.Attempts != 0 || !r.Started.IsZero() {
		t.Errorf("after an attempt that did not begin the request is %+v", r)
	}
	start(c.Lease, 1)
	storetest.Execute(t, pool, "UPDATE replicas SET heartbeat_at = now() - interval '1 hour'") // the replica died
	if r := due("another", 1)[0]; r.Attempts != 1 || r.Started.IsZero() {
		t.Errorf("after a death the request is %+v, want one attempt", r)
	}
	next := storetest.Must[sessions.Lease](t)(s.Leases.Acquire(t.Context(), key, "another"))
	end := func(l sessions.Lease, attempt int, there bool) {
		t.Helper()
		if err := s.Requests.EndRequest(t.Context(), l, attempt); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := s.Requests.CompactionRequested(t.Context(), key); ok != there || err != nil {
			t.Fatalf("after the end of attempt %d of %s the request is there: %t (%v)", attempt, l.Owner, ok, err)
		}
	}
	end(c.Lease, 1, true) // the former owner comes late
	start(next, 2)
	end(next, 1, true)
	end(c.Lease, 2, true)
	end(next, 2, false)
	if _, err := s.Requests.StartRequest(t.Context(), next); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("an attempt at an ended request gave %v", err)
	}
}
