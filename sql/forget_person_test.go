package sql_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
)

func forgetZhang(t *testing.T, s *sql.Store) memory.Forgotten {
	t.Helper()
	return must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), memory.Forget{Robot: robot, Person: zhangID}))
}

// What others said stays with a person who goes, wherever that person's messages stand.
func TestForgottenPersonLeavesOthersFacts(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	c.tell(liID, "网关项目的负责人是李娜", "好")       // 3 and 4
	c.tell(zhangID, "停车位在 B2-117 号", "收到") // 5 and 6
	c.tell(liID, "网关项目截止日是十二月一日", "好")     // 7 and 8
	li := group(c, "网关项目由李娜负责，截止十二月一日")
	li.SaidBy, li.StartSeq, li.EndSeq = liID, 3, 7
	c.flush(8, li, group(c, "办公室搬到五楼"), group(c, "B2-117 是谁的车位？停车位在 B2-117 号")) // nobody known: drawn from all
	asked := c.speak("l9", liID, "李娜", "记住：发布在周五", nil)
	waits := c.speak("z9", zhangID, zhangNick, "今天几号", nil) // while Li's turn runs
	saved := group(c, "发布在周五")
	saved.SaidBy = liID
	c.save(saved)
	c.turn(liID, "李娜", "记住了", asked)
	c.turn(zhangID, zhangNick, "六号", waits)
	forgetZhang(t, s)
	left := collect(t, pool, "SELECT content FROM memories ORDER BY id", pgx.RowTo[string])
	if got := strings.Join(left, "|"); got != "网关项目由李娜负责，截止十二月一日|办公室搬到五楼|发布在周五" {
		t.Errorf("memory has %s", got)
	}
	gone(t, pool, "B2-117", "b2-117", "今天几号")
}

// A day that can still be told anew is; an older digest keeps what is not the person's, and goes where nothing else is in it.
func TestForgottenPersonInDigests(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	c.tell(zhangID, "我的停车位在 B2-117 号", "收到")
	digest(t, pool, c, "# 新的一天\n- 网关上线了", 1)
	digest(t, pool, c, "# 旧的一天\n- 网关上线了\n- "+string(zhangID)+" 停在 B2-117\n有人问了路。他的停车位在 B2-117 号。会开完了。", 30)
	digest(t, pool, c, "# 更旧的一天\n- 车停在 B2-117", 60)
	forgetZhang(t, s)
	left := collect(t, pool, "SELECT content FROM memories", pgx.RowTo[string])
	if len(left) != 1 || left[0] != "# 旧的一天\n- 网关上线了\n有人问了路。会开完了。" {
		t.Errorf("digests are %q, want the old one without the person", left)
	}
	if due := collect(t, pool, "SELECT count(*) FROM memory_digests WHERE NOT done AND memory_id IS NULL", pgx.RowTo[int64]); due[0] != 2 {
		t.Errorf("%d days are to be told anew, want those whose digests went", due[0])
	}
	gone(t, pool, "B2-117", string(zhangID))
}

// What several people's facts were told as goes with one of them; the others' own are in force again.
func TestForgottenPersonLeavesConsolidation(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	c.tell(zhangID, "我儿子叫豆豆", "好")
	c.tell(liID, "我家的猫叫球球", "好")
	var old []memory.Memory
	for _, d := range []memory.Draft{
		from(c, "张伟伟儿子叫豆豆", zhangID, 3), from(c, "李娜猫叫球球", liID, 5), from(c, "李娜爱喝茶", liID, 5), from(c, "李娜不吃辣", liID, 5),
	} {
		old = append(old, memory.Memory{
			ID: c.save(d).Saved[0], Scope: d.Scope, ScopeID: d.ScopeID, SourceGroup: d.SourceGroup, SourceSession: c.reader.Key,
		})
	}
	one := group(c, "豆豆是张伟的儿子；李娜的猫叫球球；她爱喝茶、不吃辣")
	one.EndSeq = 5
	must[memory.Receipt](t)(s.Consolidate(t.Context(), old, []memory.Draft{one}))
	forgetZhang(t, s)
	left := collect(t, pool, "SELECT content FROM memories WHERE superseded_by IS NULL ORDER BY id", pgx.RowTo[string])
	if got := strings.Join(left, "|"); got != "李娜猫叫球球|李娜爱喝茶|李娜不吃辣" {
		t.Errorf("in force are %s", got)
	}
	gone(t, pool, "豆豆")
}

// The same id at another robot is somebody else.
func TestForgottenPersonOfOneRobot(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	c.tell(zhangID, "我想换部门", "好")
	c.save(about(zhangID, "想换部门的是 "+string(zhangID)))
	must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), memory.Forget{Robot: "another", Person: zhangID}))
	stays(t, pool, "想换部门的是", "我想换部门")
	must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), memory.Forget{Person: zhangID}))
	gone(t, pool, "想换部门", string(zhangID))
}

// Several who go at the same time do not stand in each other's way, whose words are at the head of each other's views.
func TestForgottenAtTheSameTime(t *testing.T) {
	t.Parallel()
	s, pool, _ := openChat(t)
	people := []sessions.UserID{"staff1001", "staff1002", "staff1003", "staff1004"}
	for i := range 4 {
		c := newChat(t, s, sessions.ConversationID(fmt.Sprint("room", i)), "u", false)
		for j, who := range people {
			c.tell(who, fmt.Sprintf("我的编号是 %d7777%d", j, i), "好")
			c.save(from(c, fmt.Sprintf("%s 的编号是 %d7777%d", who, j, i), who, int64(3+2*j)))
		}
	}
	execute(t, pool, "UPDATE dingtalk_sessions SET pinned = (SELECT string_agg(content, E'\n') FROM memories)")
	var group sync.WaitGroup
	for _, who := range people {
		group.Go(func() {
			if _, err := s.ForgetPerson(t.Context(), memory.Forget{Robot: robot, Person: who}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	gone(t, pool, "7777", "staff100")
}
