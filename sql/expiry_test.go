package sql_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
)

// An expired fact is not read; said again it is back; long after it is deleted.
func TestExpiry(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u1", false)
	task := memory.Draft{Scope: memory.ScopeSession, ScopeID: string(c.reader.Key), Kind: memory.KindTask, Content: "needle: write the report"}
	task.ExpiresAt = time.Now().Add(-time.Hour)
	first := c.save(task)
	c.wantKnown()
	if hits := c.search("needle report"); len(hits) != 0 {
		t.Errorf("what expired is found: %+v", hits)
	}
	if n, err := s.DeleteExpired(t.Context()); err != nil || n != 0 {
		t.Errorf("what has just expired is deleted: %d (%v)", n, err)
	}
	task.ExpiresAt = time.Now().Add(time.Hour)
	if r := c.save(task); !slices.Equal(r.Duplicate, first.Saved) {
		t.Errorf("said again it gave %+v", r)
	}
	c.wantKnown("needle: write the report")
	execute(t, pool, "UPDATE memories SET expires_at = now() - interval '31 days'")
	if n, err := s.DeleteExpired(t.Context()); err != nil || n != 1 {
		t.Errorf("deleted %d (%v), want 1", n, err)
	}
}

// The marks of messages that were deleted with their session go after a day.
func TestMarksOfDeletedMessagesExpire(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	execute(t, pool, `INSERT INTO deleted_messages (message, deleted_at) VALUES ('new', now() - interval '23 hours'), ('old', now() - interval '25 hours')`)
	if _, err := s.DeleteExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left string
	if err := pool.QueryRow(t.Context(), "SELECT string_agg(convert_from(message, 'UTF8'), ' ') FROM deleted_messages").Scan(&left); err != nil || left != "new" {
		t.Errorf("%q is left (%v), want the new one", left, err)
	}
}

// Windows of limits go after their end, and the key of their hashes with its day.
func TestEndedWindowsExpire(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	execute(t, pool, `INSERT INTO limit_windows (subject, ends_at) VALUES ('open', now() + interval '1 minute'), ('ended', now() - interval '11 minutes')`)
	execute(t, pool, `INSERT INTO limit_keys (day, key) VALUES ((now() AT TIME ZONE 'UTC')::date, 'key'), ((now() AT TIME ZONE 'UTC')::date - 2, 'old')`)
	if _, err := s.DeleteExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left string
	if err := pool.QueryRow(t.Context(), "SELECT string_agg(convert_from(subject, 'UTF8'), ' ') FROM limit_windows").Scan(&left); err != nil || left != "open" {
		t.Errorf("%q is left (%v), want the open one", left, err)
	}
	if n := number(t, pool, "SELECT count(*) FROM limit_keys"); n != 1 {
		t.Errorf("%d keys are left, want today's", n)
	}
}

// The mark of an earlier release names the whole session.
func TestMarkOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	key := sessions.NewKey(robot, "cid", zhangID)
	execute(t, pool, `INSERT INTO deleted_messages (message) VALUES (sha256(convert_to($1::text || ' m1', 'UTF8')))`, string(key))
	m := sessions.Message{RobotCode: robot, ConversationID: "cid", ConversationType: sessions.Group, ID: "m1", SenderID: zhangID, Kind: "text", Text: "好"}
	known := must[sessions.Place](t)(s.PlaceOf(t.Context(), sessions.PlaceQuery{Keys: []sessions.Key{key}, ID: m.ID})).Earlier
	if a := must[sessions.Accepted](t)(s.Accept(t.Context(), "a", key, m)); a.New || known != key {
		t.Errorf("the deleted message was accepted as %+v, known under %q", a, known)
	}
}

// The newest ten encrypted ids of a person stay for each robot, and those that two people had at the robot.
func TestOldSenderIDsExpire(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	execute(t, pool, `INSERT INTO sender_ids (sender_id, robot_code, staff_id, seen_at)
		SELECT '$:' || robot || i, robot, 'staff1', now() - i * interval '1 minute' FROM generate_series(1, 15) AS i, unnest(ARRAY['r1', 'r2']) AS robot`)
	execute(t, pool, `INSERT INTO sender_ids (sender_id, robot_code, staff_id)
		VALUES ('$:r115', 'r1', 'staff2'), ('$:r2x', 'r2', 'staff2'), ('$:r215', 'r1', 'staff3')`)
	for range 2 {
		if _, err := s.DeleteExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := collect(t, pool, "SELECT concat_ws(' ', robot_code, staff_id, count(*), min(sender_id)) FROM sender_ids GROUP BY robot_code, staff_id ORDER BY 1", pgx.RowTo[string])
	if want := []string{"r1 staff1 11 $:r11", "r1 staff2 1 $:r115", "r1 staff3 1 $:r215", "r2 staff1 10 $:r21", "r2 staff2 1 $:r2x"}; !slices.Equal(got, want) {
		t.Errorf("%q are left, want %q", got, want)
	}
	if n := collect(t, pool, "SELECT count(*) FROM sender_ids WHERE staff_id = 'staff1' AND sender_id IN ('$:r111', '$:r112', '$:r211', '$:r215')", pgx.RowTo[int]); n[0] != 0 {
		t.Errorf("%d old ids are left", n[0])
	}
}

// An old encrypted id stays while rows are stored under it: an erasure by the staff id finds them.
func TestSenderIDsOfStoredRowsStay(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", zhangOut, false)
	c.turn(zhangOut, zhangNick, "记下了 "+secret, c.speak("z1", zhangOut, zhangNick, "我的手机号是 "+secret, nil))
	c.introduce(robot, zhangID, zhangOut)
	c.speak("l1", liID, "李四", "好", &sessions.Quote{SenderID: "$:quoted", Nick: zhangNick, Text: "我的手机号是"})
	said := memory.Draft{Scope: memory.ScopeGroup, ScopeID: memory.GroupID(robot, "cid"), Kind: memory.KindFact, Content: "客户叫蓝天", SaidBy: "$:said"}
	about := said
	about.Content, about.SaidBy, about.SubjectID = "钥匙在张三那里", "", "$:about"
	own := memory.Draft{Scope: memory.ScopeUser, ScopeID: "$:own", Kind: memory.KindProfile, Content: "喜欢喝茶"}
	for _, d := range []memory.Draft{said, about, own} {
		c.save(d)
	}
	execute(t, pool, `UPDATE sender_ids SET seen_at = now() - interval '1 day'`)
	execute(t, pool, `INSERT INTO sender_ids (sender_id, robot_code, staff_id, seen_at)
		SELECT id, $1, $2, now() - interval '2 days' FROM unnest(ARRAY['$:quoted', '$:said', '$:about', '$:own', '$:unused']) AS id
		UNION ALL SELECT '$:new' || i, $1, $2, now() FROM generate_series(1, 10) AS i`, robot, zhangID)
	if _, err := s.DeleteExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := collect(t, pool, "SELECT sender_id FROM sender_ids WHERE sender_id NOT LIKE '$:new%' ORDER BY 1", pgx.RowTo[string])
	want := []string{string(zhangOut), "$:quoted", "$:said", "$:about", "$:own"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q are left, want %q", got, want)
	}
	if _, err := s.ForgetPerson(t.Context(), memory.Forget{Robot: robot, Person: zhangID}); err != nil {
		t.Fatal(err)
	}
	if left := lines(dump(t, pool), secret); left != "" {
		t.Errorf("left of what was said are\n%s", left)
	}
}

// A use of an encrypted id with its staff id is noted once a day.
func TestUseOfASenderIDIsNoted(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", zhangID, false)
	c.introduce(robot, zhangID, zhangOut)
	for age, want := range map[string]bool{"23 hours": false, "25 hours": true} {
		execute(t, pool, `UPDATE sender_ids SET seen_at = now() - $1::text::interval`, age)
		c.introduce(robot, zhangID, zhangOut)
		if got := collect(t, pool, "SELECT seen_at > now() - interval '1 hour' FROM sender_ids", pgx.RowTo[bool]); !slices.Equal(got, []bool{want}) {
			t.Errorf("a use %s after the last is noted: %v, want %v", age, got, want)
		}
	}
}
