package memstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"ebb/sessions"
	"ebb/sessions/memstore"
	"ebb/sessions/sessionstest"
)

func TestMem(t *testing.T) {
	sessionstest.TestStore(t, func(t *testing.T) sessionstest.Harness {
		t.Helper()
		m := memstore.New(0)
		return sessionstest.Harness{
			Store: storage(m), Other: storage(m),
			Expire:     func(_ *testing.T, owner sessions.ReplicaID) { m.Expire(owner) },
			EndWindows: func(_ *testing.T, ago time.Duration) { m.EndWindows(ago) },
			DeleteRow:  func(_ *testing.T, key sessions.Key) { m.DeleteRow(key) },
			FailFlush:  func(_ *testing.T, l sessions.Lease, failures int) { m.FailFlush(l.Key, failures) },
			Log:        func(t *testing.T, key sessions.Key) []sessions.Event { t.Helper(); return m.Events(t.Context(), key) },
			Summaries: func(t *testing.T, key sessions.Key) []sessions.Summary {
				t.Helper()
				return m.Summaries(t.Context(), key)
			},
			Blobs:     func(t *testing.T, key sessions.Key) []string { t.Helper(); return m.Blobs(t.Context(), key) },
			SpoilBlob: func(_ *testing.T, key sessions.Key, blob, body string) { m.SpoilBlob(key, blob, body) },
			Edit:      func(_ *testing.T, key sessions.Key, seq int64, content string) { m.Edit(key, seq, content) },
		}
	})
}

func TestMemSpentToday(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := memstore.New(0)
		a, err := m.Inbox.Accept(t.Context(), "a", "k", sessions.Message{ID: "m"})
		if err != nil {
			t.Fatal(err)
		}
		charge := func(u sessions.Usage) {
			t.Helper()
			if err := m.Ledger.Charge(t.Context(), "k", sessions.Spending{Kind: sessions.SpentFlush, Usage: u}); err != nil {
				t.Fatal(err)
			}
		}
		charge(sessions.Usage{Prompt: 5, Cached: 4, Completion: 1})
		if err := m.Compactions.Log(t.Context(), a.Lease, sessions.LogEntry{Outcome: "failed", Usage: sessions.Usage{Prompt: 4}}); err != nil {
			t.Fatal(err)
		}
		spent := func(want int) {
			t.Helper()
			if s, err := m.Sessions.Session(t.Context(), "k"); err != nil || s.SpentToday != want {
				t.Errorf("spent today are %d (%v), want %d", s.SpentToday, err, want)
			}
		}
		spent(10)
		<-time.After(24 * time.Hour)
		spent(0)
		charge(sessions.Usage{Prompt: 1})
		spent(1)
	})
}

func storage(m *memstore.Store) sessionstest.Storage {
	return sessionstest.Storage{Stores: m.Ports(), Erasure: m.Erasure, Replicas: m.Replicas, Approvals: m.Approvals}
}
