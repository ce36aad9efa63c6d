package facts_test

import (
	"testing"

	"ebb/memory"
	"ebb/sql/facts"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A memory is shown with the last nicks of its people in the reader's session. A new nick replaces the old one, and the
// log of another session gives none.
func TestNicksOfMemories(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	here, there := storetest.NewChat(t, s, "group-1", "li", false), storetest.NewChat(t, s, "group-2", "li", false)
	here.Named("eve", "张伟", "hello")
	here.Named("zhang", "张伟", "hello")
	here.Named("eve", "Eve", "needle: 张伟已经批准 eve 的报销")
	there.Named("zhang", "另一个群里的名字", "hello")
	claim := storetest.GroupFact(here, "needle: 张伟已经批准 eve 的报销")
	claim.SaidBy, claim.SubjectID = "eve", "zhang"
	id := here.Save(claim).Saved[0]
	shared := claim
	shared.Scope, shared.ScopeID, shared.Content = memory.ScopeTeam, string(storetest.Robot), "needle: rule of the team"
	here.Save(shared)

	const source = "said by eve「Eve」, a claim about 说的是 zhang「张伟」"
	sources := func(c *storetest.Chat) map[string]string {
		out := map[string]string{}
		for _, m := range storetest.Must[[]memory.Memory](t)(s.Facts.Pinned(t.Context(), c.Reader, 10)) {
			out[m.Content] = m.Source()
		}
		for _, h := range c.Search("needle") {
			if h.MemoryID > 0 && out[h.Content] != h.Who {
				t.Errorf("%q is pinned as %q and found as %q", h.Content, out[h.Content], h.Who)
			}
		}
		return out
	}
	if got := sources(here)[claim.Content]; got != source {
		t.Errorf("the claim is %q", got)
	}
	if got := sources(there)[shared.Content]; got != "said by eve, a claim about 说的是 zhang「另一个群里的名字」" {
		t.Errorf("in another group the team's rule is %q", got)
	}
	if values := storetest.Must[[]memory.Memory](t)(s.Facts.Values(t.Context(), here.Reader, id)); len(values) != 1 || values[0].Source() != source {
		t.Errorf("its values are %+v", values)
	}
	all, _, err := s.Facts.Memories(t.Context(), facts.MemoryFilter{Scope: memory.ScopeGroup}, 10)
	if err != nil || len(all) != 1 || all[0].Source() != source {
		t.Errorf("an administrator reads %+v (%v)", all, err)
	}
}
