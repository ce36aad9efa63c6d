package identity_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// The newest ten encrypted ids of a person stay for each robot, and those that two people had at the robot.
func TestOldSenderIDsExpire(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	storetest.Execute(t, pool, `INSERT INTO sender_ids (sender_id, robot_code, staff_id, seen_at)
		SELECT '$:' || robot || i, robot, 'staff1', now() - i * interval '1 minute' FROM generate_series(1, 15) AS i, unnest(ARRAY['r1', 'r2']) AS robot`)
	storetest.Execute(t, pool, `INSERT INTO sender_ids (sender_id, robot_code, staff_id)
		VALUES ('$:r115', 'r1', 'staff2'), ('$:r2x', 'r2', 'staff2'), ('$:r215', 'r1', 'staff3')`)
	for range 2 {
		if _, err := s.FactUpkeep.DeleteExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := storetest.Collect(t, pool, "SELECT concat_ws(' ', robot_code, staff_id, count(*), min(sender_id)) FROM sender_ids GROUP BY robot_code, staff_id ORDER BY 1", pgx.RowTo[string])
	if want := []string{"r1 staff1 11 $:r11", "r1 staff2 1 $:r115", "r1 staff3 1 $:r215", "r2 staff1 10 $:r21", "r2 staff2 1 $:r2x"}; !slices.Equal(got, want) {
		t.Errorf("%q are left, want %q", got, want)
	}
	if n := storetest.Collect(t, pool, "SELECT count(*) FROM sender_ids WHERE staff_id = 'staff1' AND sender_id IN ('$:r111', '$:r112', '$:r211', '$:r215')", pgx.RowTo[int]); n[0] != 0 {
		t.Errorf("%d old ids are left", n[0])
	}
}

// An old encrypted id stays while rows are stored under it: an erasure by the staff id finds them.
func TestSenderIDsOfStoredRowsStay(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.ZhangOut, false)
	c.Turn(storetest.ZhangOut, storetest.ZhangNick, "记下了 "+storetest.Secret, c.Speak("z1", storetest.ZhangOut, storetest.ZhangNick, "我的手机号是 "+storetest.Secret, nil))
	c.Introduce(storetest.Robot, storetest.ZhangID, storetest.ZhangOut)
	c.Speak("l1", storetest.LiID, "李四", "好", &sessions.Quote{SenderID: "$:quoted", Nick: storetest.ZhangNick, Text: "我的手机号是"})
	said := memory.Draft{Scope: memory.ScopeGroup, ScopeID: memory.GroupID(storetest.Robot, "cid"), Kind: memory.KindFact, Content: "客户叫蓝天", SaidBy: "$:said"}
	about := said
	about.Content, about.SaidBy, about.SubjectID = "钥匙在张三那里", "", "$:about"
	own := memory.Draft{Scope: memory.ScopeUser, ScopeID: "$:own", Kind: memory.KindProfile, Content: "喜欢喝茶"}
	for _, d := range []memory.Draft{said, about, own} {
		c.Save(d)
	}
	storetest.Execute(t, pool, `UPDATE sender_ids SET seen_at = now() - interval '1 day'`)
	storetest.Execute(t, pool, `INSERT INTO sender_ids (sender_id, robot_code, staff_id, seen_at)
		SELECT id, $1, $2, now() - interval '2 days' FROM unnest(ARRAY['$:quoted', '$:said', '$:about', '$:own', '$:unused']) AS id
		UNION ALL SELECT '$:new' || i, $1, $2, now() FROM generate_series(1, 10) AS i`, storetest.Robot, storetest.ZhangID)
	if _, err := s.FactUpkeep.DeleteExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := storetest.Collect(t, pool, "SELECT sender_id FROM sender_ids WHERE sender_id NOT LIKE '$:new%' ORDER BY 1", pgx.RowTo[string])
	want := []string{string(storetest.ZhangOut), "$:quoted", "$:said", "$:about", "$:own"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q are left, want %q", got, want)
	}
	if _, err := s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID}); err != nil {
		t.Fatal(err)
	}
	if left := storetest.Lines(storetest.Dump(t, pool), storetest.Secret); left != "" {
		t.Errorf("left of what was said are\n%s", left)
	}
}

// A use of an encrypted id with its staff id is noted once a day.
func TestUseOfASenderIDIsNoted(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", storetest.ZhangID, false)
	c.Introduce(storetest.Robot, storetest.ZhangID, storetest.ZhangOut)
	for age, want := range map[string]bool{"23 hours": false, "25 hours": true} {
		storetest.Execute(t, pool, `UPDATE sender_ids SET seen_at = now() - $1::text::interval`, age)
		c.Introduce(storetest.Robot, storetest.ZhangID, storetest.ZhangOut)
		if got := storetest.Collect(t, pool, "SELECT seen_at > now() - interval '1 hour' FROM sender_ids", pgx.RowTo[bool]); !slices.Equal(got, []bool{want}) {
			t.Errorf("a use %s after the last is noted: %v, want %v", age, got, want)
		}
	}
}
