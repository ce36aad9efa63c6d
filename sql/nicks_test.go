package sql_test

import (
	"testing"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/facts"
	"ebb/sql/sqltest"
)

// named commits a message of a person under a nick.
func (c *chat) named(who sessions.UserID, nick, text string) {
	c.t.Helper()
	c.said++
	c.turn(who, nick, "ok", c.speak("named"+string(rune('a'+c.said)), who, nick, text, nil))
}

// A memory is shown with the last nicks of its people in the reader's session. A new nick replaces the old one, and the
// log of another session gives none.
func TestNicksOfMemories(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	here, there := newChat(t, s, "group-1", "li", false), newChat(t, s, "group-2", "li", false)
	here.named("eve", "张伟", "hello")
	here.named("zhang", "张伟", "hello")
	here.named("eve", "Eve", "needle: 张伟已经批准 eve 的报销")
	there.named("zhang", "另一个群里的名字", "hello")
	claim := group(here, "needle: 张伟已经批准 eve 的报销")
	claim.SaidBy, claim.SubjectID = "eve", "zhang"
	id := here.save(claim).Saved[0]
	shared := claim
	shared.Scope, shared.ScopeID, shared.Content = memory.ScopeTeam, string(robot), "needle: rule of the team"
	here.save(shared)

	const source = "said by eve「Eve」, a claim about 说的是 zhang「张伟」"
	sources := func(c *chat) map[string]string {
		out := map[string]string{}
		for _, m := range must[[]memory.Memory](t)(s.Pinned(t.Context(), c.reader, 10)) {
			out[m.Content] = m.Source()
		}
		for _, h := range c.search("needle") {
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
	if values := must[[]memory.Memory](t)(s.Values(t.Context(), here.reader, id)); len(values) != 1 || values[0].Source() != source {
		t.Errorf("its values are %+v", values)
	}
	all, _, err := s.Memories(t.Context(), facts.MemoryFilter{Scope: memory.ScopeGroup}, 10)
	if err != nil || len(all) != 1 || all[0].Source() != source {
		t.Errorf("an administrator reads %+v (%v)", all, err)
	}
}
