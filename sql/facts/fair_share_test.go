package facts_test

import (
	"fmt"
	"strings"
	"testing"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// Each speaker has a share of the list for the head of a view, however many facts one of them has. Consolidation goes
// by speaker, so that a joined fact names its speaker.
func TestSpeakersShareMemory(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	c.Save(storetest.SaidBy(c, "the release is on Friday", "ann", 1), storetest.SaidBy(c, "the office opens at eight", "ann", 1))
	var flood []memory.Draft
	for i := range 120 {
		flood = append(flood, storetest.SaidBy(c, strings.Repeat(fmt.Sprintf("crate%c%c ", 'a'+i%26, 'a'+i/26), 3), "bob", 1))
	}
	c.Save(flood...)
	list := storetest.Must[[]memory.Memory](t)(s.Facts.Pinned(t.Context(), c.Reader, 100))
	said := map[sessions.UserID]int{}
	for i, m := range list {
		if said[m.SaidBy]++; i > 0 && m.ID > list[i-1].ID {
			t.Fatalf("memory %d stands behind memory %d", m.ID, list[i-1].ID)
		}
	}
	if said["ann"] != 2 || said["bob"] != 98 {
		t.Errorf("listed are %v, want both facts of ann and the newest of bob", said)
	}
	piles := storetest.Must[[]memory.FactGroup](t)(s.FactUpkeep.FactGroups(t.Context(), memory.OverfullScope{Scope: memory.ScopeGroup, ScopeID: memory.GroupID(storetest.Robot, "cid")}))
	if len(piles) != 2 || piles[0].Speaker != "bob" || piles[1].Speaker != "ann" || piles[1].Held != 2 {
		t.Fatalf("the scope falls into %+v", piles)
	}
	for _, m := range storetest.Must[[]memory.Memory](t)(s.FactUpkeep.Oldest(t.Context(), piles[1], 10)) {
		if m.SaidBy != "ann" {
			t.Errorf("in the pile of ann is %+v", m)
		}
	}
}
