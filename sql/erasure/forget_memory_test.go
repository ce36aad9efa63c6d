package erasure_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/storetest"
)

// joined has four stored statements, and two memories that consolidate them.
func joined(t *testing.T) (s *sql.Store, pool *pgxpool.Pool, c *storetest.Chat, ids []int64) {
	t.Helper()
	s, pool, c = storetest.OpenChat(t)
	var old []memory.Memory
	for i, text := range []string{"张伟伟的儿子叫豆豆", "张伟伟养了一只乌龟", "周会在周三上午", "食堂十二点开门"} {
		c.Exchange(storetest.ZhangID, text, "好")
		d := storetest.SaidBy(c, text, storetest.ZhangID, int64(3+2*i))
		old = append(old, memory.Memory{
			ID: c.Save(d).Saved[0], Scope: d.Scope, ScopeID: d.ScopeID, SourceGroup: d.SourceGroup, SourceSession: c.Reader.Key,
		})
	}
	family, office := storetest.GroupFact(c, "张伟伟的儿子叫豆豆，养了一只乌龟"), storetest.GroupFact(c, "周会在周三上午，食堂十二点开门")
	family.EndSeq, office.EndSeq = 9, 9
	return s, pool, c, storetest.Must[memory.Receipt](t)(s.FactUpkeep.Consolidate(t.Context(), old, []memory.Draft{family, office})).Saved
}

func inForce(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	return strings.Join(storetest.Collect(t, pool, "SELECT content FROM memories WHERE superseded_by IS NULL ORDER BY id", pgx.RowTo[string]), "|")
}

// A consolidation goes with one of its facts, whichever of the new ones it is. The other facts are in force again, and
// their messages stay.
func TestForgetReachesConsolidatedFacts(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"the first", "the second"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, pool, c, ids := joined(t)
			goes, left := []string{"豆豆", "乌龟"}, []string{"周会在周三上午", "食堂十二点开门"}
			if i == 1 {
				goes, left = []string{"周会", "食堂"}, []string{"张伟伟的儿子叫豆豆", "张伟伟养了一只乌龟"}
			}
			if done := forget(c, ids[i], storetest.ZhangID, true); done.Memories != 4 || done.Messages != 4 {
				t.Errorf("forgetting gave %+v, want two facts, the consolidations of both pairs, two messages and their answers", done)
			}
			storetest.WantGone(t, pool, goes...)
			if got := inForce(t, pool); got != strings.Join(left, "|") {
				t.Errorf("in force are %s", got)
			}
			if n := storetest.Number(t, pool, "SELECT count(*) FROM dingtalk_session_events WHERE content = $1 OR content = $2", left[0], left[1]); n != 2 {
				t.Errorf("%d of the two other messages are left", n)
			}
		})
	}
}

// A fact that was corrected after its consolidation does not come back with the others.
func TestForgetRestoresNoCorrectedFact(t *testing.T) {
	t.Parallel()
	_, pool, c, ids := joined(t)
	c.Save(storetest.Replacing(ids[1], storetest.GroupFact(c, "周会取消，食堂也关门了")))
	forget(c, ids[0], storetest.ZhangID, true)
	if got := inForce(t, pool); got != "周会取消，食堂也关门了" {
		t.Errorf("in force are %s", got)
	}
	storetest.WantGone(t, pool, "豆豆", "乌龟")
}

// However many sessions repeat a memory, it goes from all of them. When the last step fails, a repetition of the
// request completes it.
func TestForgetInManySessions(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "保险柜放在三楼档案室里", "好")
	id := storetest.Must[memory.Memory](t)(s.Rights.Promote(t.Context(), c.Save(storetest.SaidBy(c, "保险柜放在三楼档案室里", storetest.ZhangID, 3)).Saved[0], storetest.LiID)).ID
	storetest.Execute(t, pool, `INSERT INTO dingtalk_sessions (session_key, robot_code, conversation_id, conversation_type, last_seq)
		SELECT $1::text || '/g' || i, $1::text, 'g' || i, '2', 1 FROM generate_series(1, 230) i`, string(storetest.Robot))
	storetest.Execute(t, pool, `INSERT INTO dingtalk_session_events (session_key, seq, role, content, tokens)
		SELECT $1::text || '/g' || i, 1, 'assistant', '保险柜放在三楼档案室里', 3 FROM generate_series(1, 230) i`, string(storetest.Robot))
	c.Said++
	asked := c.Speak("z9", storetest.ZhangID, storetest.ZhangNick, "/forget", nil)
	lost := asked.Lease
	lost.Term++
	if _, err := s.Erasure.ForgetMemory(t.Context(), id, memory.Asking{Lease: lost, Event: asked.EventID}); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Fatalf("with a lost lease it gave %v", err)
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM memories WHERE id = $1", id); n != 1 {
		t.Error("the memory is gone, so that it can't be asked for again")
	}
	done := storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetMemory(t.Context(), id, memory.Asking{Lease: asked.Lease, Event: asked.EventID}))
	if done.Memories != 2 || done.Lease.Term != asked.Lease.Term+1 {
		t.Errorf("the second time gave %+v", done)
	}
	storetest.WantGone(t, pool, "保险柜")
}

// A fact from a range of the log takes the messages that say it, with their answers. The author's other messages in the range
// stay. If the model used words of its own, all of the author's messages in a small range may have said it.
func TestForgetTakesTheMessagesThatSayTheFact(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fact  string
		stays bool
	}{
		"in the words of a message": {"支付网关的备用链路由李娜值守", true},
		"in other words":            {"出故障时找李娜", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, pool, c := storetest.OpenChat(t)
			c.Exchange(storetest.ZhangID, "请问发布窗口是什么时候？", "周五晚上")           // 3 and 4
			c.Exchange(storetest.ZhangID, "通知大家，支付网关的备用链路由李娜值守。", "好的，记住了") // 5 and 6
			c.Exchange(storetest.LiID, "压测报告放在哪里了", "在群文件里")                // 7 and 8
			d := storetest.SaidBy(c, tt.fact, storetest.ZhangID, 3)
			d.EndSeq = 8
			r := flush(c, 8, d)
			forget(c, r.Saved[0], storetest.ZhangID, true)
			storetest.WantGone(t, pool, "备用链路", "李娜", "记住了")
			stays(t, pool, "压测报告", "在群文件里")
			if tt.stays {
				stays(t, pool, "发布窗口", "周五晚上")
			} else {
				storetest.WantGone(t, pool, "发布窗口")
			}
		})
	}
}

// A message that only has an identifier of the fact does not say it. Both messages of which the model made the fact go.
func TestForgetTakesTheSayingBesideASharedIdentifier(t *testing.T) {
	t.Parallel()
	_, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "查一下 SO-20391 到哪了", "在路上") // 3 and 4
	c.Exchange(storetest.ZhangID, "收货人换王芳吧", "已经换了")         // 5 and 6
	d := storetest.SaidBy(c, "SO-20391 的收货人改成王芳", storetest.ZhangID, 3)
	d.EndSeq = 6
	forget(c, flush(c, 6, d).Saved[0], storetest.ZhangID, true)
	storetest.WantGone(t, pool, "SO-20391", "王芳", "已经换了")
}

// Two facts of one message are forgotten one after the other. The second finds the message wiped, and the author's others stay.
func TestForgetTwoFactsOfOneMessage(t *testing.T) {
	t.Parallel()
	_, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "支付网关的备用链路由李娜值守，压测报告放在群文件里", "好的，记住了") // 3 and 4
	c.Exchange(storetest.ZhangID, "请问发布窗口是什么时候？", "周五晚上")                // 5 and 6
	first, second := storetest.SaidBy(c, "支付网关的备用链路由李娜值守", storetest.ZhangID, 3), storetest.SaidBy(c, "压测报告放在群文件里", storetest.ZhangID, 3)
	first.EndSeq, second.EndSeq = 6, 6
	for _, id := range flush(c, 6, first, second).Saved {
		forget(c, id, storetest.ZhangID, true)
	}
	storetest.WantGone(t, pool, "备用链路", "压测报告", "记住了")
	stays(t, pool, "发布窗口", "周五晚上")
}

// An erasure that failed after it wiped the source of a memory is asked for again. It finds the wiped message, and keeps the
// author's others.
func TestForgetAgainKeepsOtherMessages(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "请问发布窗口是什么时候？", "周五晚上")           // 3 and 4
	c.Exchange(storetest.ZhangID, "通知大家，支付网关的备用链路由李娜值守。", "好的，记住了") // 5 and 6
	d := storetest.SaidBy(c, "支付网关的备用链路由李娜值守", storetest.ZhangID, 3)
	d.EndSeq = 6
	id := flush(c, 6, d).Saved[0]
	asked := storetest.NewChat(t, s, "other", storetest.ZhangID, false).Speak("z9", storetest.ZhangID, storetest.ZhangNick, "/forget", nil)
	lost := asked.Lease
	lost.Term++
	if _, err := s.Erasure.ForgetMemory(t.Context(), id, memory.Asking{Lease: lost, Event: asked.EventID, Only: storetest.ZhangID}); !errors.Is(err, sessions.ErrLeaseLost) {
		t.Fatalf("with a lost lease it gave %v", err)
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM memories WHERE id = $1", id); n != 1 {
		t.Fatal("the memory is gone after an erasure that failed")
	}
	if n := storetest.Number(t, pool, "SELECT count(*) FROM dingtalk_session_events WHERE content LIKE '%备用链路%'"); n != 0 {
		t.Fatal("the message that says it is left")
	}
	storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetMemory(t.Context(), id, memory.Asking{Lease: asked.Lease, Event: asked.EventID, Only: storetest.ZhangID}))
	storetest.WantGone(t, pool, "备用链路", "李娜", "记住了")
	stays(t, pool, "发布窗口", "周五晚上")
}
