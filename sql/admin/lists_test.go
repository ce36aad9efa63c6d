package admin_test

import (
	"errors"
	"testing"

	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

func TestListsForAdmins(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "zhang", false)
	newer := storetest.NewChat(t, s, "cid2", "zhang", false)
	list, err := s.Lists.Sessions(t.Context(), 10)
	if err != nil || len(list) != 2 || list[0].Key != newer.Reader.Key || list[1].Lease != c.Lease {
		t.Errorf("the sessions are %+v (%v), want the last active first", list, err)
	}
	if _, err := s.Sessions.Session(t.Context(), "nobody"); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("a session that is not there gave %v", err)
	}
	compaction := storetest.SummaryOf(0, 1, "s")
	compaction.Log = sessions.LogEntry{Trigger: "manual", TokensBefore: 100, TokensAfter: 40, Audit: `{"ids": 3}`, FlushOutcome: "saved", Cost: 0.5}
	if _, err := s.Compactions.Compact(t.Context(), c.Lease, compaction); err != nil {
		t.Fatal(err)
	}
	if err := s.Compactions.Log(t.Context(), newer.Lease, sessions.LogEntry{Outcome: "rejected", Error: "too short", Failures: 1}); err != nil {
		t.Fatal(err)
	}
	all, err := s.Compactions.Compactions(t.Context(), "", 10)
	if err != nil || len(all) != 2 || all[0].Outcome != "rejected" || all[0].Error != "too short" {
		t.Errorf("all attempts are %+v (%v), want the newest first", all, err)
	}
	one, err := s.Compactions.Compactions(t.Context(), c.Reader.Key, 10)
	if err != nil || len(one) != 1 || one[0].Outcome != "committed" || one[0].TokensBefore != 100 || one[0].TokensAfter != 40 ||
		one[0].StartSeq != 1 || one[0].EndSeq != 1 || one[0].Audit != `{"ids": 3}` || one[0].FlushOutcome != "saved" || one[0].Cost != 0.5 {
		t.Errorf("the session's attempts are %+v (%v)", one, err)
	}
	first, err := s.Lists.Events(t.Context(), c.Reader.Key, 0, 1)
	if err != nil || len(first) != 1 {
		t.Fatalf("the first event is %+v (%v)", first, err)
	}
	rest, err := s.Lists.Events(t.Context(), c.Reader.Key, first[0].ID, 10)
	if err != nil || len(rest) == 0 || rest[0].ID <= first[0].ID {
		t.Errorf("the events after it are %+v (%v)", rest, err)
	}
	if e, err := s.Compactions.Compaction(t.Context(), all[0].ID); err != nil || e.Error != "too short" {
		t.Errorf("compaction %d is %+v (%v)", all[0].ID, e, err)
	}
	if _, err := s.Compactions.Compaction(t.Context(), 1<<40); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("a compaction that is not there gave %v", err)
	}
}
