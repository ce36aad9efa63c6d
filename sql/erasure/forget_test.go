package erasure_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

func flush(c *storetest.Chat, through int64, drafts ...memory.Draft) memory.Receipt {
	c.T.Helper()
	return storetest.Must[memory.Receipt](c.T)(c.Store.Flushes.Flush(c.T.Context(), c.Lease, memory.Flush{Through: through, Last: true, Drafts: drafts}))
}

// stays fails the test where a word is in no table.
func stays(t *testing.T, pool *pgxpool.Pool, words ...string) {
	t.Helper()
	all := storetest.Dump(t, pool)
	for _, w := range words {
		if storetest.Lines(all, w) == "" {
			t.Errorf("%s is gone", w)
		}
	}
}

// forget is ForgetMemory by a member's message in the chat; with only, of their own messages alone.
func forget(c *storetest.Chat, id int64, who sessions.UserID, only bool) memory.Forgotten {
	c.T.Helper()
	c.Said++
	asked := c.Speak(fmt.Sprint("forget", c.Said), who, string(who), "/forget", nil)
	a := memory.Asking{Lease: asked.Lease, Event: asked.EventID}
	if only {
		a.Only = who
	}
	done := storetest.Must[memory.Forgotten](c.T)(c.Store.Erasure.ForgetMemory(c.T.Context(), id, a))
	c.Lease = done.Lease
	return done
}

// A turn's own fact came from the messages that the turn took, not from those that stand or came beside them.
func TestFactOfATurnComesFromItsMessages(t *testing.T) {
	t.Parallel()
	for name, merged := range map[string]bool{"answered with another's": true, "another came meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, pool, c := storetest.OpenChat(t)
			c.Exchange(storetest.ZhangID, "早上好", "早")
			ours := c.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "note it: the word is "+storetest.Secret, nil)
			other := c.Speak("l1", storetest.LiID, "李娜", "今天几号", nil)
			d := storetest.GroupFact(c, "门禁的口令以 "+storetest.Secret[:2]+" 开头") // in other words than the message has
			d.SaidBy = storetest.ZhangID
			id := c.Save(d).Saved[0]
			if merged {
				c.Turn(storetest.ZhangID, storetest.ZhangNick, "记住了", ours, other)
			} else {
				c.Turn(storetest.ZhangID, storetest.ZhangNick, "记住了", ours)
				c.Turn(storetest.LiID, "李娜", "六号", other)
			}
			if done := forget(c, id, storetest.ZhangID, true); done.Messages != 2 {
				t.Errorf("%d messages went, want the one that said it and its answer", done.Messages)
			}
			storetest.WantGone(t, pool, storetest.Secret, "记住了")
			stays(t, pool, "今天几号", "早上好")
		})
	}
}

// A fact goes with all the messages in which its person said it.
func TestForgetReachesRepeatedMessages(t *testing.T) {
	t.Parallel()
	_, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "暗号是 "+storetest.Secret, "好")      // 3 and 4
	c.Exchange(storetest.ZhangID, "再说一遍，暗号是 "+storetest.Secret, "好") // 5 and 6
	c.Exchange(storetest.LiID, "他说暗号是 "+storetest.Secret+"？", "他说过") // another's words stay another's
	r := flush(c, 8, storetest.SaidBy(c, "暗号是 "+storetest.Secret, storetest.ZhangID, 3), storetest.SaidBy(c, "暗号是 "+storetest.Secret, storetest.ZhangID, 5))
	forget(c, r.Saved[0], storetest.ZhangID, true)
	left := storetest.Collect(t, pool, "SELECT msg_id FROM dingtalk_session_events WHERE content LIKE '%"+storetest.Secret+"%'", pgx.RowTo[string])
	if len(left) != 1 || left[0] != "tell4" {
		t.Errorf("it is left in %v, want in what another said alone", left)
	}
	for _, h := range c.Search("暗号是什么") {
		if h.Seq != 7 && strings.Contains(h.Content, storetest.Secret) {
			t.Errorf("still found is %+v", h)
		}
	}
}

// A fact goes with its digest, the debt that quotes it, the team's copy and the bot's answers in other groups.
func TestForgetReachesEveryCopy(t *testing.T) {
	t.Parallel()
	for name, original := range map[string]bool{"by the team's copy": false, "by the group's own": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool, c := storetest.OpenChat(t)
			c.Exchange(storetest.ZhangID, "暗号是 "+storetest.Secret, "好") // 3 and 4
			r := flush(c, 4, storetest.SaidBy(c, "暗号是 "+storetest.Secret, storetest.ZhangID, 3))
			id := r.Saved[0]
			digest(t, pool, c, "那天张伟伟说了 "+storetest.Secret, 0)
			c.Exchange(storetest.ZhangID, "明天见", "好") // 5 and 6 are owed
			if err := s.Flushes.Owe(t.Context(), c.Lease, memory.Debt{Through: 6, Failures: 1, Reason: "model error: busy"}); err != nil {
				t.Fatal(err)
			}
			team := storetest.Must[memory.Memory](t)(s.Rights.Promote(t.Context(), id, storetest.LiID))
			other := storetest.NewChat(t, s, "cid2", storetest.LiID, false)
			other.Exchange(storetest.LiID, "暗号？", "团队的暗号是 "+storetest.Secret)
			if !original {
				id = team.ID
			}
			forget(c, id, storetest.ZhangID, false)
			storetest.WantGone(t, pool, storetest.Secret)
			stays(t, pool, "暗号？", "明天见")
			if owed := storetest.Must[memory.Debt](t)(s.Flushes.Owed(t.Context(), c.Reader.Key)); owed.Through != 6 {
				t.Errorf("owed is %+v, want the flush up to event 6", owed)
			}
		})
	}
}

// The team's copy goes with the group's fact also when the group stated another value since, and the messages of that
// value stay.
func TestForgetTakesTheTeamsCopyOfAFormerValue(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "暗号是 "+storetest.Secret, "好")
	old := flush(c, 4, storetest.SaidBy(c, "暗号是 "+storetest.Secret, storetest.ZhangID, 3)).Saved[0]
	team := storetest.Must[memory.Memory](t)(s.Rights.Promote(t.Context(), old, storetest.LiID))
	storetest.Execute(t, pool, "UPDATE memories SET superseded_by = $1 WHERE id = $2", c.Save(storetest.GroupFact(c, "暗号改成了别的")).Saved[0], old)
	forget(c, old, storetest.ZhangID, true)
	if left := storetest.Collect(t, pool, "SELECT id FROM memories ORDER BY id", pgx.RowTo[int64]); len(left) != 1 || left[0] == team.ID {
		t.Errorf("left are %v, want the later value alone", left)
	}
	storetest.WantGone(t, pool, storetest.Secret)
}

// digest plants one from some days ago.
func digest(t *testing.T, pool *pgxpool.Pool, c *storetest.Chat, text string, days int) {
	t.Helper()
	storetest.Execute(t, pool, `INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, source_group, start_seq, end_seq, created_at)
		VALUES ('group', $1, 'digest', $2, sha256(convert_to($2, 'UTF8')), $1, $1, 1, 8, now() - $3 * interval '1 day')`, string(c.Reader.Key), text, days)
	storetest.Execute(t, pool, `INSERT INTO memory_digests (session_key, day, memory_id, done) SELECT source_session, created_at::date, id, true FROM memories WHERE content = $1`, text)
}

// A digest that is not wanted stays away, and its sources stay.
func TestForgetADigest(t *testing.T) {
	t.Parallel()
	_, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "网关项目的负责人是李娜", "好")
	digest(t, pool, c, "# 昨天\n- 网关项目的负责人是李娜", 1)
	if done := forget(c, storetest.MemoryLike(t, pool, "# 昨天%"), storetest.LiID, false); done.Memories != 1 || done.Messages != 0 {
		t.Errorf("forgetting gave %+v, want the digest alone", done)
	}
	storetest.WantGone(t, pool, "昨天")
	if due := storetest.Collect(t, pool, "SELECT count(*) FROM memory_digests WHERE NOT done", pgx.RowTo[int64]); due[0] != 0 {
		t.Error("the day is summarized again")
	}
}

// A date was put into the fact that neither the message nor the bot's words have.
func TestForgetFindsItsWordsWithoutTheDate(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "next Friday we fly to Oslo", "Noted: next Friday we fly to Oslo.") // 3 and 4
	c.Exchange(storetest.LiID, "what is planned?", "You said that next Friday we fly to Oslo, as far as I know.")
	dm := storetest.NewChat(t, s, "cid2", storetest.ZhangID, false)
	dm.Exchange(storetest.ZhangID, "remind me", "Next Friday we fly to Oslo")
	d := storetest.SaidBy(c, "Next Friday (2026-11-27) they fly to Oslo", storetest.ZhangID, 3)
	d.Scope, d.ScopeID, d.SubjectID = memory.ScopeUser, string(storetest.ZhangID), storetest.ZhangID
	id := flush(c, 6, d).Saved[0]
	forget(c, id, storetest.ZhangID, true)
	storetest.WantGone(t, pool, "Oslo")
	stays(t, pool, "what is planned?", "remind me")
}

// A fact in the model's own words shares none with its message. An answer that later repeats the message is found by the message.
func TestForgetFindsRepeatsOfAParaphrasedSource(t *testing.T) {
	t.Parallel()
	_, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "我从来不碰花生酱和坚果", "记下了")    // 3 and 4
	c.Exchange(storetest.LiID, "聚餐要注意什么？", "有人从来不碰花生酱和坚果") // 5 and 6
	id := flush(c, 6, storetest.SaidBy(c, "张伟伟有食物过敏", storetest.ZhangID, 3)).Saved[0]
	forget(c, id, storetest.ZhangID, true)
	storetest.WantGone(t, pool, "花生酱")
	stays(t, pool, "聚餐要注意什么？")
}

// Two facts of one message differ by their codes: a code in brackets is no added date.
func TestForgetKeepsAnotherCode(t *testing.T) {
	t.Parallel()
	_, pool, c := storetest.OpenChat(t)
	large, small := "大会议室的门禁密码（8246）", "小会议室的门禁密码（9713）"
	c.Exchange(storetest.ZhangID, large+"，"+small, "记下了") // 3 and 4
	saved := flush(c, 4, storetest.SaidBy(c, large, storetest.ZhangID, 3), storetest.SaidBy(c, small, storetest.ZhangID, 3)).Saved
	if done := forget(c, saved[0], storetest.ZhangID, false); done.Memories != 1 {
		t.Errorf("forgetting one fact deleted %d", done.Memories)
	}
	if kept := storetest.Collect(t, pool, "SELECT content FROM memories", pgx.RowTo[string]); len(kept) != 1 || kept[0] != small {
		t.Errorf("the facts that stay are %q", kept)
	}
}

// A fact that a turn saved and a flush saved again in other words is one to the member who deletes it; its neighbours
// stay.
func TestForgetReachesParaphrases(t *testing.T) {
	t.Parallel()
	_, pool, c := storetest.OpenChat(t)
	asked := c.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "记住我的身份证号是 "+storetest.Secret+"，工位在三楼", nil)
	d := storetest.GroupFact(c, "张伟伟的身份证号是 "+storetest.Secret)
	d.SaidBy = storetest.ZhangID
	id := c.Save(d).Saved[0]
	c.Turn(storetest.ZhangID, storetest.ZhangNick, "好", asked)
	again := "张伟伟：记住张伟伟的身份证号是 " + storetest.Secret
	if r := c.Save(storetest.SaidBy(c, again, storetest.ZhangID, 3)); len(r.Saved) != 0 || len(r.Duplicate) != 1 {
		t.Errorf("saved again behind the speaker's name it gave %+v", r)
	}
	// As a release before knew no better:
	storetest.Execute(t, pool, `INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, source_group, said_by, start_seq, end_seq)
		VALUES ('group', $1, 'fact', $2, 'x', $1, $1, $3, 3, 3)`, string(c.Reader.Key), again, string(storetest.ZhangID))
	c.Save(storetest.SaidBy(c, "张伟伟的工位在三楼", storetest.ZhangID, 3))
	if done := forget(c, id, storetest.ZhangID, true); done.Memories != 2 {
		t.Errorf("%d memories went, want both with it", done.Memories)
	}
	storetest.WantGone(t, pool, storetest.Secret)
	stays(t, pool, "张伟伟的工位在三楼")
}

// Other members' messages that merely stand in the range of a fact stay, for any member who asks.
func TestForgetLeavesBystanders(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	for i := range 2 {
		c.Exchange(storetest.LiID, fmt.Sprintf("李娜的无关消息 %d", i), "好") // 3 to 6
	}
	c.Exchange(storetest.LiID, "审批人是张伟伟", "知道了，审批人是张伟伟") // 7 and 8
	approver := storetest.GroupFact(c, "张伟伟 is the approver")
	approver.SubjectID = storetest.ZhangID
	byLi := storetest.SaidBy(c, "审批人是张伟伟", storetest.LiID, 7)
	byLi.SubjectID = storetest.ZhangID
	r := flush(c, 8, approver, byLi)
	if done := storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetMemory(t.Context(), r.Saved[0], memory.Asking{})); done.Messages != 0 {
		t.Errorf("%d messages went with a fact without a speaker", done.Messages)
	}
	// Whom a fact is about may have it forgotten, and what the bot said of it, but not what another said.
	if done := forget(c, r.Saved[1], storetest.ZhangID, true); done.Memories != 1 || done.Messages != 1 {
		t.Errorf("forgetting gave %+v, want the fact and the bot's own words", done)
	}
	if n := storetest.Collect(t, pool, "SELECT count(*) FROM dingtalk_session_events WHERE sender_id = $1 AND content <> $2", pgx.RowTo[int64], string(storetest.LiID), sessions.ErasedText); n[0] != 3 {
		t.Errorf("%d of Li's 3 messages are left", n[0])
	}
	storetest.WantGone(t, pool, "知道了，审批人")
}

// One message goes with its answer and what was drawn from it; what was said before and by others stays.
func TestForgetOneMessage(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	c.Exchange(storetest.ZhangID, "发布在周五", "好的")                               // 3 and 4
	c.Exchange(storetest.ZhangID, "口令是 hunter7742x，别外传", "收到，口令是 hunter7742x") // 5 and 6
	c.Exchange(storetest.LiID, "刚才说了什么？", "他给了 hunter7742x")                   // 7 and 8
	wide := storetest.SaidBy(c, "入口用 hunter7742x 登录", storetest.ZhangID, 3)    // drawn from both messages
	wide.EndSeq = 5
	flush(c, 8, storetest.SaidBy(c, "发布在周五", storetest.ZhangID, 3), storetest.SaidBy(c, "张伟伟管着入口的口令", storetest.ZhangID, 5), wide)
	asked := c.Speak("z9", storetest.ZhangID, storetest.ZhangNick, "/forget last", nil)
	done := storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetMessage(t.Context(), eventAt(t, pool, 5), memory.Asking{Lease: asked.Lease, Event: asked.EventID}))
	if done.Messages != 3 || done.Memories != 2 || done.Lease.Term != asked.Lease.Term+1 {
		t.Errorf("forgetting gave %+v, want the message, two answers and two facts", done)
	}
	storetest.WantGone(t, pool, "hunter7742x", "管着入口")
	stays(t, pool, "发布在周五", "刚才说了什么", "好的")
	if _, err := s.Turns.Commit(t.Context(), done.Lease, sessions.TurnResult{Taken: []int64{asked.EventID}, TakenTokens: []int{2}}); err != nil {
		t.Errorf("the turn that asked can't answer: %v", err)
	}
}

// eventAt is the id of the event at a place of the log.
func eventAt(t *testing.T, pool *pgxpool.Pool, seq int64) int64 {
	t.Helper()
	return storetest.Collect(t, pool, "SELECT id FROM dingtalk_session_events WHERE seq = $1", pgx.RowTo[int64], seq)[0]
}

// A message that was set aside is a person's last one, too, and can be erased by its id; the one before it stays.
func TestForgetADeadLetter(t *testing.T) {
	t.Parallel()
	for name, erase := range map[string]func(s *sql.Store, c *storetest.Chat, last sessions.Event) error{
		"by its person": func(s *sql.Store, c *storetest.Chat, last sessions.Event) error {
			asked := c.Speak("z9", storetest.ZhangID, storetest.ZhangNick, "/forget last", nil)
			done, err := s.Erasure.ForgetMessage(t.Context(), last.ID, memory.Asking{Lease: asked.Lease, Event: asked.EventID})
			if err == nil && (done.Messages != 1 || done.Events != 1 || done.Memories != 1 || done.Lease.Term != asked.Lease.Term+1) {
				t.Errorf("forgetting gave %+v, want the message and the fact of its turn", done)
			}
			c.Lease = done.Lease
			return err
		},
		"by an operator": func(s *sql.Store, c *storetest.Chat, last sessions.Event) error {
			done, err := s.Erasure.EraseEvents(t.Context(), c.Reader.Key, nil, []int64{last.ID})
			if err == nil && done.Events != 1 {
				t.Errorf("erasing gave %+v, want one event", done)
			}
			_, missing := s.Erasure.EraseEvents(t.Context(), c.Reader.Key, nil, []int64{last.ID, 4711})
			if !errors.Is(missing, sessions.ErrNotFound) {
				t.Errorf("erasing a missing event gave %v", missing)
			}
			_, fact := s.Erasure.ForgetMemory(t.Context(), 1, memory.Asking{}) // a fact goes by its own command
			return errors.Join(err, fact)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool, c := storetest.OpenChat(t)
			c.Exchange(storetest.ZhangID, "发布在周五", "好的")
			broken := c.Speak("z1", storetest.ZhangID, storetest.ZhangNick, "口令是 hunter7742x，别外传", nil)
			saved := storetest.GroupFact(c, "入口用 hunter7742x 登录")
			saved.SaidBy = storetest.ZhangID
			c.Save(saved)
			if err := s.Turns.RecordRun(t.Context(), c.Lease, sessions.ToolRun{EventID: broken.EventID, Call: sessions.ToolCall{ID: "r", Name: "n", Arguments: "hunter7742x"}}); err != nil {
				t.Fatal(err)
			}
			storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET state = 'dead' WHERE id = $1", broken.EventID) // as a release before left it
			answer := c.Speak("l1", storetest.LiID, "李娜", "收到", &sessions.Quote{ID: "z1", Nick: storetest.ZhangNick, Text: "口令是 hunter7742x，别外传"})
			last := storetest.Must[[]sessions.Event](t)(s.Erasure.MessagesBefore(t.Context(), c.Reader.Key, storetest.ZhangID, answer.EventID, 1))
			if len(last) != 1 || last[0].ID != broken.EventID || last[0].Seq != 0 || last[0].State != sessions.Dead {
				t.Fatalf("the last message is %+v, want the dead letter", last)
			}
			if err := erase(s, c, last[0]); err != nil {
				t.Fatal(err)
			}
			storetest.WantGone(t, pool, "hunter7742x")
			stays(t, pool, "发布在周五", "收到", "好的")
		})
	}
}

// The last message of a person is the one that was sent last: a delivery that failed is repeated, and arrives behind later ones.
func TestLastMessageIsTheLastSent(t *testing.T) {
	t.Parallel()
	s, _ := storetest.Open(t, sqltest.URL(t))
	c := storetest.NewChat(t, s, "cid", "u1", false)
	begin := time.Now().Add(-time.Minute)
	accept := func(text string, at time.Duration) int64 {
		t.Helper()
		return storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{
			RobotCode: storetest.Robot, ConversationID: c.Reader.Conversation, ConversationType: sessions.Group, ID: sessions.MessageID(text),
			SenderID: "u1", Text: text, SentAt: begin.Add(at),
		})).EventID
	}
	accept("second", 2*time.Second)
	accept("first", time.Second)
	command := accept("command", 3*time.Second)
	accept("after it", 4*time.Second)
	got := storetest.Must[[]sessions.Event](t)(s.Erasure.MessagesBefore(t.Context(), c.Reader.Key, "u1", command, 2))
	if len(got) != 2 || got[0].Content != "second" || got[1].Content != "first" {
		t.Errorf("the messages before the command are %+v, want second and first", got)
	}
}
