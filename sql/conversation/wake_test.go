package conversation_test

import (
	"slices"
	"strings"
	"testing"

	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/pg"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A commit counts, though the notification after it fails: the sweep of the next owner finds the session.
func TestLostNotificationsCostNothing(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	other, pool := storetest.Open(t, url)
	storetest.Execute(t, pool, `CREATE FUNCTION public.pg_notify(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'no notification'; END $$`)
	sign := "?"
	if strings.Contains(url, "?") {
		sign = "&"
	}
	failing := url + sign + "search_path=public,pg_catalog"
	s, err := sql.Open(t.Context(), sql.Options{URL: failing})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	db := storetest.OpenDB(t, pg.Options{URL: failing})
	if err := db.Q.Notify(t.Context(), db.Pool, "|"); err == nil {
		t.Fatal("notifications do not fail")
	}
	const a, b = sessions.ReplicaID("a"), sessions.ReplicaID("b")
	key := sessions.NewKey(storetest.Robot, "cid", "")
	say := func(id sessions.MessageID) sessions.Accepted {
		t.Helper()
		return storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), a, key, sessions.Message{
			RobotCode: storetest.Robot, ConversationID: "cid", ConversationType: sessions.Group, ID: id, SenderID: "li", Text: "q", Kind: "text",
		}))
	}
	waits := func(owner sessions.ReplicaID, after string) {
		t.Helper()
		if keys := storetest.Must[[]sessions.Key](t)(other.Inbox.Waiting(t.Context(), owner, 10)); !slices.Contains(keys, key) {
			t.Errorf("after %s the sweep of %s finds %q", after, owner, keys)
		}
	}
	for _, r := range []sessions.ReplicaID{a, b} {
		if _, err := s.Leases.Beat(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Replicas.Mark(t.Context(), a, sessions.ReplicaStatus{Connected: true}); err != nil {
		t.Errorf("the status is stored, and its error is %v", err)
	}
	l := say("m1").Lease
	if err := s.Leases.Release(t.Context(), l); err != nil {
		t.Errorf("the lease is free, and its error is %v", err)
	}
	waits(b, "a release")
	storetest.Must[sessions.Lease](t)(s.Leases.Acquire(t.Context(), key, b))
	if got := say("m2"); !got.New || got.Lease.Owner != b {
		t.Errorf("a message for %s is accepted as %+v", b, got)
	}
	waits(b, "a message for it")
	if n, err := s.Leases.Resign(t.Context(), b); n != 1 || err != nil {
		t.Errorf("%d leases are given up (%v), want 1", n, err)
	}
	waits(a, "the stop of the other one")
}
