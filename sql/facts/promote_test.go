package facts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/memory"
	"ebb/memory/show"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

const (
	firstDate  = "Alpha 的发布日期是 2026-12-01"
	secondDate = "更正：Alpha 的发布日期改为 2026-12-20"
)

// promoted is what the team has by an administrator's word.
func promoted(t *testing.T, s *sql.Store, id int64) memory.Memory {
	t.Helper()
	return storetest.Must[memory.Memory](t)(s.Rights.Promote(t.Context(), id, storetest.LiID))
}

// A fact that was promoted to the team can be corrected by its group. There the correction holds at once, and for all
// when it was promoted, too. However the correction is recognised, one value holds for each.
func TestPromotedIsCorrected(t *testing.T) {
	t.Parallel()
	for name, draft := range map[string]func(c *storetest.Chat, team int64) memory.Draft{
		"by its key": func(c *storetest.Chat, _ int64) memory.Draft {
			return keyed("Alpha 发布日期", storetest.GroupFact(c, secondDate))
		},
		"by its words": func(c *storetest.Chat, _ int64) memory.Draft { return storetest.GroupFact(c, secondDate) },
		"by its id": func(c *storetest.Chat, team int64) memory.Draft {
			return storetest.Replacing(team, storetest.GroupFact(c, secondDate))
		},
		"of another person": func(c *storetest.Chat, _ int64) memory.Draft {
			d := keyed("Alpha 发布日期", storetest.GroupFact(c, secondDate))
			d.SubjectID, d.SubjectIsValue = storetest.LiID, true
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := storetest.Open(t, sqltest.URL(t))
			c, other := storetest.NewChat(t, s, "cid", "u", false), storetest.NewChat(t, s, "cid2", "u", false)
			first := c.Save(at(0, keyed("Alpha 发布日期", storetest.GroupFact(c, firstDate)))).Saved[0]
			team := promoted(t, s, first)
			r := c.Save(at(1, draft(c, team.ID)))
			if len(r.Saved) != 1 || len(r.Superseded) != 1 {
				t.Fatalf("the correction gave %+v", r)
			}
			wantKnown(c, secondDate)
			wantKnown(other, firstDate)
			list, _, err := s.Rights.Known(t.Context(), memory.Asker{Reader: c.Reader, Person: "u"}, 0, 10)
			if err != nil || len(list) != 1 || list[0].ID != r.Saved[0] {
				t.Errorf("the group's list is %+v (%v)", list, err)
			}
			for _, h := range c.Search("Alpha 的发布日期") {
				if h.MemoryID == team.ID {
					t.Errorf("a search in the group finds the old value: %+v", h)
				}
			}
			second := promoted(t, s, r.Saved[0])
			wantKnown(c, secondDate)
			wantKnown(other, secondDate)
			if _, chain, err := s.Facts.MemoryByID(t.Context(), second.ID); err != nil || len(chain) < 3 || chain[0].ID != first {
				t.Errorf("the values are %+v (%v), want the old ones too", chain, err)
			}
		})
	}
}

// The group of a promoted memory does not learn it again, nor does a session of it. Its own memory is shown as it was,
// not as corrected.
func TestPromotedIsKnownAgain(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	first := c.Save(at(0, keyed("Alpha 发布日期", storetest.GroupFact(c, firstDate)))).Saved[0]
	team := promoted(t, s, first)
	if team.Scope != memory.ScopeTeam || team.PromotedBy != storetest.LiID || team.SourceSession != c.Reader.Key || !team.SaidAt.Equal(morning) {
		t.Errorf("the team has %+v", team)
	}
	own := storetest.GroupFact(c, firstDate)
	own.Scope, own.ScopeID = memory.ScopeSession, string(c.Reader.Key)
	for _, d := range []memory.Draft{storetest.GroupFact(c, firstDate), storetest.GroupFact(c, "张伟：记住 "+firstDate), own} {
		if r := c.Save(at(1, d)); len(r.Saved) != 0 || !slices.Equal(r.Duplicate, []int64{team.ID}) {
			t.Errorf("%q in the %s gave %+v, want the team's", d.Content, d.Scope, r)
		}
	}
	wantKnown(c, firstDate)
	text, err := show.Get(t.Context(), storetest.Library{Store: s.Facts, Digests: s.Digests}, c.Reader, memoryPathOf(first), 1, show.LogReader{Location: time.UTC})
	if err != nil || !strings.Contains(text, firstDate) || strings.Contains(text, "OUTDATED") {
		t.Errorf("the group's own is shown as %q (%v)", text, err)
	}
	if _, err := s.Rights.Promote(t.Context(), first, storetest.LiID); err == nil {
		t.Error("a team's fact was promoted again")
	}
}

// One group's promoted fact does not correct another's, but the same words are one memory.
func TestPromoteOfTwoGroups(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	a, b := storetest.NewChat(t, s, "cid1", "u", false), storetest.NewChat(t, s, "cid2", "u", false)
	third := storetest.NewChat(t, s, "cid3", "u", false)
	x := a.Save(at(0, keyed("周会", storetest.GroupFact(a, "周会在周三")))).Saved[0]
	y := b.Save(at(1, keyed("周会", storetest.GroupFact(b, "周会在周四")))).Saved[0]
	z := b.Save(at(2, storetest.GroupFact(b, "食堂十二点开门"))).Saved[0]
	w := a.Save(at(3, storetest.GroupFact(a, "食堂十二点开门！"))).Saved[0]
	promoted(t, s, x)
	promoted(t, s, y)
	if one, two := promoted(t, s, z), promoted(t, s, w); one.ID != two.ID || two.Seen != 2 {
		t.Errorf("the same words are %+v and %+v", one, two)
	}
	for _, c := range []*storetest.Chat{a, b, third} {
		wantKnown(c, "食堂十二点开门", "周会在周四", "周会在周三")
	}
}

// The team's memories are consolidated for the group that they came from, too; and that group may correct the result.
func TestPromotedIsConsolidated(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c, other := storetest.NewChat(t, s, "cid", "u", false), storetest.NewChat(t, s, "cid2", "u", false)
	for i, content := range []string{"打印机在 A 区", "咖啡机在 B 区"} {
		promoted(t, s, c.Save(at(i, storetest.GroupFact(c, content))).Saved[0])
	}
	piles := storetest.Must[[]memory.FactGroup](t)(s.FactUpkeep.FactGroups(t.Context(), memory.OverfullScope{Scope: memory.ScopeTeam, ScopeID: string(storetest.Robot)}))
	if len(piles) != 1 {
		t.Fatalf("the team's memories fall into %+v", piles)
	}
	old := storetest.Must[[]memory.Memory](t)(s.FactUpkeep.Oldest(t.Context(), piles[0], 10))
	d := at(1, storetest.GroupFact(c, "打印机在 A 区，咖啡机在 B 区"))
	d.Scope, d.ScopeID = memory.ScopeTeam, string(storetest.Robot)
	one := storetest.Must[memory.Receipt](t)(s.FactUpkeep.Consolidate(t.Context(), old, []memory.Draft{d})).Saved[0]
	wantKnown(other, d.Content)
	wantKnown(c, d.Content)
	if r := c.Save(at(5, storetest.Replacing(one, storetest.GroupFact(c, "打印机和咖啡机都搬到了 C 区")))); len(r.Saved) != 1 || len(r.Superseded) != 2 {
		t.Errorf("its correction gave %+v", r)
	}
	wantKnown(c, "打印机和咖啡机都搬到了 C 区")
	wantKnown(other, d.Content)
}

// A fact with a key is corrected by it, so it is never consolidated.
func TestConsolidationKeepsKeyedFacts(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	c.Save(at(0, keyed("Alpha 发布日期", storetest.GroupFact(c, firstDate))), at(1, storetest.GroupFact(c, "Beta 的负责人是李娜")), at(2, storetest.GroupFact(c, "Gamma 用的是 Go")))
	overfull := memory.OverfullScope{Scope: memory.ScopeGroup, ScopeID: memory.GroupID(storetest.Robot, "cid")}
	piles := storetest.Must[[]memory.FactGroup](t)(s.FactUpkeep.FactGroups(t.Context(), overfull))
	if len(piles) != 1 || piles[0].Held != 2 {
		t.Fatalf("the group's memories fall into %+v", piles)
	}
	old := storetest.Must[[]memory.Memory](t)(s.FactUpkeep.Oldest(t.Context(), piles[0], 10))
	storetest.Must[memory.Receipt](t)(s.FactUpkeep.Consolidate(t.Context(), old, []memory.Draft{storetest.GroupFact(c, "Beta 的负责人是李娜；Gamma 用的是 Go")}))
	c.Save(at(3, keyed("Alpha 发布日期", storetest.GroupFact(c, secondDate))))
	wantKnown(c, secondDate, "Beta 的负责人是李娜；Gamma 用的是 Go")
}

// memoryPathOf is where memory_get finds a group's memory.
func memoryPathOf(id int64) string { return "memory/group/2026-11-20.md#" + fmt.Sprint(id) }
