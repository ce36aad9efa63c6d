package facts_test

import (
	"errors"
	"slices"
	"testing"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/admin"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

func TestSaveKnowsAFactAgain(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	first := c.Save(storetest.GroupFact(c, "预算是 1.5 万，周五前定。"), storetest.GroupFact(c, "Release v1.2 on Friday"))
	if len(first.Saved) != 2 || len(first.Duplicate) != 0 {
		t.Fatalf("two new facts gave the receipt %+v", first)
	}
	for _, same := range []string{"预算是1.5万, 周五前定", "预算是 １.５ 万，周五前定！", "release  V1.2 on friday."} {
		r := c.Save(storetest.GroupFact(c, same))
		if len(r.Saved) != 0 || len(r.Duplicate) != 1 || !slices.Contains(first.Saved, r.Duplicate[0]) {
			t.Errorf("%q gave the receipt %+v, want the row that holds it", same, r)
		}
	}
	for _, other := range []string{"预算是 15 万，周五前定。", "Release v12 on Friday", "Re lease v1.2 on Friday"} {
		if r := c.Save(storetest.GroupFact(c, other)); len(r.Saved) != 1 {
			t.Errorf("%q was taken for a fact that it is not: %+v", other, r)
		}
	}
	if r := c.Save(storetest.GroupFact(c, "twice"), storetest.GroupFact(c, "Twice!")); len(r.Saved) != 1 || len(r.Duplicate) != 0 {
		t.Errorf("one fact said twice at once gave %+v", r)
	}
	if r := c.Save(); len(r.Saved)+len(r.Duplicate) != 0 {
		t.Errorf("nothing gave %+v", r)
	}
	storetest.Execute(t, pool, "UPDATE memories SET superseded_by = id WHERE content = 'twice'")
	if r := c.Save(storetest.GroupFact(c, "twice")); len(r.Saved) != 1 {
		t.Errorf("a fact that was superseded cannot be learnt again: %+v", r)
	}
	other := storetest.NewChat(t, s, "cid2", "u1", false)
	if r := other.Save(storetest.GroupFact(other, "twice")); len(r.Saved) != 1 {
		t.Errorf("another group's fact was taken for this one's: %+v", r)
	}
}

func TestFlushIsWhole(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	c.Say("u1", "more")
	f := memory.Flush{From: 0, Through: 3, Last: true, Drafts: []memory.Draft{storetest.GroupFact(c, "one"), storetest.GroupFact(c, "two")}, Usage: sessions.Usage{Prompt: 9}}
	for name, bad := range map[string]memory.Flush{
		"another cursor": {From: 1, Through: 3, Drafts: f.Drafts},
		"beyond the log": {From: 0, Through: 5, Drafts: f.Drafts},
	} {
		if _, err := s.Flushes.Flush(t.Context(), c.Lease, bad); !errors.Is(err, sessions.ErrConflict) {
			t.Errorf("flushing from %s gave %v", name, err)
		}
	}
	broken := f
	broken.Drafts = append(slices.Clone(f.Drafts), memory.Draft{Scope: "nobody's", Content: "x"})
	if _, err := s.Flushes.Flush(t.Context(), c.Lease, broken); err == nil {
		t.Error("a flush with an unknown scope worked")
	}
	stale := c.Lease
	stale.Term++
	if _, err := s.Flushes.Flush(t.Context(), stale, f); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("flushing under another term gave %v", err)
	}
	var n int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM memories").Scan(&n); err != nil || n != 0 {
		t.Errorf("refused flushes left %d memories (%v)", n, err)
	}

	r, err := s.Flushes.Flush(t.Context(), c.Lease, f)
	if err != nil || len(r.Saved) != 2 {
		t.Fatalf("the flush gave %+v, %v", r, err)
	}
	v, err := s.Sessions.Session(t.Context(), c.Reader.Key)
	if err != nil || v.FlushedSeq != 3 || v.FlushEpoch != 0 || v.FlushCount != 1 || v.FlushFailures != 0 {
		t.Errorf("after the flush the session is %+v (%v)", v, err)
	}
	m, err := s.Facts.Pinned(t.Context(), c.Reader, 10)
	if err != nil || len(m) != 2 || m[0].Content != "two" || m[0].StartSeq != 1 || m[0].EndSeq != 3 || m[0].SourceSession != c.Reader.Key {
		t.Errorf("the memories are %+v (%v), want both, newest first, with their source", m, err)
	}
	if r, err := s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{From: 3, Through: 3}); err != nil || len(r.Saved)+len(r.Duplicate) != 0 {
		t.Errorf("a flush that found nothing gave %+v, %v", r, err)
	}
}

// A flush that takes several calls of the model is one flush, and its cycle is flushed when all of it is.
func TestFlushInParts(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	c.Say("u1", "more")
	flush := func(f memory.Flush, seq int64, epoch, count int) {
		t.Helper()
		if _, err := s.Flushes.Flush(t.Context(), c.Lease, f); err != nil {
			t.Fatal(err)
		}
		v, err := s.Sessions.Session(t.Context(), c.Reader.Key)
		if err != nil || v.FlushedSeq != seq || v.FlushEpoch != epoch || v.FlushCount != count {
			t.Errorf("flushed up to %d in cycle %d, %d times (%v), want up to %d in cycle %d, %d times",
				v.FlushedSeq, v.FlushEpoch, v.FlushCount, err, seq, epoch, count)
		}
	}
	flush(memory.Flush{From: 0, Through: 1, Epoch: 7}, 1, -1, 0)
	flush(memory.Flush{From: 1, Through: 2, Epoch: 7}, 2, -1, 0)
	flush(memory.Flush{From: 2, Through: 3, Epoch: 7, Last: true}, 3, 7, 1)
	flush(memory.Flush{From: 3, Through: 4, Epoch: 8, Last: true}, 4, 8, 2)
}

// A flush that was under way while the conversation was renewed is stored, and does not use up the new generation's
// own.
func TestFlushOfAnEndedGeneration(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	if err := s.Sessions.Renew(t.Context(), c.Lease); err != nil {
		t.Fatal(err)
	}
	c.Say("u1", "more")
	for _, step := range []struct {
		flush      memory.Flush
		seq        int64
		epoch, got int
	}{
		{memory.Flush{Gen: 0, From: 0, Through: 2, Last: true, Drafts: []memory.Draft{storetest.GroupFact(c, "one")}}, 2, -1, 1},
		{memory.Flush{Gen: 1, From: 2, Through: 4, Last: true, Drafts: []memory.Draft{storetest.GroupFact(c, "two")}}, 4, 0, 1},
	} {
		r, err := s.Flushes.Flush(t.Context(), c.Lease, step.flush)
		if err != nil || len(r.Saved) != step.got {
			t.Errorf("flush %+v gave %+v (%v)", step.flush, r, err)
		}
		v, err := s.Sessions.Session(t.Context(), c.Reader.Key)
		if err != nil || v.FlushedSeq != step.seq || v.FlushEpoch != step.epoch {
			t.Errorf("after flush %+v the session is flushed up to %d, its cycle is %d (%v); want %d and %d",
				step.flush, v.FlushedSeq, v.FlushEpoch, err, step.seq, step.epoch)
		}
	}
}

func TestOwe(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	c.Say("u1", "more")
	owe := func(through int64, failures int, reason string) {
		t.Helper()
		if err := s.Flushes.Owe(t.Context(), c.Lease, memory.Debt{Through: through, Failures: failures, Reason: reason, Usage: sessions.Usage{Prompt: 10, Completion: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	debts := func() []admin.Debt {
		t.Helper()
		list, err := s.Lists.Debts(t.Context(), nil, 10)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	owe(2, 1, "busy")
	owe(4, 2, "still busy")
	list := debts()
	if len(list) != 1 || list[0].From != 0 || list[0].Through != 4 || list[0].Failures != 2 || list[0].Reason != "still busy" {
		t.Fatalf("the debts are %+v, want one that replaced the other", list)
	}
	if v, err := s.Sessions.Session(t.Context(), c.Reader.Key); err != nil || v.FlushFailures != 2 || v.SpentToday != 22 {
		t.Errorf("the session counts %d failures and %d tokens (%v), want 2 and 22", v.FlushFailures, v.SpentToday, err)
	}
	flush := func(from, through int64) {
		t.Helper()
		if _, err := s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{From: from, Through: through}); err != nil {
			t.Fatal(err)
		}
	}
	flush(0, 2)
	if list = debts(); len(list) != 1 || list[0].From != 2 || list[0].Through != 4 {
		t.Errorf("after half of it was flushed the debts are %+v", list)
	}
	flush(2, 4)
	if list = debts(); len(list) != 0 {
		t.Errorf("after all was flushed the debts are %+v", list)
	}
	owe(4, 1, "late")
	if list = debts(); len(list) != 0 {
		t.Errorf("owing a flushed range gave %+v", list)
	}
	if err := s.Flushes.Owe(t.Context(), c.Lease, memory.Debt{Through: 5, Failures: 1, Reason: "x"}); !errors.Is(err, sessions.ErrConflict) {
		t.Errorf("owing a missing range gave %v", err)
	}
	stale := c.Lease
	stale.Owner = "b"
	if err := s.Flushes.Owe(t.Context(), stale, memory.Debt{Through: 4, Failures: 1, Reason: "x"}); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Errorf("owing under another's lease gave %v", err)
	}
}

func TestUnflushed(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	little, much, nothing := storetest.NewChat(t, s, "little", "u", false), storetest.NewChat(t, s, "much", "u", false), storetest.NewChat(t, s, "nothing", "u", false)
	much.Say("u", "more")
	if _, err := s.Flushes.Flush(t.Context(), nothing.Lease, memory.Flush{Through: 2}); err != nil {
		t.Fatal(err)
	}
	want := []memory.UnflushedSession{{Key: much.Reader.Key, Tokens: 22}, {Key: little.Reader.Key, Tokens: 11}}
	if got, err := s.Flushes.Unflushed(t.Context(), "a"); err != nil || !slices.Equal(got, want) {
		t.Errorf("unflushed are %+v (%v), want %+v", got, err, want)
	}
	if got, err := s.Flushes.Unflushed(t.Context(), "b"); err != nil || len(got) != 0 {
		t.Errorf("of a replica without sessions unflushed are %+v (%v)", got, err)
	}
}
