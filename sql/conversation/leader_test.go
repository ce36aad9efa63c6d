package conversation_test

import (
	"testing"

	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

func TestOneReplicaLeads(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	leads := func(want map[sessions.ReplicaID]bool) {
		t.Helper()
		for id, w := range want {
			if got, err := s.Replicas.IsLeader(t.Context(), id); err != nil || got != w {
				t.Errorf("replica %s leads: %v (%v), want %v", id, got, err, w)
			}
		}
	}
	leads(map[sessions.ReplicaID]bool{"a": false})
	for _, id := range []sessions.ReplicaID{"b", "a", "c"} {
		if _, err := s.Leases.Beat(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	leads(map[sessions.ReplicaID]bool{"a": false, "b": true, "c": false}) // the oldest
	storetest.Execute(t, pool, "UPDATE replicas SET heartbeat_at = now() - interval '1 hour' WHERE id = 'b'")
	leads(map[sessions.ReplicaID]bool{"a": true, "b": false, "c": false})
}
