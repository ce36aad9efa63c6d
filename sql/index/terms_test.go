package index_test

import (
	"testing"

	"ebb/memory/text"
	"ebb/sql"
	"ebb/sql/index"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// An event and a fact without an index are found all the same. The backlog indexes the log when enough waits.
func TestIndexBacklog(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "zhang", false)
	c.Say("zhang", "the needle is in the haystack")
	c.Save(storetest.GroupFact(c, "needles are kept in the drawer"))
	missing := func() int {
		t.Helper()
		return storetest.Number(t, pool, `SELECT (SELECT count(*) FROM memories WHERE terms IS NULL)
			+ (SELECT s.last_seq - coalesce((SELECT i.through_seq FROM event_index i), 0) FROM dingtalk_sessions s)`)
	}
	for range 2 {
		if hits := c.Search("needle"); len(hits) != 2 {
			t.Fatalf("with %d rows that are not indexed found %+v", missing(), hits)
		}
		storetest.Execute(t, pool, "UPDATE memories SET terms = NULL")
	}
	if _, err := s.Index.IndexBacklog(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	if n := missing(); n != 4 {
		t.Fatalf("%d places of a short log wait for the index, want 4", n)
	}
	for range 30 {
		c.Say("zhang", "it is about something else")
	}
	for {
		n, err := s.Index.IndexBacklog(t.Context(), 3)
		if err != nil {
			t.Fatal(err)
		}
		if n < 3 {
			break
		}
	}
	if n := missing(); n != 0 {
		t.Errorf("%d rows are not indexed", n)
	}
	if hits := c.Search("needle"); len(hits) < 2 || hits[0].MemoryID == 0 || hits[1].Seq != 3 {
		t.Errorf("found %+v", hits)
	}
	if n, err := s.Index.IndexBacklog(t.Context(), 3); n != 0 || err != nil {
		t.Errorf("a second time %d rows were indexed (%v)", n, err)
	}
}

// The stems of an older release differ: a search reads its rows themselves until the backlog has indexed them, once.
func TestTermsOfAnOlderReleaseAreIndexedAgain(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "zhang", false)
	c.Say("zhang", "the general ledger is closed")
	fact := storetest.GroupFact(c, "general ledgers close on Friday")
	c.Save(fact)
	if _, err := s.Index.IndexBacklog(t.Context(), 10); err != nil { // the message had no turn
		t.Fatal(err)
	}
	if n, err := s.Index.IndexBacklog(t.Context(), 10); n != 0 || err != nil {
		t.Fatalf("%d rows of this release were indexed again (%v)", n, err)
	}
	const old = "gener" // Porter's stem
	if text.Stem("general") == old {
		t.Fatal("the stemmers agree")
	}
	storetest.Execute(t, pool, "UPDATE memories SET terms = $1, terms_version = DEFAULT", index.MemoryTerms(fact.Scope, fact.ScopeID, old))
	for n := 1; n > 0; {
		var err error
		if n, err = s.Index.Logs.IndexSession(t.Context(), c.Reader.Key, 100); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Execute(t, pool, "UPDATE event_index SET version = 1")
	storetest.Execute(t, pool, "DELETE FROM event_postings")
	if hits := c.Search("general"); len(hits) != 2 {
		t.Errorf("with the terms of an older release found %+v", hits)
	}
	later, err := sql.Open(t.Context(), sql.Options{URL: pool.Config().ConnString()}) // a process of the new release
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(later.Close)
	s = later
	for range 2 {
		if _, err := s.Index.IndexBacklog(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM event_index i, memories m WHERE i.version = $1 AND m.terms_version = $1", index.TermsVersion); n != 1 {
		t.Error("the log or the fact is not indexed again")
	}
	if hits := c.Search("general"); len(hits) != 2 {
		t.Errorf("found %+v", hits)
	}
	if n, err := s.Index.IndexBacklog(t.Context(), 10); n != 0 || err != nil {
		t.Errorf("a second time %d rows were indexed (%v)", n, err)
	}
}
