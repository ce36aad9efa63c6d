package sql_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
)

func forgetZhang(t *testing.T, s *sql.Store) memory.Forgotten {
	t.Helper()
	return must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), memory.Forget{Robot: robot, Person: zhangID}))
}

// Other people's statements stay when a person goes, wherever that person's messages stand.
func TestForgottenPersonLeavesOthersFacts(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	c.exchange(liID, "网关项目的负责人是李娜", "好")       // 3 and 4
	c.exchange(zhangID, "停车位在 B2-117 号", "收到") // 5 and 6
	c.exchange(liID, "网关项目截止日是十二月一日", "好")     // 7 and 8
	li := group(c, "网关项目由李娜负责，截止十二月一日")
	li.SaidBy, li.StartSeq, li.EndSeq = liID, 3, 7
	c.flush(8, li, group(c, "办公室搬到五楼"), group(c, "B2-117 是谁的车位？停车位在 B2-117 号")) // without a known owner: drawn from all
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

// A day within reach is summarized again. An older digest keeps the parts about other people, and goes when it has
// none.
func TestForgottenPersonInDigests(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	c.exchange(zhangID, "我的停车位在 B2-117 号", "收到")
	digest(t, pool, c, "# 新的一天\n- 网关上线了", 1)
	digest(t, pool, c, "# 旧的一天\n- 网关上线了\n- "+string(zhangID)+" 停在 B2-117\n有人问了路。他的停车位在 B2-117 号。会开完了。", 30)
	digest(t, pool, c, "# 更旧的一天\n- 车停在 B2-117", 60)
	forgetZhang(t, s)
	left := collect(t, pool, "SELECT content FROM memories", pgx.RowTo[string])
	if len(left) != 1 || left[0] != "# 旧的一天\n- 网关上线了\n有人问了路。会开完了。" {
		t.Errorf("digests are %q, want the old one without the person", left)
	}
	if due := collect(t, pool, "SELECT count(*) FROM memory_digests WHERE NOT done AND memory_id IS NULL", pgx.RowTo[int64]); due[0] != 2 {
		t.Errorf("%d days are to be summarized again, want those whose digests went", due[0])
	}
	gone(t, pool, "B2-117", string(zhangID))
}

// A consolidation of several people's facts goes with one of them; the others' own facts are in force again.
func TestForgottenPersonLeavesConsolidation(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	c.exchange(zhangID, "我儿子叫豆豆", "好")
	c.exchange(liID, "我家的猫叫球球", "好")
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

// The same id at another robot is another person.
func TestForgottenPersonOfOneRobot(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	c.exchange(zhangID, "我想换部门", "好")
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
			c.exchange(who, fmt.Sprintf("我的编号是 KX%d7777%d", j, i), "好")
			c.save(from(c, fmt.Sprintf("%s 的编号是 KX%d7777%d", who, j, i), who, int64(3+2*j)))
		}
	}
	execute(t, pool, "UPDATE memories SET scope = 'team', scope_id = 'robot'") // every session may pin all of them
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
	gone(t, pool, "KX", "staff100")
}

// A person's erasure of themself takes nothing of other people along: neither their statements nor the bot's answers to
// them, whatever nick the person chooses and whatever they repeat.
func TestForgetMeLeavesOthersWords(t *testing.T) {
	t.Parallel()
	const eve = sessions.UserID("staff6666")
	s, pool, c := openChat(t)
	as := func(nick, text, answer string) {
		c.said++
		c.turn(eve, nick, answer, c.speak(fmt.Sprint("eve", c.said), eve, nick, text, nil))
	}
	dm := newChat(t, s, "dm", liID, true)
	execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1' WHERE conversation_id = 'dm'")
	dm.exchange(liID, "我的工单号？", "你的工单是 INC-20261")
	c.exchange(liID, "/etc/nginx/nginx.conf 第 12 行是什么？", "第 12 行写着 listen 443")
	c.exchange(liID, "网关项目什么时候上线？", "项目上线在周五，机器是 KZ-88213")
	c.exchange(liID, "我负责 INC-20261", "好")
	for _, nick := range []string{"项目", "n", "nginx", "网关", "staff0815"} {
		as(nick, "记住 INC-20261 和 KZ-88213，发布在周五", "记住了 INC-20261")
	}
	c.exchange(liID, "/跳舞 项目", "没有这个命令")
	c.exchange(liID, "KZ-88213 在哪？", "KZ-88213 在三楼，项目的机器都在那里，nginx-2 也是")
	quoting := c.speak("l9", liID, "李娜", "同意", &sessions.Quote{SenderID: "staff0001", Nick: "王芳", Text: "发布在周五"})
	c.turn(liID, "李娜", "好的", quoting)
	c.save(from(c, "INC-20261 和 KZ-88213 都很重要", eve, 0))
	digest(t, pool, c, "# 旧的一天\n- 项目上线了\n- 网关的机器是 KZ-88213\n- 李娜负责 INC-20261", 30)

	const others = `SELECT content || coalesce(message #>> '{quote,text}', '') FROM dingtalk_session_events e
		WHERE sender_id = 'staff0815' OR (role = 'assistant' AND content NOT LIKE '记住了%' AND content <> $1) ORDER BY id`
	const digests = "SELECT content FROM memories WHERE kind = 'digest'"
	before := append(collect(t, pool, others, pgx.RowTo[string], sessions.ErasedText), collect(t, pool, digests, pgx.RowTo[string])...)
	done := must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), memory.Forget{Robot: robot, Person: eve, Self: true}))
	after := append(collect(t, pool, others, pgx.RowTo[string], sessions.ErasedText), collect(t, pool, digests, pgx.RowTo[string])...)
	if strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("the rest is\n%s\nwant\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	if done.Messages != 10 || done.Memories != 1 || done.Sessions != 1 {
		t.Errorf("forgetting gave %+v, want five messages with their answers and a fact, of one session", done)
	}
	gone(t, pool, string(eve), "记住", "很重要")
}

// The bot's own words that name a person go where the person spoke: a nick as a whole word, and only where it is one person's.
func TestForgottenByName(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		nick, answer string
		goes         bool
	}{
		"a whole name":               {"张伟", "网关由张伟负责", true},
		"at the start":               {"张伟", "张伟：下周休假", true},
		"a name of three":            {"张伟伟", "今天张伟伟请假", true},
		"a longer name":              {"张伟", "张伟伟负责网关", false},
		"a common word":              {"项目", "项目的负责人是李娜", false},
		"a common word by itself":    {"项目", "关于 项目 的事", true},
		"a Latin name":               {"alice", "Alice is on leave", true},
		"a part of a word":           {"alic", "malice and alicante", false},
		"a part of a path":           {"nginx", "see /etc/nginx/nginx-1", false},
		"three letters":              {"eve", "eve is on leave", false},
		"one character":              {"伟", "伟 在三楼", false},
		"another's name, too":        {"李娜", "由李娜负责", false},
		"by the id":                  {"n", "由 n(staff4711) 负责", true},
		"by an identifier of theirs": {"n", "他的车位是 B2-117", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool, c := openChat(t)
			said := c.speak("z1", zhangID, test.nick, "我的车位是 B2-117", nil)
			c.turn(zhangID, test.nick, "好", said)
			asked := c.speak("l1", liID, "李娜", "再说一遍？", nil)
			c.turn(liID, "李娜", test.answer, asked)
			p := must[memory.Preview](t)(s.PreviewForget(t.Context(), memory.Forget{Robot: robot, Person: zhangID}))
			done := forgetZhang(t, s)
			if left := collect(t, pool, "SELECT count(*) FROM dingtalk_session_events WHERE content = $1", pgx.RowTo[int64], test.answer); (left[0] == 0) != test.goes {
				t.Errorf("%d of %q are left", left[0], test.answer)
			}
			if p.Messages != 1 || p.Messages+p.Answers != done.Messages || len(p.Groups) != 1 {
				t.Errorf("the preview was %+v, and forgetting did %+v", p, done)
			}
			stays(t, pool, "再说一遍")
		})
	}
}

// A preview counts what then goes, and changes nothing.
func TestForgetPreview(t *testing.T) {
	t.Parallel()
	s, pool := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u", false)
	plantPerson(t, s, pool, c)
	dm := newChat(t, s, "dm", zhangID, true)
	execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1' WHERE conversation_id = 'dm'")
	dm.exchange(zhangID, "悄悄说 "+secret, "好")
	dm.save(ofPerson(zhangID, "工资是 "+secret))
	f := memory.Forget{Robot: robot, Person: zhangID}
	before := dump(t, pool)
	p := must[memory.Preview](t)(s.PreviewForget(t.Context(), f))
	if dump(t, pool) != before {
		t.Error("a preview changed something")
	}
	done := must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), f))
	// A digest that is summarized again counts as a memory, too.
	if p.Messages+p.Answers != done.Messages || p.Facts+1 != done.Memories || p.Summaries != done.Summaries+done.Healed || p.DigestLines != 1 ||
		len(p.Groups) != 1 || p.Private != 1 || p.Messages != 4 {
		t.Errorf("the preview was %+v, and forgetting did %+v", p, done)
	}
}

// A person has themself forgotten a few times a day; administrators as often as they must.
func TestForgottenTooOften(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	other, _ := open(t, pool.Config().ConnString())
	mine := memory.Forget{Robot: robot, Person: zhangID, Self: true}
	for i := range memory.MaxErasures {
		c.exchange(zhangID, fmt.Sprint("hello ", i), "hi")
		must[memory.Forgotten](t)([]*sql.Store{s, other}[i%2].ForgetPerson(t.Context(), mine))
	}
	c.exchange(zhangID, "hello again", "hi")
	for _, store := range []*sql.Store{s, other} {
		_, err := store.ForgetPerson(t.Context(), mine)
		_, err2 := store.PreviewForget(t.Context(), mine)
		if !errors.Is(err, memory.ErrTooOften) || !errors.Is(err2, memory.ErrTooOften) {
			t.Errorf("once more gave %v, and its preview %v", err, err2)
		}
	}
	stays(t, pool, "hello again")
	mine.Person = liID
	c.exchange(liID, "something else", "hi")
	must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), mine))
	forgetZhang(t, s)
	gone(t, pool, "hello again", string(zhangID))
	execute(t, pool, "UPDATE person_erasures SET day = day - 1")
	c.exchange(zhangID, "hello tomorrow", "hi")
	mine.Person = zhangID
	must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), mine))
	must[int](t)(s.DeleteExpired(t.Context()))
	if rows := collect(t, pool, "SELECT times FROM person_erasures", pgx.RowTo[int32]); len(rows) != 1 {
		t.Errorf("%d counts are kept, want today's alone", len(rows))
	}
}

// The erasures of a person under the staff id and the encrypted one are counted together, although each forgets that the two
// are one person's.
func TestForgottenTooOftenUnderBothIDs(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	forget := func(id sessions.UserID) error {
		c.exchange(id, "hello", "hi")
		_, err := s.ForgetPerson(t.Context(), memory.Forget{Robot: robot, Person: id, Self: true})
		return err
	}
	c.introduce(robot, zhangID, zhangOut)
	for range memory.MaxErasures - 1 {
		if err := forget(zhangID); err != nil {
			t.Fatal(err)
		}
		c.introduce(robot, zhangID, zhangOut)
	}
	if err := forget(zhangOut); err != nil {
		t.Fatal(err)
	}
	for _, id := range []sessions.UserID{zhangOut, zhangID} {
		if id == zhangID {
			c.introduce(robot, zhangID, zhangOut) // its message has both
		}
		if err := forget(id); !errors.Is(err, memory.ErrTooOften) {
			t.Errorf("once more under the id %s gave %v", id, err)
		}
	}
	for _, key := range collect(t, pool, "SELECT encode(person, 'escape') FROM person_erasures", pgx.RowTo[string]) {
		if strings.Contains(key, string(zhangID)) || strings.Contains(key, string(zhangOut)) {
			t.Errorf("the count has an id in clear: %s", key)
		}
	}
	for _, id := range []sessions.UserID{zhangID, zhangOut} { // hashes that all who know the id can compute
		for _, said := range []string{string(id), string(robot) + "\x00" + string(id), "erasures\x00" + string(robot) + "\x00" + string(id)} {
			if n := collect(t, pool, "SELECT count(*) FROM person_erasures WHERE person = sha256($1)", pgx.RowTo[int64], []byte(said)); n[0] > 0 {
				t.Errorf("the count has a hash of %q without a key", said)
			}
		}
	}
}

// A short staff id in brackets stands in texts about anything: only with its person's nick does it name them.
func TestShortIDsIdentifyNoPerson(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	c.turn("7", "张伟伟", "好的", c.speak("z1", "7", "张伟伟", "早上好", nil))
	c.exchange(liID, "怎么部署", "步骤 (7)：重启服务")
	c.exchange(liID, "谁负责", "由某某(7)之外的人负责，即周六(7)")
	c.exchange(liID, "还有谁", "张伟伟(7)")
	must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), memory.Forget{Robot: robot, Person: "7"}))
	got := collect(t, pool, "SELECT content FROM dingtalk_session_events WHERE role = 'assistant' ORDER BY seq", pgx.RowTo[string])
	if want := []string{"ok", sessions.ErasedText, "步骤 (7)：重启服务", "由某某(7)之外的人负责，即周六(7)", sessions.ErasedText}; !slices.Equal(got, want) {
		t.Errorf("the answers are %q, want %q", got, want)
	}
}

// The commit in the session of the asking turn waits for the disk, and covers the other commits of the erasure. The turn
// asks again if the server crashes before it. Without such a turn each commit waits.
func TestErasureWaitsForTheDiskOnce(t *testing.T) {
	t.Parallel()
	for name, asks := range map[string]bool{"a turn": true, "an operator": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := sqltest.URL(t)
			plain, pool := open(t, url)
			c := newChat(t, plain, "cid", "u", false)
			for _, other := range []sessions.ConversationID{"c2", "c3"} {
				newChat(t, plain, other, "u", false).exchange(zhangID, "储物柜是 "+secret, "好")
			}
			c.exchange(zhangID, "暗号是 "+secret, "好")
			f := memory.Forget{Robot: robot, Person: zhangID, Self: asks}
			if asks {
				asked := c.speak("f", zhangID, zhangNick, "/忘记我 确认", nil)
				f.From = memory.Asking{Lease: asked.Lease, Event: asked.EventID, Language: "zh"}
			}
			k := &killer{}
			s := openTraced(t, url, 1, k)
			k.seen = nil
			if done := must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), f)); done.Sessions != 3 {
				t.Errorf("%d sessions were changed, want 3", done.Sessions)
			}
			gone(t, pool, secret)
			var waits []bool
			for _, statement := range k.seen {
				if strings.HasPrefix(statement, "BEGIN") {
					waits = append(waits, !strings.Contains(statement, "synchronous_commit = off"))
				}
			}
			if want := map[bool][]bool{true: {false, false, true}, false: {true, true, true, true}}[asks]; !slices.Equal(waits, want) {
				t.Errorf("the commits that wait are %v, want %v", waits, want)
			}
		})
	}
}
