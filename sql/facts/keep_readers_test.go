package facts_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// atRobot is a chat with another robot, which may serve another organisation.
func atRobot(c *storetest.Chat, other sessions.RobotCode, person sessions.UserID) memory.Reader {
	return memory.Reader{
		Key: sessions.NewKey(other, "dm", ""), Robot: other, Conversation: "dm", Private: c.Reader.Private, Users: []sessions.UserID{person},
	}
}

// Staff ids belong to an organisation. One robot's statements about a person are not read, listed or erased by another
// robot's person of the same id.
func TestReadableIsTheRobotsOwn(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	dm := storetest.NewChat(t, s, "dm", "manager01", true)
	id := dm.Save(storetest.FactAbout("manager01", "manager01 打算下个月换到杭州")).Saved[0]
	for _, other := range []sessions.RobotCode{"robotB", "robot2", "rob"} { // one begins as the other does
		stranger := atRobot(dm, other, "manager01")
		if hits, err := s.Search.Search(t.Context(), stranger, memory.Query{Text: "打算换到杭州", Limit: 5}); err != nil || len(hits) > 0 {
			t.Errorf("%s finds %+v (%v)", other, hits, err)
		}
		if list, err := s.Facts.Pinned(t.Context(), stranger, 10); err != nil || len(list) > 0 {
			t.Errorf("%s reads %+v (%v)", other, list, err)
		}
		if values, err := s.Facts.Values(t.Context(), stranger, id); err != nil || len(values) > 0 {
			t.Errorf("%s reads the values %+v (%v)", other, values, err)
		}
		asker := memory.Asker{Reader: stranger, Person: "manager01"}
		if list, total, err := s.Rights.Known(t.Context(), asker, 0, 10); err != nil || total > 0 {
			t.Errorf("%s lists %+v (%v)", other, list, err)
		}
		if list, err := s.Rights.FactsOf(t.Context(), other, "manager01", 0, 10); err != nil || len(list) > 0 {
			t.Errorf("%s exports the facts %+v (%v)", other, list, err)
		}
		if list, err := s.Rights.MessagesOf(t.Context(), other, "manager01", 0, 10); err != nil || len(list) > 0 {
			t.Errorf("%s exports the messages %+v (%v)", other, list, err)
		}
	}
	own := memory.Asker{Reader: dm.Reader, Person: "manager01"}
	if list, total, err := s.Rights.Known(t.Context(), own, 0, 10); err != nil || total != 1 || list[0].ID != id {
		t.Errorf("the person's own list is %+v (%v)", list, err)
	}
	for _, which := range []sessions.RobotCode{storetest.Robot, ""} {
		facts, err := s.Rights.FactsOf(t.Context(), which, "manager01", 0, 10)
		if err != nil || len(facts) != 1 {
			t.Errorf("the facts for robot %q are %+v (%v)", which, facts, err)
		}
		said, err := s.Rights.MessagesOf(t.Context(), which, "manager01", 0, 10)
		if err != nil || len(said) != 1 {
			t.Errorf("the messages for robot %q are %+v (%v)", which, said, err)
		}
	}
}

// The same fact in two robots' private chats is two facts, neither a receipt nor a correction of the other.
func TestSaveSeparatesRobots(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	dm := storetest.NewChat(t, s, "dm", "u1", true)
	dm.Save(at(0, keyed("城市", storetest.FactAbout("u1", "u1 住在杭州"))))
	other := atRobot(dm, "robotB", "u1")
	a, err := s.Inbox.Accept(t.Context(), "a", other.Key, sessions.Message{
		RobotCode: "robotB", ConversationID: "dm", ConversationType: sessions.Private, ID: "m1", SenderID: "u1", Text: "hello",
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, content := range []string{"u1 住在杭州", "u1 住在成都"} {
		r, err := s.Facts.Save(t.Context(), a.Lease, []memory.Draft{at(i, keyed("城市", storetest.FactAbout("u1", content)))})
		if err != nil || len(r.Saved) != 1 || len(r.Superseded) != i {
			t.Errorf("robotB's %q gave %+v (%v)", content, r, err)
		}
	}
	wantKnown(dm, "u1 住在杭州")
	if list, err := s.Facts.Pinned(t.Context(), other, 10); err != nil || len(list) != 1 || list[0].Content != "u1 住在成都" {
		t.Errorf("robotB knows %+v (%v)", list, err)
	}
}

// A person's correction in private leaves the value in the group in force, where nothing shows the correction. In
// private the new value holds.
func TestReadableInAGroupDespiteAPrivateCorrection(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	g, dm := storetest.NewChat(t, s, "cid1", "u1", false), storetest.NewChat(t, s, "dm", "u1", true)
	g.Say("u1", "我的岗位是 网关开发") // 3
	said := at(0, keyed("岗位", storetest.InGroup(g, storetest.FactAbout("u1", "u1 的岗位是网关开发"))))
	said.StartSeq, said.EndSeq = 3, 3
	id := g.Save(said).Saved[0]
	for name, correction := range map[string]memory.Draft{
		"of its key":   at(1, keyed("岗位", storetest.FactAbout("u1", "u1 的岗位是待离职交接"))),
		"by its id":    at(2, storetest.Replacing(id, storetest.FactAbout("u1", "u1 正在办离职手续"))),
		"by its words": at(3, storetest.FactAbout("u1", "更正：u1 的岗位改为架构师")),
	} {
		if r := dm.Save(correction); len(r.Saved) != 1 {
			t.Fatalf("the correction %s gave %+v", name, r)
		}
		for _, hit := range g.Search("岗位") {
			if hit.Outdated || strings.Contains(hit.Content, "离职") || strings.Contains(hit.Content, "架构师") {
				t.Errorf("%s: a search in the group has it: %+v", name, hit)
			}
		}
		wantKnown(g, "u1 的岗位是网关开发")
		text, err := show.Get(t.Context(), storetest.Library{Store: s.Facts, Digests: s.Digests}, g.Reader, "memory/user/2026-11-20.md#"+fmt.Sprint(id), 1, show.LogReader{Location: time.UTC})
		if err != nil || strings.Contains(text, "OUTDATED") || !strings.Contains(text, "网关开发") {
			t.Errorf("%s: memory_get in the group has it: %q (%v)", name, text, err)
		}
		list, _, err := s.Rights.Known(t.Context(), memory.Asker{Reader: g.Reader, Person: "u1"}, 0, 10)
		if err != nil || len(list) != 1 || list[0].ID != id {
			t.Errorf("%s: the group's list is %+v (%v)", name, list, err)
		}
	}
	if slices.Contains(dm.Known(), "u1 的岗位是网关开发") {
		t.Errorf("in private the old value holds: %q", dm.Known())
	}
	// The group may correct its own all the same, and then it is corrected there.
	g.Save(at(5, keyed("岗位", storetest.InGroup(g, storetest.FactAbout("u1", "u1 的岗位是测试")))))
	wantKnown(g, "u1 的岗位是测试")
	if hits := g.Search("网关开发"); !slices.ContainsFunc(hits, func(h memory.Hit) bool { return h.Seq == 3 && h.Outdated }) {
		t.Errorf("the group's own correction is not found: %+v", hits)
	}
}

// People's statements about themselves in one group leave those in another in force; in private the newest holds.
func TestReadableByGroup(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	a, b := storetest.NewChat(t, s, "cid1", "u1", false), storetest.NewChat(t, s, "cid2", "u1", false)
	dm := storetest.NewChat(t, s, "dm", "u1", true)
	a.Save(at(0, keyed("工位", storetest.InGroup(a, storetest.FactAbout("u1", "u1 的工位是 A3")))))
	b.Save(at(1, keyed("工位", storetest.InGroup(b, storetest.FactAbout("u1", "u1 的工位是 B12")))))
	wantKnown(dm, "u1 的工位是 B12")
	b.Save(at(2, storetest.InGroup(b, storetest.FactAbout("u1", "更正：u1 的工位改为 C7")))) // by its words alone: its own
	wantKnown(a, "u1 的工位是 A3")
	wantKnown(b, "更正：u1 的工位改为 C7")
	a.Save(at(3, keyed("工位", storetest.InGroup(a, storetest.FactAbout("u1", "u1 的工位是 A9")))))
	wantKnown(a, "u1 的工位是 A9")
	wantKnown(b, "更正：u1 的工位改为 C7")
}

// Two people may say the same of themselves, and both are remembered.
func TestSaveSeparatesPeople(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	of := func(person sessions.UserID) memory.Draft {
		d := storetest.GroupFact(c, "下周休假")
		d.SubjectID = person
		return d
	}
	if r := c.Save(of("u1"), of("u2")); len(r.Saved) != 2 {
		t.Errorf("two people's facts in the same words gave %+v", r)
	}
	if r := c.Save(of("u2"), of("u1")); len(r.Saved) != 0 || len(r.Duplicate) != 2 {
		t.Errorf("once more they gave %+v", r)
	}
	if r := c.Save(of("")); len(r.Saved) != 0 || len(r.Duplicate) != 1 {
		t.Errorf("without a subject it gave %+v", r)
	}
	wantKnown(c, "下周休假", "下周休假")
}

// A key such as "owner" can be that of many things; the other words of the facts decide which.
func TestSaveSeparatesThingsOfOneKey(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	c.Save(at(0, keyed("负责人", storetest.GroupFact(c, "Alpha 项目的负责人是李娜"))))
	c.Save(at(1, keyed("负责人", storetest.GroupFact(c, "打印机的负责人是王芳"))))
	wantKnown(c, "打印机的负责人是王芳", "Alpha 项目的负责人是李娜")
	c.Save(at(2, keyed("负责人", storetest.GroupFact(c, "Alpha 项目的负责人是赵敏"))))
	wantKnown(c, "Alpha 项目的负责人是赵敏", "打印机的负责人是王芳")
}
