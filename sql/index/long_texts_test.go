package index_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ebb/memory"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// Events without an index are read and indexed in pieces of some size, however long the messages are.
func TestBacklogOfLongMessages(t *testing.T) {
	t.Parallel()
	url := sqltest.URL(t)
	c, read := storetest.Counting(t, url)
	_, pool := storetest.Open(t, url)
	texts := make([]string, 30)
	for i := range texts {
		texts[i] = "needle " + strings.Repeat("废话 and filler, ", 40_000)
	}
	c.Load(pool, texts...)
	for _, table := range []string{"event_index", "event_segments", "event_postings", "event_terms"} {
		storetest.Execute(t, pool, "DELETE FROM "+table)
	}
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET last_seq = 32")
	before := read.Load()
	if hits := c.Search("needle"); len(hits) == 0 || hits[0].Seq < 30 {
		t.Errorf("of long messages without terms found %.200v, want the newest", hits)
	}
	if n := read.Load() - before; n > 8<<20 { // a piece of each find is shown, of up to 200,000 characters
		t.Errorf("a search read %d KB", n>>10)
	}
	for rounds := 0; ; rounds++ {
		before := read.Load()
		n, err := c.Store.Index.Logs.IndexSession(t.Context(), c.Reader.Key, 40)
		if err != nil {
			t.Fatal(err)
		}
		if n := read.Load() - before; n > 5<<20 {
			t.Errorf("%d KB were read at a time", n>>10)
		}
		if n == 0 {
			break
		}
		if rounds > 30 {
			t.Fatal("the backlog never ends")
		}
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM event_terms"); n != 32 {
		t.Errorf("%d of 32 events are indexed", n)
	}
}

// Texts that are too long to be read by a search are indexed after it, however few places they are.
func TestLongTextsAreIndexedAfterASearch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		texts int
		text  func(i int) string
	}{
		"together": {30, func(i int) string { return fmt.Sprintf("quokka%d ", i) + strings.Repeat("the weather is fine ", 1000) }},
		"one":      {1, func(i int) string { return strings.Repeat("the weather is fine ", 1200) + fmt.Sprintf("quokka%d", i) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := storetest.Open(t, sqltest.URL(t))
			chat := storetest.NewChat(t, s, "cid", "zhang", false)
			for i := range c.texts {
				chat.Say("zhang", c.text(i))
			}
			found := func() bool {
				return slices.ContainsFunc(chat.Search("quokka0"), func(h memory.Hit) bool { return h.Seq == 3 })
			}
			if storetest.Must[int](t)(s.Index.IndexBacklog(t.Context(), 1000)); found() {
				t.Error("a text beyond the bound of a search is found: the case is no case")
			}
			if storetest.Must[int](t)(s.Index.IndexBacklog(t.Context(), 1000)); !found() {
				t.Error("it is not found after that search and the next step of the index")
			}
		})
	}
}
