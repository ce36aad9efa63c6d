package erasure_test

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
	"ebb/sql/storetest"
)

// Other people's statements stay when a person goes, wherever that person's messages stand.
func TestForgottenPersonLeavesOthersFacts(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.LiID, "网关项目的负责人是李娜", "好")       // 3 and 4
	c.Exchange(storetest.ZhangID, "停车位在 B2-117 号", "收到") // 5 and 6
	c.Exchange(storetest.LiID, "网关项目截止日是十二月一日", "好")     // 7 and 8
	li := storetest.GroupFact(c, "网关项目由李娜负责，截止十二月一日")
	li.SaidBy, li.StartSeq, li.EndSeq = storetest.LiID, 3, 7
	flush(c, 8, li, storetest.GroupFact(c, "办公室搬到五楼"), storetest.GroupFact(c, "B2-117 是谁的车位？停车位在 B2-117 号")) // without a known owner: drawn from all
	asked := c.Speak("l9", storetest.LiID, "李娜", "记住：发布在周五", nil)
	waits := c.Speak("z9", storetest.ZhangID, storetest.ZhangNick, "今天几号", nil) // while Li's turn runs
	saved := storetest.GroupFact(c, "发布在周五")
	saved.SaidBy = storetest.LiID
	c.Save(saved)
	c.Turn(storetest.LiID, "李娜", "记住了", asked)
	c.Turn(storetest.ZhangID, storetest.ZhangNick, "六号", waits)
	storetest.ForgetZhang(t, s)
	left := storetest.Collect(t, pool, "SELECT content FROM memories ORDER BY id", pgx.RowTo[string])
	if got := strings.Join(left, "|"); got != "网关项目由李娜负责，截止十二月一日|办公室搬到五楼|发布在周五" {
		t.Errorf("memory has %s", got)
	}
	storetest.WantGone(t, pool, "B2-117", "b2-117", "今天几号")
}

// A day within reach is summarized again. An older digest keeps the parts about other people, and goes when it has
// none.
func TestForgottenPersonInDigests(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "我的停车位在 B2-117 号", "收到")
	digest(t, pool, c, "# 新的一天\n- 网关上线了", 1)
	digest(t, pool, c, "# 旧的一天\n- 网关上线了\n- "+string(storetest.ZhangID)+" 停在 B2-117\n有人问了路。他的停车位在 B2-117 号。会开完了。", 30)
	digest(t, pool, c, "# 更旧的一天\n- 车停在 B2-117", 60)
	storetest.ForgetZhang(t, s)
	left := storetest.Collect(t, pool, "SELECT content FROM memories", pgx.RowTo[string])
	if len(left) != 1 || left[0] != "# 旧的一天\n- 网关上线了\n有人问了路。会开完了。" {
		t.Errorf("digests are %q, want the old one without the person", left)
	}
	if due := storetest.Collect(t, pool, "SELECT count(*) FROM memory_digests WHERE NOT done AND memory_id IS NULL", pgx.RowTo[int64]); due[0] != 2 {
		t.Errorf("%d days are to be summarized again, want those whose digests went", due[0])
	}
	storetest.WantGone(t, pool, "B2-117", string(storetest.ZhangID))
}

// A consolidation of several people's facts goes with one of them; the others' own facts are in force again.
func TestForgottenPersonLeavesConsolidation(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "我儿子叫豆豆", "好")
	c.Exchange(storetest.LiID, "我家的猫叫球球", "好")
	var old []memory.Memory
	for _, d := range []memory.Draft{
		storetest.SaidBy(c, "张伟伟儿子叫豆豆", storetest.ZhangID, 3), storetest.SaidBy(c, "李娜猫叫球球", storetest.LiID, 5), storetest.SaidBy(c, "李娜爱喝茶", storetest.LiID, 5), storetest.SaidBy(c, "李娜不吃辣", storetest.LiID, 5),
	} {
		old = append(old, memory.Memory{
			ID: c.Save(d).Saved[0], Scope: d.Scope, ScopeID: d.ScopeID, SourceGroup: d.SourceGroup, SourceSession: c.Reader.Key,
		})
	}
	one := storetest.GroupFact(c, "豆豆是张伟的儿子；李娜的猫叫球球；她爱喝茶、不吃辣")
	one.EndSeq = 5
	storetest.Must[memory.Receipt](t)(s.FactUpkeep.Consolidate(t.Context(), old, []memory.Draft{one}))
	storetest.ForgetZhang(t, s)
	left := storetest.Collect(t, pool, "SELECT content FROM memories WHERE superseded_by IS NULL ORDER BY id", pgx.RowTo[string])
	if got := strings.Join(left, "|"); got != "李娜猫叫球球|李娜爱喝茶|李娜不吃辣" {
		t.Errorf("in force are %s", got)
	}
	storetest.WantGone(t, pool, "豆豆")
}

// The same id at another robot is another person.
func TestForgottenPersonOfOneRobot(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "我想换部门", "好")
	c.Save(storetest.FactAbout(storetest.ZhangID, "想换部门的是 "+string(storetest.ZhangID)))
	storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: "another", Person: storetest.ZhangID}))
	stays(t, pool, "想换部门的是", "我想换部门")
	storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), memory.Forget{Person: storetest.ZhangID}))
	storetest.WantGone(t, pool, "想换部门", string(storetest.ZhangID))
}

// Several who go at the same time do not stand in each other's way, whose words are at the head of each other's views.
func TestForgottenAtTheSameTime(t *testing.T) {
	t.Parallel()
	s, pool, _ := storetest.OpenChat(t)
	people := []sessions.UserID{"staff1001", "staff1002", "staff1003", "staff1004"}
	for i := range 4 {
		c := storetest.NewChat(t, s, sessions.ConversationID(fmt.Sprint("room", i)), "u", false)
		for j, who := range people {
			c.Exchange(who, fmt.Sprintf("我的编号是 KX%d7777%d", j, i), "好")
			c.Save(storetest.SaidBy(c, fmt.Sprintf("%s 的编号是 KX%d7777%d", who, j, i), who, int64(3+2*j)))
		}
	}
	storetest.Execute(t, pool, "UPDATE memories SET scope = 'team', scope_id = 'robot'") // every session may pin all of them
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET pinned = (SELECT string_agg(content, E'\n') FROM memories)")
	var group sync.WaitGroup
	for _, who := range people {
		group.Go(func() {
			if _, err := s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: storetest.Robot, Person: who}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	storetest.WantGone(t, pool, "KX", "staff100")
}

// A person's erasure of themself takes nothing of other people along: neither their statements nor the bot's answers to
// them, whatever nick the person chooses and whatever they repeat.
func TestForgetMeLeavesOthersWords(t *testing.T) {
	t.Parallel()
	const eve = sessions.UserID("staff6666")
	s, pool, c := storetest.OpenChat(t)
	as := func(nick, text, answer string) {
		c.Said++
		c.Turn(eve, nick, answer, c.Speak(fmt.Sprint("eve", c.Said), eve, nick, text, nil))
	}
	dm := storetest.NewChat(t, s, "dm", storetest.LiID, true)
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1' WHERE conversation_id = 'dm'")
	dm.Exchange(storetest.LiID, "我的工单号？", "你的工单是 INC-20261")
	c.Exchange(storetest.LiID, "/etc/nginx/nginx.conf 第 12 行是什么？", "第 12 行写着 listen 443")
	c.Exchange(storetest.LiID, "网关项目什么时候上线？", "项目上线在周五，机器是 KZ-88213")
	c.Exchange(storetest.LiID, "我负责 INC-20261", "好")
	for _, nick := range []string{"项目", "n", "nginx", "网关", "staff0815"} {
		as(nick, "记住 INC-20261 和 KZ-88213，发布在周五", "记住了 INC-20261")
	}
	c.Exchange(storetest.LiID, "/跳舞 项目", "没有这个命令")
	c.Exchange(storetest.LiID, "KZ-88213 在哪？", "KZ-88213 在三楼，项目的机器都在那里，nginx-2 也是")
	quoting := c.Speak("l9", storetest.LiID, "李娜", "同意", &sessions.Quote{SenderID: "staff0001", Nick: "王芳", Text: "发布在周五"})
	c.Turn(storetest.LiID, "李娜", "好的", quoting)
	c.Save(storetest.SaidBy(c, "INC-20261 和 KZ-88213 都很重要", eve, 0))
	digest(t, pool, c, "# 旧的一天\n- 项目上线了\n- 网关的机器是 KZ-88213\n- 李娜负责 INC-20261", 30)

	const others = `SELECT content || coalesce(message #>> '{quote,text}', '') FROM dingtalk_session_events e
		WHERE sender_id = 'staff0815' OR (role = 'assistant' AND content NOT LIKE '记住了%' AND content <> $1) ORDER BY id`
	const digests = "SELECT content FROM memories WHERE kind = 'digest'"
	before := append(storetest.Collect(t, pool, others, pgx.RowTo[string], sessions.ErasedText), storetest.Collect(t, pool, digests, pgx.RowTo[string])...)
	done := storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: storetest.Robot, Person: eve, Self: true}))
	after := append(storetest.Collect(t, pool, others, pgx.RowTo[string], sessions.ErasedText), storetest.Collect(t, pool, digests, pgx.RowTo[string])...)
	if strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("the rest is\n%s\nwant\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
	if done.Messages != 10 || done.Memories != 1 || done.Sessions != 1 {
		t.Errorf("forgetting gave %+v, want five messages with their answers and a fact, of one session", done)
	}
	storetest.WantGone(t, pool, string(eve), "记住", "很重要")
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
			s, pool, c := storetest.OpenChat(t)
			said := c.Speak("z1", storetest.ZhangID, test.nick, "我的车位是 B2-117", nil)
			c.Turn(storetest.ZhangID, test.nick, "好", said)
			asked := c.Speak("l1", storetest.LiID, "李娜", "再说一遍？", nil)
			c.Turn(storetest.LiID, "李娜", test.answer, asked)
			p := storetest.Must[memory.Preview](t)(s.Erasure.PreviewForget(t.Context(), memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID}))
			done := storetest.ForgetZhang(t, s)
			if left := storetest.Collect(t, pool, "SELECT count(*) FROM dingtalk_session_events WHERE content = $1", pgx.RowTo[int64], test.answer); (left[0] == 0) != test.goes {
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
	s, pool := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u", false)
	plantPerson(t, s, pool, c)
	dm := storetest.NewChat(t, s, "dm", storetest.ZhangID, true)
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1' WHERE conversation_id = 'dm'")
	dm.Exchange(storetest.ZhangID, "悄悄说 "+storetest.Secret, "好")
	dm.Save(storetest.OfPerson(storetest.ZhangID, "工资是 "+storetest.Secret))
	f := memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID}
	before := storetest.Dump(t, pool)
	p := storetest.Must[memory.Preview](t)(s.Erasure.PreviewForget(t.Context(), f))
	if storetest.Dump(t, pool) != before {
		t.Error("a preview changed something")
	}
	done := storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), f))
	// A digest that is summarized again counts as a memory, too.
	if p.Messages+p.Answers != done.Messages || p.Facts+1 != done.Memories || p.Summaries != done.Summaries+done.Healed || p.DigestLines != 1 ||
		len(p.Groups) != 1 || p.Private != 1 || p.Messages != 4 {
		t.Errorf("the preview was %+v, and forgetting did %+v", p, done)
	}
}

// A person has themself forgotten a few times a day; administrators as often as they must.
func TestForgottenTooOften(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	other, _ := storetest.Open(t, pool.Config().ConnString())
	mine := memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID, Self: true}
	for i := range memory.MaxErasures {
		c.Exchange(storetest.ZhangID, fmt.Sprint("hello ", i), "hi")
		storetest.Must[memory.Forgotten](t)([]*sql.Store{s, other}[i%2].Erasure.ForgetPerson(t.Context(), mine))
	}
	c.Exchange(storetest.ZhangID, "hello again", "hi")
	for _, store := range []*sql.Store{s, other} {
		_, err := store.Erasure.ForgetPerson(t.Context(), mine)
		_, err2 := store.Erasure.PreviewForget(t.Context(), mine)
		if !errors.Is(err, memory.ErrTooOften) || !errors.Is(err2, memory.ErrTooOften) {
			t.Errorf("once more gave %v, and its preview %v", err, err2)
		}
	}
	stays(t, pool, "hello again")
	mine.Person = storetest.LiID
	c.Exchange(storetest.LiID, "something else", "hi")
	storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), mine))
	storetest.ForgetZhang(t, s)
	storetest.WantGone(t, pool, "hello again", string(storetest.ZhangID))
	storetest.Execute(t, pool, "UPDATE person_erasures SET day = day - 1")
	c.Exchange(storetest.ZhangID, "hello tomorrow", "hi")
	mine.Person = storetest.ZhangID
	storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), mine))
	storetest.Must[int](t)(s.FactUpkeep.DeleteExpired(t.Context()))
	if rows := storetest.Collect(t, pool, "SELECT times FROM person_erasures", pgx.RowTo[int32]); len(rows) != 1 {
		t.Errorf("%d counts are kept, want today's alone", len(rows))
	}
}

// The erasures of a person under the staff id and the encrypted one are counted together, although each forgets that the two
// are one person's.
func TestForgottenTooOftenUnderBothIDs(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	forget := func(id sessions.UserID) error {
		c.Exchange(id, "hello", "hi")
		_, err := s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: storetest.Robot, Person: id, Self: true})
		return err
	}
	c.Introduce(storetest.Robot, storetest.ZhangID, storetest.ZhangOut)
	for range memory.MaxErasures - 1 {
		if err := forget(storetest.ZhangID); err != nil {
			t.Fatal(err)
		}
		c.Introduce(storetest.Robot, storetest.ZhangID, storetest.ZhangOut)
	}
	if err := forget(storetest.ZhangOut); err != nil {
		t.Fatal(err)
	}
	for _, id := range []sessions.UserID{storetest.ZhangOut, storetest.ZhangID} {
		if id == storetest.ZhangID {
			c.Introduce(storetest.Robot, storetest.ZhangID, storetest.ZhangOut) // its message has both
		}
		if err := forget(id); !errors.Is(err, memory.ErrTooOften) {
			t.Errorf("once more under the id %s gave %v", id, err)
		}
	}
	for _, key := range storetest.Collect(t, pool, "SELECT encode(person, 'escape') FROM person_erasures", pgx.RowTo[string]) {
		if strings.Contains(key, string(storetest.ZhangID)) || strings.Contains(key, string(storetest.ZhangOut)) {
			t.Errorf("the count has an id in clear: %s", key)
		}
	}
	for _, id := range []sessions.UserID{storetest.ZhangID, storetest.ZhangOut} { // hashes that all who know the id can compute
		for _, said := range []string{string(id), string(storetest.Robot) + "\x00" + string(id), "erasures\x00" + string(storetest.Robot) + "\x00" + string(id)} {
			if n := storetest.Collect(t, pool, "SELECT count(*) FROM person_erasures WHERE person = sha256($1)", pgx.RowTo[int64], []byte(said)); n[0] > 0 {
				t.Errorf("the count has a hash of %q without a key", said)
			}
		}
	}
}

// A short staff id in brackets stands in texts about anything: only with its person's nick does it name them.
func TestShortIDsIdentifyNoPerson(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	c.Turn("7", "张伟伟", "好的", c.Speak("z1", "7", "张伟伟", "早上好", nil))
	c.Exchange(storetest.LiID, "怎么部署", "步骤 (7)：重启服务")
	c.Exchange(storetest.LiID, "谁负责", "由某某(7)之外的人负责，即周六(7)")
	c.Exchange(storetest.LiID, "还有谁", "张伟伟(7)")
	storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), memory.Forget{Robot: storetest.Robot, Person: "7"}))
	got := storetest.Collect(t, pool, "SELECT content FROM dingtalk_session_events WHERE role = 'assistant' ORDER BY seq", pgx.RowTo[string])
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
			plain, pool := storetest.Open(t, url)
			c := storetest.NewChat(t, plain, "cid", "u", false)
			for _, other := range []sessions.ConversationID{"c2", "c3"} {
				storetest.NewChat(t, plain, other, "u", false).Exchange(storetest.ZhangID, "储物柜是 "+storetest.Secret, "好")
			}
			c.Exchange(storetest.ZhangID, "暗号是 "+storetest.Secret, "好")
			f := memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID, Self: asks}
			if asks {
				asked := c.Speak("f", storetest.ZhangID, storetest.ZhangNick, "/忘记我 确认", nil)
				f.From = memory.Asking{Lease: asked.Lease, Event: asked.EventID, Language: "zh"}
			}
			k := &storetest.Killer{}
			s := storetest.OpenTraced(t, url, 1, k)
			k.Seen = nil
			if done := storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), f)); done.Sessions != 3 {
				t.Errorf("%d sessions were changed, want 3", done.Sessions)
			}
			storetest.WantGone(t, pool, storetest.Secret)
			var waits []bool
			for _, statement := range k.Seen {
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
