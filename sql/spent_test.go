package sql_test

import (
	"testing"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
)

// What flushes and compactions took is counted by the day, of UTC, by the server's clock.
func TestSpentToday(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u1", false)
	spent := func(want int, total sessions.Usage) {
		t.Helper()
		one, err := s.Session(t.Context(), c.reader.Key)
		if err != nil || one.SpentToday != want || one.Usage != total {
			t.Errorf("spent today are %d of %+v (%v), want %d of %+v", one.SpentToday, one.Usage, err, want, total)
		}
		view, err := s.Begin(t.Context(), c.lease, 0)
		if err != nil || view.Session.SpentToday != want {
			t.Errorf("a turn sees that %d were spent today (%v), want %d", view.Session.SpentToday, err, want)
		}
		list, err := s.Sessions(t.Context(), 10)
		if err != nil || list[0].SpentToday != want {
			t.Errorf("the list says that %d were spent today (%v), want %d", list[0].SpentToday, err, want)
		}
	}
	u := sessions.Usage{Prompt: 10, Cached: 4, Completion: 3}
	if _, err := s.Flush(t.Context(), c.lease, memory.Flush{Through: 1, Usage: u}); err != nil {
		t.Fatal(err)
	}
	spent(13, u)
	if _, err := s.Flush(t.Context(), c.lease, memory.Flush{From: 1, Through: 2, Last: true, Usage: u}); err != nil {
		t.Fatal(err)
	}
	compaction := told(0, 1, "s")
	compaction.Log.Usage = u
	if _, err := s.Compact(t.Context(), c.lease, compaction); err != nil {
		t.Fatal(err)
	}
	all := u.Add(u).Add(u)
	spent(39, all)
	execute(t, pool, "UPDATE dingtalk_sessions SET spent_on = spent_on - 1")
	spent(0, all)
	if err := s.Log(t.Context(), c.lease, sessions.LogEntry{Outcome: "nothing", Usage: u}); err != nil {
		t.Fatal(err)
	}
	spent(13, all.Add(u))
	for _, key := range []sessions.Key{c.reader.Key, "r/nobody"} { // who is no more is charged with nothing
		if err := s.Charge(t.Context(), key, u); err != nil {
			t.Fatal(err)
		}
	}
	all = all.Add(u)
	spent(26, all.Add(u))
	// A turn's own calls are no maintenance.
	if _, err := s.Commit(t.Context(), c.lease, sessions.Turn{Usage: u}); err != nil {
		t.Fatal(err)
	}
	spent(26, all.Add(u).Add(u))
}
