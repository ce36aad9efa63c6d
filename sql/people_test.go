package sql_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql/sqltest"
)

// zhangOut is the id under which a frame without a staff id names Zhang.
const zhangOut = sessions.UserID("$:LWCP_v1:$zhang")

// introduce has a message to a robot accepted that has both ids of a sender.
func (c *chat) introduce(robot sessions.RobotCode, staff, encrypted sessions.UserID) {
	c.t.Helper()
	c.said++
	id := sessions.MessageID(fmt.Sprint("intro", c.said))
	a := must[sessions.Accepted](c.t)(c.store.Accept(c.t.Context(), "a", sessions.NewKey(robot, "intro", ""), sessions.Message{
		RobotCode: robot, ConversationID: "intro", ConversationType: sessions.Group, ID: id, SenderNick: "N", Kind: "text",
		SenderID: staff, StaffID: staff, EncryptedID: encrypted, Text: "大家好",
	}))
	if !a.New {
		c.t.Fatal("the message was not stored")
	}
}

// A fact goes with the messages that its author sent under either id.
func TestForgetFactSaidUnderTwoIDs(t *testing.T) {
	t.Parallel()
	_, pool, c := openChat(t)
	c.exchange(zhangOut, "暗号是 "+secret, "好")     // 3 and 4
	c.exchange(zhangID, "再说一遍，暗号是 "+secret, "好") // 5 and 6
	c.introduce(robot, zhangID, zhangOut)
	c.forget(c.flush(6, from(c, "暗号是 "+secret, zhangID, 5)).Saved[0], zhangID, true)
	gone(t, pool, secret)
}

// A message sent under one id goes with the fact that was saved under the other.
func TestForgetMessageWithFactUnderOtherID(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	said := c.speak("z1", zhangOut, zhangNick, "暗号是 "+secret, nil) // 3
	c.turn(zhangOut, zhangNick, "好", said)
	c.introduce(robot, zhangID, zhangOut)
	c.flush(4, from(c, "暗号是 "+secret, zhangID, 3))
	asked := c.speak("z2", zhangID, zhangNick, "/forget last", nil)
	if _, err := s.ForgetMessage(t.Context(), said.EventID, memory.Asking{Lease: asked.Lease, Event: asked.EventID}); err != nil {
		t.Fatal(err)
	}
	gone(t, pool, secret)
}

// A person's facts under the encrypted id are theirs once a frame had both ids, and no row is written again for it.
func TestPersonWithTwoIDs(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", zhangOut, false)
	c.turn(zhangOut, zhangNick, "记下了 "+secret, c.speak("z1", zhangOut, zhangNick, "我的手机号是 "+secret, nil))
	d := ofPerson(zhangOut, "手机号是 "+secret)
	d.SaidBy, d.StartSeq, d.EndSeq, d.SourceGroup = zhangOut, 3, 3, memory.GroupID(robot, "cid")
	id := c.save(d).Saved[0]
	dm := newChat(t, s, "dm", zhangID, true)
	asker := memory.Asker{Reader: dm.reader, Person: zhangID}

	check := func(when string, facts, messages, read, known int) {
		t.Helper()
		got := []int{
			len(must[[]memory.Memory](t)(s.FactsOf(t.Context(), robot, zhangID, 0, 10))),
			len(must[[]memory.PersonMessage](t)(s.MessagesOf(t.Context(), robot, zhangID, 0, 10))),
			len(must[[]memory.Memory](t)(s.Pinned(t.Context(), dm.reader, 10))),
			len(must[[]memory.Hit](t)(s.Search(t.Context(), dm.reader, memory.Query{Text: "手机号", From: memory.FromMemories, Limit: 5}))),
		}
		for i, want := range []int{facts, messages, read, read} {
			if got[i] != want {
				t.Errorf("%s: facts, messages, pinned and found are %v, want %v", when, got, []int{facts, messages, read, read})
				break
			}
		}
		list, _, err := s.Known(t.Context(), asker, 0, 10)
		if err != nil || len(list) != known || known > 0 && !list[0].Own {
			t.Errorf("%s: known are %+v (%v), want %d, the person's own", when, list, err, known)
		}
	}
	check("before", 0, 1, 0, 0)

	// Another robot's knowledge says nothing of this one's people.
	c.introduce("robot-2", zhangID, zhangOut)
	check("by another robot's frame", 0, 1, 0, 0)
	c.introduce(robot, zhangID, zhangOut)
	check("by a frame with both ids", 1, 4, 1, 1)
	people := must[[]memory.Person](t)(s.People(t.Context(), robot, "", zhangNick))
	if len(people) != 1 || people[0].ID != zhangID {
		t.Errorf("people of the nick are %+v, want one, by the staff id", people)
	}

	asked := c.speak("z9", zhangID, zhangNick, "/forget me yes", nil)
	if before := must[[]sessions.Event](t)(s.MessagesBefore(t.Context(), c.reader.Key, zhangID, asked.EventID, 5)); len(before) != 2 {
		t.Errorf("%d messages stand before the command, want the two under the other id", len(before))
	}
	f := memory.Forget{Robot: robot, Person: zhangID, Self: true, From: memory.Asking{Lease: asked.Lease, Event: asked.EventID}}
	p := must[memory.Preview](t)(s.PreviewForget(t.Context(), f))
	if p.Facts != 1 || p.Messages < 3 || len(p.Groups) != 3 {
		t.Errorf("the preview is %+v, want the fact and the messages under both ids", p)
	}
	done := must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), f))
	if done.Memories != 1 {
		t.Errorf("forgetting gave %+v, want fact %d deleted", done, id)
	}
	after := dump(t, pool)
	if left := lines(after, secret); left != "" {
		t.Errorf("left of what was said are\n%s", left)
	}
	left := slices.Collect(strings.Lines(lines(after, string(zhangOut))))
	if len(left) != 2 || slices.ContainsFunc(left, func(line string) bool { return !strings.Contains(line, "robot-2") }) {
		t.Errorf("left of the other id are, besides what another robot knows,\n%s", left)
	}
}

// An encrypted id that came with two staff ids gives neither of them what was said under it.
func TestSharedSenderID(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", zhangOut, false)
	c.introduce(robot, zhangID, zhangOut)
	c.introduce(robot, liID, zhangOut)
	for _, who := range []sessions.UserID{zhangID, liID} {
		said := must[[]memory.PersonMessage](t)(s.MessagesOf(t.Context(), robot, who, 0, 10))
		if len(said) != 1 {
			t.Errorf("%s said %d messages, want the one under the own staff id", who, len(said))
		}
	}
}

// A click on a button is stored without a nick: the person keeps the one from the message before.
func TestNickBeforeAClick(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", liID, false)
	c.speak("m1", zhangID, zhangNick, "你好", nil)
	c.speak("m2", zhangID, "", "/stop", nil)
	for _, name := range []string{string(zhangID), zhangNick} {
		if got := must[[]memory.Person](t)(s.People(t.Context(), robot, "", name)); len(got) != 1 || got[0].Nick != zhangNick {
			t.Errorf("%q is found as %+v", name, got)
		}
	}
}

// An erasure that ended before its last step left memories alone of a person: they are still found by id.
func TestPersonOfWhomMemoriesAreLeft(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", liID, false)
	c.exchange(zhangID, "我的手机号是 "+secret, "好的")
	d := ofPerson(zhangID, "手机号是 "+secret)
	d.SaidBy = zhangID
	c.save(d)
	find := func(robot sessions.RobotCode, name string) []memory.Person {
		return must[[]memory.Person](t)(s.People(t.Context(), robot, "", name))
	}
	if got := find(robot, string(zhangID)); len(got) != 1 || got[0].Nick == "" {
		t.Errorf("a person who spoke is found as %+v", got)
	}
	execute(t, pool, "UPDATE dingtalk_session_events SET sender_id = '', sender_nick = '' WHERE sender_id = $1", zhangID)
	execute(t, pool, "DELETE FROM people WHERE person = $1", zhangID)
	for _, in := range []sessions.RobotCode{robot, ""} {
		if got := find(in, string(zhangID)); len(got) != 1 || got[0].ID != zhangID || got[0].Nick != "" || got[0].Last.IsZero() {
			t.Errorf("robot %q: a person with memories alone is found as %+v", in, got)
		}
	}
	for name, in := range map[string]sessions.RobotCode{string(zhangID): "other", zhangNick: robot} {
		if got := find(in, name); len(got) != 0 {
			t.Errorf("%q is found at robot %q: %+v", name, in, got)
		}
	}
	must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), memory.Forget{Robot: robot, Person: zhangID}))
	if got := find(robot, string(zhangID)); len(got) != 0 {
		t.Errorf("after the erasure the person is found as %+v", got)
	}
}

// People are found by a part of an id or of any name that they had, in pages that hold each of them.
func TestPeopleByAPart(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	newChat(t, s, "cid", liID, false)
	execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id)
		SELECT 'robot/cid', 10 + i, 'user', 'x', 'p' || i, CASE WHEN i % 100 = 7 THEN '王小Lu' ELSE '员工' || i END, 'm' || i FROM generate_series(1, 12000) i`)
	execute(t, pool, `INSERT INTO people (session_key, person, nick, spoke, seen_at)
		SELECT 'robot/s' || k, 'p' || i, '员工' || i, true, now() - interval '2 days' FROM generate_series(2, 12000, 2) i, generate_series(1, 20) k WHERE i % 100 <> 7`)
	execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id)
		VALUES ('robot/cid', 20000, 'user', 'x', 'p1', '改名', 'new'), ('robot/cid', 20001, 'user', 'x', 'p1', '', 'click')`)
	notePeople(t, pool)
	execute(t, pool, "UPDATE people SET seen_at = now() - interval '1 day' WHERE person = 'p1' AND nick <> '改名'")
	execute(t, pool, `INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, subject_id) VALUES ('user', 'gone1', 'fact', 'x', '\x01', 'robot/cid', 'gone1')`)
	find := func(f pages.PeopleFilter) (ids []string, turned int) {
		t.Helper()
		for p := (pages.Page{Limit: 50}); ; turned++ {
			rows, next, err := s.Pages().People(t.Context(), f, p)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				ids = append(ids, string(r.ID)+" "+r.Nick)
			}
			if p.Cursor = next; next == "" {
				slices.Sort(ids)
				return slices.Compact(ids), turned
			}
		}
	}
	for part, want := range map[string][]string{
		"工11999": {"p11999 员工11999"}, "P1199": {"p1199 员工1199", "p11990 员工11990", "p11991 员工11991", "p11992 员工11992", "p11993 员工11993", "p11994 员工11994",
			"p11995 员工11995", "p11996 员工11996", "p11997 员工11997", "p11998 员工11998", "p11999 员工11999"},
		"改": {"p1 改名"}, "p12000": {"p12000 员工12000"}, "gone1": {"gone1 "}, "one1": nil, "%": nil, "_": nil,
	} {
		if got, _ := find(pages.PeopleFilter{Part: part, Names: true}); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", part, got, want)
		}
	}
	if got, turned := find(pages.PeopleFilter{Part: "小lu", Names: true}); len(got) != 120 || turned < 2 {
		t.Errorf("%d people of 120 are found in %d pages", len(got), turned+1)
	}
	for part, want := range map[string]int{"": 12001, "P1199": 11, "p9": 1111, "99": 318, "小lu": 0, "改": 0, "%": 0} {
		if got, _ := find(pages.PeopleFilter{Part: part}); len(got) != want {
			t.Errorf("%d people have an id with %q, want %d", len(got), part, want)
		}
	}
	if _, _, err := s.Pages().People(t.Context(), pages.PeopleFilter{Part: "x", Names: true}, pages.Page{Limit: 50, Cursor: "?"}); !errors.Is(err, pages.ErrCursor) {
		t.Errorf("a wrong cursor gave %v", err)
	}
}
