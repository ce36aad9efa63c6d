package sessionstest_test

import (
	"testing"

	"ebb/sessions"
	"ebb/sessions/sessionstest"
)

func TestMem(t *testing.T) {
	sessionstest.TestStore(t, func(t *testing.T) sessionstest.Harness {
		t.Helper()
		m := sessionstest.NewMem(0)
		return sessionstest.Harness{
			Store: m, Other: m,
			Expire:    func(_ *testing.T, owner sessions.ReplicaID) { m.Expire(owner) },
			FailFlush: func(_ *testing.T, l sessions.Lease, failures int) { m.FailFlush(l.Key, failures) },
			Log:       func(t *testing.T, key sessions.Key) []sessions.Event { t.Helper(); return m.Events(t.Context(), key) },
		}
	})
}
