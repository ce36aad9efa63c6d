package console_test

import (
	"errors"
	"slices"
	"testing"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// An erasure that ended before its last step left memories alone of a person: they are still found by id.
func TestPersonOfWhomMemoriesAreLeft(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.LiID, false)
	c.Exchange(storetest.ZhangID, "我的手机号是 "+storetest.Secret, "好的")
	d := storetest.OfPerson(storetest.ZhangID, "手机号是 "+storetest.Secret)
	d.SaidBy = storetest.ZhangID
	c.Save(d)
	find := func(robot sessions.RobotCode, name string) []memory.Person {
		return storetest.Must[[]memory.Person](t)(s.Rights.People(t.Context(), robot, "", name))
	}
	if got := find(storetest.Robot, string(storetest.ZhangID)); len(got) != 1 || got[0].Nick == "" {
		t.Errorf("a person who spoke is found as %+v", got)
	}
	storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET sender_id = '', sender_nick = '' WHERE sender_id = $1", storetest.ZhangID)
	storetest.Execute(t, pool, "DELETE FROM people WHERE person = $1", storetest.ZhangID)
	for _, in := range []sessions.RobotCode{storetest.Robot, ""} {
		if got := find(in, string(storetest.ZhangID)); len(got) != 1 || got[0].ID != storetest.ZhangID || got[0].Nick != "" || got[0].Last.IsZero() {
			t.Errorf("robot %q: a person with memories alone is found as %+v", in, got)
		}
	}
	for name, in := range map[string]sessions.RobotCode{string(storetest.ZhangID): "other", storetest.ZhangNick: storetest.Robot} {
		if got := find(in, name); len(got) != 0 {
			t.Errorf("%q is found at robot %q: %+v", name, in, got)
		}
	}
	storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID}))
	if got := find(storetest.Robot, string(storetest.ZhangID)); len(got) != 0 {
		t.Errorf("after the erasure the person is found as %+v", got)
	}
}

// People are found by a part of an id or of any name that they had, in pages that hold each of them.
func TestPeopleByAPart(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	storetest.NewChat(t, s, "cid", storetest.LiID, false)
	storetest.Execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id)
		SELECT 'robot/cid', 10 + i, 'user', 'x', 'p' || i, CASE WHEN i % 100 = 7 THEN '王小Lu' ELSE '员工' || i END, 'm' || i FROM generate_series(1, 12000) i`)
	storetest.Execute(t, pool, `INSERT INTO people (session_key, person, nick, spoke, seen_at)
		SELECT 'robot/s' || k, 'p' || i, '员工' || i, true, now() - interval '2 days' FROM generate_series(2, 12000, 2) i, generate_series(1, 20) k WHERE i % 100 <> 7`)
	storetest.Execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, seq, role, content, sender_id, sender_nick, msg_id)
		VALUES ('robot/cid', 20000, 'user', 'x', 'p1', '改名', 'new'), ('robot/cid', 20001, 'user', 'x', 'p1', '', 'click')`)
	notePeople(t, pool)
	storetest.Execute(t, pool, "UPDATE people SET seen_at = now() - interval '1 day' WHERE person = 'p1' AND nick <> '改名'")
	storetest.Execute(t, pool, `INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, subject_id) VALUES ('user', 'gone1', 'fact', 'x', '\x01', 'robot/cid', 'gone1')`)
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
