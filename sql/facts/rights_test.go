package facts_test

import (
	"errors"
	"strings"
	"testing"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// A group reads its own facts, the team's and nothing from private chats; a person reads all of their own.
func TestFactsAreReadWithinTheirRights(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	g1, g2 := storetest.NewChat(t, s, "cid1", storetest.ZhangID, false), storetest.NewChat(t, s, "cid2", storetest.ZhangID, false)
	dm := storetest.NewChat(t, s, "dm", storetest.ZhangID, true)
	in := func(c *storetest.Chat, d memory.Draft) memory.Draft {
		d.SourceGroup, d.SaidBy = memory.GroupID(storetest.Robot, c.Reader.Conversation), storetest.ZhangID
		return d
	}
	g1.Save(in(g1, storetest.GroupFact(g1, "张伟伟负责网关")), storetest.GroupFact(g1, "发布在周五"), in(g1, storetest.OfPerson(storetest.ZhangID, "爱喝龙井")))
	g2.Save(in(g2, storetest.GroupFact(g2, "二组的预算是九万")))
	dm.Save(storetest.OfPerson(storetest.ZhangID, "想换部门"))
	for name, test := range map[string]struct {
		asker memory.Asker
		want  string
	}{
		"in a group":       {memory.Asker{Reader: g1.Reader, Person: storetest.ZhangID}, "爱喝龙井(own) 发布在周五 张伟伟负责网关(own)"},
		"another in it":    {memory.Asker{Reader: g1.Reader, Person: storetest.LiID}, "发布在周五 张伟伟负责网关"},
		"in another group": {memory.Asker{Reader: g2.Reader, Person: storetest.ZhangID}, "二组的预算是九万(own)"},
		"in private":       {memory.Asker{Reader: dm.Reader, Person: storetest.ZhangID}, "想换部门(own) 二组的预算是九万(own) 爱喝龙井(own) 张伟伟负责网关(own)"},
	} {
		list, total, err := s.Rights.Known(t.Context(), test.asker, 0, 10)
		var got []string
		for _, k := range list {
			if k.Own {
				k.Content += "(own)"
			}
			got = append(got, k.Content)
		}
		if err != nil || total != len(got) || strings.Join(got, " ") != test.want {
			t.Errorf("%s %q of %d are known (%v), want %q", name, got, total, err, test.want)
		}
	}
	hidden := storetest.MemoryLike(t, pool, "想换部门")
	if _, err := s.Rights.KnownByID(t.Context(), memory.Asker{Reader: g1.Reader, Person: storetest.ZhangID}, hidden); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("a private statement is found in a group: %v", err)
	}
	if _, err := s.Rights.Promote(t.Context(), hidden, storetest.LiID); !errors.Is(err, sessions.ErrNotFound) {
		t.Errorf("a private statement was promoted: %v", err)
	}
}
