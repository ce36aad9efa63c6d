package sql_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/sqltest"
)

// from is a fact of the chat's group with one event of the log as its source.
func from(c *chat, content string, by sessions.UserID, seq int64) memory.Draft {
	d := group(c, content)
	d.SaidBy, d.StartSeq, d.EndSeq = by, seq, seq
	return d
}

func (c *chat) flush(through int64, drafts ...memory.Draft) memory.Receipt {
	c.t.Helper()
	return must[memory.Receipt](c.t)(c.store.Flush(c.t.Context(), c.lease, memory.Flush{Through: through, Last: true, Drafts: drafts}))
}

// exchange commits a message of a member and the bot's answer.
func (c *chat) exchange(who sessions.UserID, text, answer string) {
	c.t.Helper()
	c.said++
	c.turn(who, string(who), answer, c.speak(fmt.Sprint("tell", c.said), who, string(who), text, nil))
}

// gone fails the test where a word is left in any table. A word has a letter: digits alone also stand in timestamps.
func gone(t *testing.T, pool *pgxpool.Pool, words ...string) {
	t.Helper()
	all := dump(t, pool)
	for _, w := range words {
		if !strings.ContainsFunc(w, unicode.IsLetter) {
			t.Fatalf("%q has no letter", w)
		}
		if left := lines(all, w); left != "" {
			t.Errorf("left of %s are\n%.600s", w, left)
		}
	}
}

// stays fails the test where a word is in no table.
func stays(t *testing.T, pool *pgxpool.Pool, words ...string) {
	t.Helper()
	all := dump(t, pool)
	for _, w := range words {
		if lines(all, w) == "" {
			t.Errorf("%s is gone", w)
		}
	}
}

// forget is ForgetMemory by a member's message in the chat; with only, of their own messages alone.
func (c *chat) forget(id int64, who sessions.UserID, only bool) memory.Forgotten {
	c.t.Helper()
	c.said++
	asked := c.speak(fmt.Sprint("forget", c.said), who, string(who), "/forget", nil)
	a := memory.Asking{Lease: asked.Lease, Event: asked.EventID}
	if only {
		a.Only = who
	}
	done := must[memory.Forgotten](c.t)(c.store.ForgetMemory(c.t.Context(), id, a))
	c.lease = done.Lease
	return done
}

func openChat(t *testing.T) (*sql.Store, *pgxpool.Pool, *chat) {
	t.Helper()
	s, pool := open(t, sqltest.URL(t))
	return s, pool, newChat(t, s, "cid", "u", false) // 1 and 2
}

// A turn's own fact came from the messages that the turn took, not from those that stand or came beside them.
func TestFactOfATurnComesFromItsMessages(t *testing.T) {
	t.Parallel()
	for name, merged := range map[string]bool{"answered with another's": true, "another came meanwhile": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, pool, c := openChat(t)
			c.exchange(zhangID, "早上好", "早")
			ours := c.speak("z1", zhangID, zhangNick, "note it: the word is "+secret, nil)
			other := c.speak("l1", liID, "李娜", "今天几号", nil)
			d := group(c, "门禁的口令以 "+secret[:2]+" 开头") // in other words than the message has
			d.SaidBy = zhangID
			id := c.save(d).Saved[0]
			if merged {
				c.turn(zhangID, zhangNick, "记住了", ours, other)
			} else {
				c.turn(zhangID, zhangNick, "记住了", ours)
				c.turn(liID, "李娜", "六号", other)
			}
			if done := c.forget(id, zhangID, true); done.Messages != 2 {
				t.Errorf("%d messages went, want the one that said it and its answer", done.Messages)
			}
			gone(t, pool, secret, "记住了")
			stays(t, pool, "今天几号", "早上好")
		})
	}
}

// A fact goes with all the messages in which its person said it.
func TestForgetReachesRepeatedMessages(t *testing.T) {
	t.Parallel()
	_, pool, c := openChat(t)
	c.exchange(zhangID, "暗号是 "+secret, "好")      // 3 and 4
	c.exchange(zhangID, "再说一遍，暗号是 "+secret, "好") // 5 and 6
	c.exchange(liID, "他说暗号是 "+secret+"？", "他说过") // another's words stay another's
	r := c.flush(8, from(c, "暗号是 "+secret, zhangID, 3), from(c, "暗号是 "+secret, zhangID, 5))
	c.forget(r.Saved[0], zhangID, true)
	left := collect(t, pool, "SELECT msg_id FROM dingtalk_session_events WHERE content LIKE '%"+secret+"%'", pgx.RowTo[string])
	if len(left) != 1 || left[0] != "tell4" {
		t.Errorf("it is left in %v, want in what another said alone", left)
	}
	for _, h := range c.search("暗号是什么") {
		if h.Seq != 7 && strings.Contains(h.Content, secret) {
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
			s, pool, c := openChat(t)
			c.exchange(zhangID, "暗号是 "+secret, "好") // 3 and 4
			r := c.flush(4, from(c, "暗号是 "+secret, zhangID, 3))
			id := r.Saved[0]
			digest(t, pool, c, "那天张伟伟说了 "+secret, 0)
			c.exchange(zhangID, "明天见", "好") // 5 and 6 are owed
			if err := s.Owe(t.Context(), c.lease, memory.Debt{Through: 6, Failures: 1, Reason: "model error: busy"}); err != nil {
				t.Fatal(err)
			}
			team := must[memory.Memory](t)(s.Promote(t.Context(), id, liID))
			other := newChat(t, s, "cid2", liID, false)
			other.exchange(liID, "暗号？", "团队的暗号是 "+secret)
			if !original {
				id = team.ID
			}
			c.forget(id, zhangID, false)
			gone(t, pool, secret)
			stays(t, pool, "暗号？", "明天见")
			if owed := must[memory.Debt](t)(s.Owed(t.Context(), c.reader.Key)); owed.Through != 6 {
				t.Errorf("owed is %+v, want the flush up to event 6", owed)
			}
		})
	}
}

// The team's copy goes with the group's fact also when the group stated another value since, and the messages of that
// value stay.
func TestForgetTakesTheTeamsCopyOfAFormerValue(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	c.exchange(zhangID, "暗号是 "+secret, "好")
	old := c.flush(4, from(c, "暗号是 "+secret, zhangID, 3)).Saved[0]
	team := must[memory.Memory](t)(s.Promote(t.Context(), old, liID))
	execute(t, pool, "UPDATE memories SET superseded_by = $1 WHERE id = $2", c.save(group(c, "暗号改成了别的")).Saved[0], old)
	c.forget(old, zhangID, true)
	if left := collect(t, pool, "SELECT id FROM memories ORDER BY id", pgx.RowTo[int64]); len(left) != 1 || left[0] == team.ID {
		t.Errorf("left are %v, want the later value alone", left)
	}
	gone(t, pool, secret)
}

// digest plants one from some days ago.
func digest(t *testing.T, pool *pgxpool.Pool, c *chat, text string, days int) {
	t.Helper()
	execute(t, pool, `INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, source_group, start_seq, end_seq, created_at)
		VALUES ('group', $1, 'digest', $2, sha256(convert_to($2, 'UTF8')), $1, $1, 1, 8, now() - $3 * interval '1 day')`, string(c.reader.Key), text, days)
	execute(t, pool, `INSERT INTO memory_digests (session_key, day, memory_id, done) SELECT source_session, created_at::date, id, true FROM memories WHERE content = $1`, text)
}

// A digest that is not wanted stays away, and its sources stay.
func TestForgetADigest(t *testing.T) {
	t.Parallel()
	_, pool, c := openChat(t)
	c.exchange(zhangID, "网关项目的负责人是李娜", "好")
	digest(t, pool, c, "# 昨天\n- 网关项目的负责人是李娜", 1)
	if done := c.forget(idOf(t, pool, "# 昨天%"), liID, false); done.Memories != 1 || done.Messages != 0 {
		t.Errorf("forgetting gave %+v, want the digest alone", done)
	}
	gone(t, pool, "昨天")
	if due := collect(t, pool, "SELECT count(*) FROM memory_digests WHERE NOT done", pgx.RowTo[int64]); due[0] != 0 {
		t.Error("the day is summarized again")
	}
}

// A date was put into the fact that neither the message nor the bot's words have.
func TestForgetFindsItsWordsWithoutTheDate(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	c.exchange(zhangID, "next Friday we fly to Oslo", "Noted: next Friday we fly to Oslo.") // 3 and 4
	c.exchange(liID, "what is planned?", "You said that next Friday we fly to Oslo, as far as I know.")
	dm := newChat(t, s, "cid2", zhangID, false)
	dm.exchange(zhangID, "remind me", "Next Friday we fly to Oslo")
	d := from(c, "Next Friday (2026-11-27) they fly to Oslo", zhangID, 3)
	d.Scope, d.ScopeID, d.SubjectID = memory.ScopeUser, string(zhangID), zhangID
	id := c.flush(6, d).Saved[0]
	c.forget(id, zhangID, true)
	gone(t, pool, "Oslo")
	stays(t, pool, "what is planned?", "remind me")
}

// Two facts of one message differ by their codes: a code in brackets is no added date.
func TestForgetKeepsAnotherCode(t *testing.T) {
	t.Parallel()
	_, pool, c := openChat(t)
	large, small := "大会议室的门禁密码（8246）", "小会议室的门禁密码（9713）"
	c.exchange(zhangID, large+"，"+small, "记下了") // 3 and 4
	saved := c.flush(4, from(c, large, zhangID, 3), from(c, small, zhangID, 3)).Saved
	if done := c.forget(saved[0], zhangID, false); done.Memories != 1 {
		t.Errorf("forgetting one fact deleted %d", done.Memories)
	}
	if kept := collect(t, pool, "SELECT content FROM memories", pgx.RowTo[string]); len(kept) != 1 || kept[0] != small {
		t.Errorf("the facts that stay are %q", kept)
	}
}

// A fact that a turn saved and a flush saved again in other words is one to the member who deletes it; its neighbours
// stay.
func TestForgetReachesParaphrases(t *testing.T) {
	t.Parallel()
	_, pool, c := openChat(t)
	asked := c.speak("z1", zhangID, zhangNick, "记住我的身份证号是 "+secret+"，工位在三楼", nil)
	d := group(c, "张伟伟的身份证号是 "+secret)
	d.SaidBy = zhangID
	id := c.save(d).Saved[0]
	c.turn(zhangID, zhangNick, "好", asked)
	again := "张伟伟：记住张伟伟的身份证号是 " + secret
	if r := c.save(from(c, again, zhangID, 3)); len(r.Saved) != 0 || len(r.Duplicate) != 1 {
		t.Errorf("saved again behind the speaker's name it gave %+v", r)
	}
	// As a release before knew no better:
	execute(t, pool, `INSERT INTO memories (scope, scope_id, kind, content, norm_hash, source_session, source_group, said_by, start_seq, end_seq)
		VALUES ('group', $1, 'fact', $2, 'x', $1, $1, $3, 3, 3)`, string(c.reader.Key), again, string(zhangID))
	c.save(from(c, "张伟伟的工位在三楼", zhangID, 3))
	if done := c.forget(id, zhangID, true); done.Memories != 2 {
		t.Errorf("%d memories went, want both with it", done.Memories)
	}
	gone(t, pool, secret)
	stays(t, pool, "张伟伟的工位在三楼")
}

// Other members' messages that merely stand in the range of a fact stay, for any member who asks.
func TestForgetLeavesBystanders(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	for i := range 2 {
		c.exchange(liID, fmt.Sprintf("李娜的无关消息 %d", i), "好") // 3 to 6
	}
	c.exchange(liID, "审批人是张伟伟", "知道了，审批人是张伟伟") // 7 and 8
	approver := group(c, "张伟伟 is the approver")
	approver.SubjectID = zhangID
	byLi := from(c, "审批人是张伟伟", liID, 7)
	byLi.SubjectID = zhangID
	r := c.flush(8, approver, byLi)
	if done := must[memory.Forgotten](t)(s.ForgetMemory(t.Context(), r.Saved[0], memory.Asking{})); done.Messages != 0 {
		t.Errorf("%d messages went with a fact without a speaker", done.Messages)
	}
	// Whom a fact is about may have it forgotten, and what the bot said of it, but not what another said.
	if done := c.forget(r.Saved[1], zhangID, true); done.Memories != 1 || done.Messages != 1 {
		t.Errorf("forgetting gave %+v, want the fact and the bot's own words", done)
	}
	if n := collect(t, pool, "SELECT count(*) FROM dingtalk_session_events WHERE sender_id = $1 AND content <> $2", pgx.RowTo[int64], string(liID), sessions.ErasedText); n[0] != 3 {
		t.Errorf("%d of Li's 3 messages are left", n[0])
	}
	gone(t, pool, "知道了，审批人")
}

// One message goes with its answer and what was drawn from it; what was said before and by others stays.
func TestForgetOneMessage(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	c.exchange(zhangID, "发布在周五", "好的")                               // 3 and 4
	c.exchange(zhangID, "口令是 hunter7742x，别外传", "收到，口令是 hunter7742x") // 5 and 6
	c.exchange(liID, "刚才说了什么？", "他给了 hunter7742x")                   // 7 and 8
	wide := from(c, "入口用 hunter7742x 登录", zhangID, 3)                // drawn from both messages
	wide.EndSeq = 5
	c.flush(8, from(c, "发布在周五", zhangID, 3), from(c, "张伟伟管着入口的口令", zhangID, 5), wide)
	asked := c.speak("z9", zhangID, zhangNick, "/forget last", nil)
	done := must[memory.Forgotten](t)(s.ForgetMessage(t.Context(), eventAt(t, pool, 5), memory.Asking{Lease: asked.Lease, Event: asked.EventID}))
	if done.Messages != 3 || done.Memories != 2 || done.Lease.Term != asked.Lease.Term+1 {
		t.Errorf("forgetting gave %+v, want the message, two answers and two facts", done)
	}
	gone(t, pool, "hunter7742x", "管着入口")
	stays(t, pool, "发布在周五", "刚才说了什么", "好的")
	if _, err := s.Commit(t.Context(), done.Lease, sessions.Turn{Taken: []int64{asked.EventID}, TakenTokens: []int{2}}); err != nil {
		t.Errorf("the turn that asked can't answer: %v", err)
	}
}

// eventAt is the id of the event at a place of the log.
func eventAt(t *testing.T, pool *pgxpool.Pool, seq int64) int64 {
	t.Helper()
	return collect(t, pool, "SELECT id FROM dingtalk_session_events WHERE seq = $1", pgx.RowTo[int64], seq)[0]
}

// A message that was set aside is a person's last one, too, and can be erased by its id; the one before it stays.
func TestForgetADeadLetter(t *testing.T) {
	t.Parallel()
	for name, erase := range map[string]func(s *sql.Store, c *chat, last sessions.Event) error{
		"by its person": func(s *sql.Store, c *chat, last sessions.Event) error {
			asked := c.speak("z9", zhangID, zhangNick, "/forget last", nil)
			done, err := s.ForgetMessage(t.Context(), last.ID, memory.Asking{Lease: asked.Lease, Event: asked.EventID})
			if err == nil && (done.Messages != 1 || done.Events != 1 || done.Memories != 1 || done.Lease.Term != asked.Lease.Term+1) {
				t.Errorf("forgetting gave %+v, want the message and the fact of its turn", done)
			}
			c.lease = done.Lease
			return err
		},
		"by an operator": func(s *sql.Store, c *chat, last sessions.Event) error {
			done, err := s.EraseEvents(t.Context(), c.reader.Key, nil, []int64{last.ID})
			if err == nil && done.Events != 1 {
				t.Errorf("erasing gave %+v, want one event", done)
			}
			_, missing := s.EraseEvents(t.Context(), c.reader.Key, nil, []int64{last.ID, 4711})
			if !errors.Is(missing, sessions.ErrNotFound) {
				t.Errorf("erasing a missing event gave %v", missing)
			}
			_, fact := s.ForgetMemory(t.Context(), 1, memory.Asking{}) // a fact goes by its own command
			return errors.Join(err, fact)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool, c := openChat(t)
			c.exchange(zhangID, "发布在周五", "好的")
			broken := c.speak("z1", zhangID, zhangNick, "口令是 hunter7742x，别外传", nil)
			saved := group(c, "入口用 hunter7742x 登录")
			saved.SaidBy = zhangID
			c.save(saved)
			if err := s.RecordRun(t.Context(), c.lease, sessions.ToolRun{EventID: broken.EventID, Call: sessions.ToolCall{ID: "r", Name: "n", Arguments: "hunter7742x"}}); err != nil {
				t.Fatal(err)
			}
			execute(t, pool, "UPDATE dingtalk_session_events SET state = 'dead' WHERE id = $1", broken.EventID) // as a release before left it
			answer := c.speak("l1", liID, "李娜", "收到", &sessions.Quote{ID: "z1", Nick: zhangNick, Text: "口令是 hunter7742x，别外传"})
			last := must[[]sessions.Event](t)(s.MessagesBefore(t.Context(), c.reader.Key, zhangID, answer.EventID, 1))
			if len(last) != 1 || last[0].ID != broken.EventID || last[0].Seq != 0 || last[0].State != sessions.Dead {
				t.Fatalf("the last message is %+v, want the dead letter", last)
			}
			if err := erase(s, c, last[0]); err != nil {
				t.Fatal(err)
			}
			gone(t, pool, "hunter7742x")
			stays(t, pool, "发布在周五", "收到", "好的")
		})
	}
}

// The last message of a person is the one that was sent last: a delivery that failed is repeated, and arrives behind later ones.
func TestLastMessageIsTheLastSent(t *testing.T) {
	t.Parallel()
	s, _ := open(t, sqltest.URL(t))
	c := newChat(t, s, "cid", "u1", false)
	begin := time.Now().Add(-time.Minute)
	accept := func(text string, at time.Duration) int64 {
		t.Helper()
		return must[sessions.Accepted](t)(s.Accept(t.Context(), "a", c.reader.Key, sessions.Message{
			RobotCode: robot, ConversationID: c.reader.Conversation, ConversationType: sessions.Group, ID: sessions.MessageID(text),
			SenderID: "u1", Text: text, SentAt: begin.Add(at),
		})).EventID
	}
	accept("second", 2*time.Second)
	accept("first", time.Second)
	command := accept("command", 3*time.Second)
	accept("after it", 4*time.Second)
	got := must[[]sessions.Event](t)(s.MessagesBefore(t.Context(), c.reader.Key, "u1", command, 2))
	if len(got) != 2 || got[0].Content != "second" || got[1].Content != "first" {
		t.Errorf("the messages before the command are %+v, want second and first", got)
	}
}
