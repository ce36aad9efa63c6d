package spend_test

import (
	"slices"
	"testing"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/spend"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// The cost of flushes and compactions is counted by the day, in UTC, by the server's clock.
func TestSpentToday(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	spent := func(want int, total sessions.Usage) {
		t.Helper()
		one, err := s.Sessions.Session(t.Context(), c.Reader.Key)
		if err != nil || one.SpentToday != want || one.Usage != total {
			t.Errorf("spent today are %d of %+v (%v), want %d of %+v", one.SpentToday, one.Usage, err, want, total)
		}
		view, err := s.Turns.Begin(t.Context(), c.Lease, 0)
		if err != nil || view.Session.SpentToday != want {
			t.Errorf("a turn sees that %d were spent today (%v), want %d", view.Session.SpentToday, err, want)
		}
		list, err := s.Lists.Sessions(t.Context(), 10)
		if err != nil || list[0].SpentToday != want {
			t.Errorf("the list says that %d were spent today (%v), want %d", list[0].SpentToday, err, want)
		}
	}
	u := sessions.Usage{Prompt: 10, Cached: 4, Completion: 3}
	if _, err := s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{Through: 1, Usage: u}); err != nil {
		t.Fatal(err)
	}
	spent(13, u)
	if _, err := s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{From: 1, Through: 2, Last: true, Usage: u}); err != nil {
		t.Fatal(err)
	}
	compact(t, s, c.Lease, sessions.Spending{Kind: sessions.SpentSummary, Usage: u})
	all := u.Add(u).Add(u)
	spent(39, all)
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET spent_on = spent_on - 1")
	spent(0, all)
	if err := s.Compactions.Log(t.Context(), c.Lease, sessions.LogEntry{Outcome: "nothing", Usage: u}); err != nil {
		t.Fatal(err)
	}
	spent(13, all.Add(u))
	for _, key := range []sessions.Key{c.Reader.Key, "r/missing"} { // a missing session is charged with nothing
		if err := s.Ledger.Charge(t.Context(), key, sessions.Spending{Kind: sessions.SpentConsolidation, Usage: u}); err != nil {
			t.Fatal(err)
		}
	}
	all = all.Add(u)
	spent(26, all.Add(u))
	// A turn's own calls are no maintenance.
	if _, err := s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{Spent: sessions.Spending{Usage: u}}); err != nil {
		t.Fatal(err)
	}
	spent(26, all.Add(u).Add(u))
}

// compact summarizes the first event of a session, for a cost.
func compact(t *testing.T, s *sql.Store, l sessions.Lease, paid sessions.Spending) {
	t.Helper()
	job := sessions.Job{Through: 1}
	if _, err := s.Jobs.OpenJob(t.Context(), l, job); err != nil {
		t.Fatal(err)
	}
	if err := s.Jobs.StageJob(t.Context(), l, job, []byte("s"), paid); err != nil {
		t.Fatal(err)
	}
	c := storetest.SummaryOf(0, 1, "s")
	c.Log.Usage, c.Log.Cost = paid.Usage, paid.Cost
	if _, err := s.Compactions.Compact(t.Context(), l, c); err != nil {
		t.Fatal(err)
	}
}

// The cost of models adds up by kind, session, day and month, failed work included.
func TestCosts(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	u := sessions.Usage{Prompt: 10, Cached: 4, Completion: 3}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Flushes.Flush(t.Context(), c.Lease, memory.Flush{Through: 1, Usage: u, Cost: 0.5})
	must(err)
	must(s.Flushes.Owe(t.Context(), c.Lease, memory.Debt{Through: 2, Reason: "model error: busy", Usage: u, Cost: 0.25}))
	compact(t, s, c.Lease, sessions.Spending{Kind: sessions.SpentSummary, Usage: u, Cost: 2})
	storetest.Execute(t, pool, "UPDATE model_usage SET day = day - 40")
	must(s.Compactions.Log(t.Context(), c.Lease, sessions.LogEntry{Outcome: "failed", Usage: u, Cost: 1}))
	must(s.Digests.PutOffDigest(t.Context(), c.Lease, memory.DigestFailure{Date: "2026-11-20", Reason: "busy", Counts: true, Usage: u, Cost: 0.125}))
	_, err = s.Turns.Commit(t.Context(), c.Lease, sessions.TurnResult{Spent: sessions.Spending{Usage: u, Cost: 8}})
	must(err)
	must(s.Ledger.Charge(t.Context(), c.Reader.Key, sessions.Spending{Kind: sessions.SpentConsolidation, Usage: u, Cost: 4}))

	if f := storetest.FlushesOf(t, pool, c.Reader.Key)[0]; f.Cost != 0.5 || f.PromptTokens != int64(u.Prompt) || f.CachedTokens != int64(u.Cached) || f.CompletionTokens != int64(u.Completion) {
		t.Errorf("the receipt says %+v", f)
	}
	today, before := time.Now().UTC(), time.Now().UTC().AddDate(0, 0, -40)
	key := c.Reader.Key
	costs := func(since time.Time, by spend.CostsBy, want ...spend.Cost) {
		t.Helper()
		got, err := s.Ledger.Costs(t.Context(), nil, since, by)
		must(err)
		if !slices.Equal(got, want) {
			t.Errorf("by %+v: got\n%+v, want\n%+v", by, got, want)
		}
	}
	sum := func(kind sessions.SpentKind, u sessions.Usage, cost float64) spend.Cost {
		return spend.Cost{Spending: sessions.Spending{Kind: kind, Usage: u, Cost: cost}}
	}
	costs(before, spend.CostsBy{}, sum("consolidation", u, 4), sum("digest", u, 0.125),
		sum("flush", u.Add(u), 0.75), sum("summary", u.Add(u), 3), sum("turn", u, 8))
	day := today.Format(time.DateOnly)
	todays := func(kind sessions.SpentKind, cost float64) spend.Cost {
		one := sum(kind, u, cost)
		one.Key, one.Period = key, day
		return one
	}
	costs(today, spend.CostsBy{Day: true, Session: true}, todays("consolidation", 4), todays("digest", 0.125), todays("summary", 1), todays("turn", 8))
	if got, err := s.Ledger.Costs(t.Context(), []sessions.Key{key}, before, spend.CostsBy{Month: true}); err != nil || len(got) != 6 || got[0].Period != today.Format("2006-01") ||
		got[5].Period != before.Format("2006-01") {
		t.Errorf("by month: %+v, %v", got, err)
	}
	if got, err := s.Ledger.Costs(t.Context(), []sessions.Key{"r/missing"}, before, spend.CostsBy{}); err != nil || len(got) != 0 {
		t.Errorf("of another session: %+v, %v", got, err)
	}
}
