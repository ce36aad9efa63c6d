package erasure_test

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/sqltest"
	"ebb/sql/storetest"
)

// Messages that were sent back to back may arrive in another order. An erasure goes by the order in which they were sent:
// what the person said before the command is gone, what they said after it stays.
func TestErasuresGoByTheOrderSent(t *testing.T) {
	t.Parallel()
	s, pool, c := storetest.OpenChat(t)
	now := time.Now()
	arrives := func(id, text string, sent time.Time) sessions.Accepted {
		a := storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{
			RobotCode: storetest.Robot, ConversationID: c.Reader.Conversation, ConversationType: sessions.Group, ID: sessions.MessageID(id),
			SenderID: storetest.ZhangID, StaffID: storetest.ZhangID, SenderNick: storetest.ZhangNick, Text: text, Kind: "text", SentAt: sent,
		}))
		c.Lease = a.Lease
		return a
	}
	c.Speak("l1", storetest.LiID, "李娜", "发布在周五", nil)
	arrives("after", "之后的话", now.Add(time.Second))
	first := arrives("first", "口令是 hunter7742x", now.Add(-2*time.Second))
	command := arrives("command", "/忘记我 确认", now)
	late := arrives("late", "备用口令是 hunter7743x", now.Add(-time.Second))

	before := storetest.Must[[]sessions.Event](t)(s.Erasure.MessagesBefore(t.Context(), c.Reader.Key, storetest.ZhangID, command.EventID, 9))
	if len(before) != 2 || before[0].ID != late.EventID || before[1].ID != first.EventID {
		t.Fatalf("before the command: %+v, want what was sent last, then what was sent first", before)
	}
	f := memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID, Self: true, From: memory.Asking{Lease: c.Lease, Event: command.EventID, Language: "zh"}}
	storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), f))
	storetest.WantGone(t, pool, "hunter7742x", "hunter7743x")
	stays(t, pool, "之后的话", "发布在周五")
}

// The private chat goes up to the command, in the order in which messages were sent. An answer goes with its message, also
// where it came after the command was sent. A message that was sent after the command and answered before it keeps its
// answer and its reply, which may still have to be sent.
func TestForgottenInPrivateByTheOrderSent(t *testing.T) {
	t.Parallel()
	s, pool := storetest.Open(t, sqltest.URL(t))
	now := time.Now()
	c := storetest.NewChat(t, s, "dm", storetest.ZhangID, true)
	storetest.Execute(t, pool, "UPDATE dingtalk_sessions SET conversation_type = '1' WHERE conversation_id = 'dm'")
	storetest.Execute(t, pool, "UPDATE dingtalk_session_events SET sent_at = sent_at - interval '1 hour'")
	arrives := func(id, text string, after time.Duration) sessions.Accepted {
		a := storetest.Must[sessions.Accepted](t)(s.Inbox.Accept(t.Context(), "a", c.Reader.Key, sessions.Message{
			RobotCode: storetest.Robot, ConversationID: c.Reader.Conversation, ConversationType: sessions.Private, ID: sessions.MessageID(id),
			SenderID: storetest.ZhangID, StaffID: storetest.ZhangID, SenderNick: storetest.ZhangNick, Text: text, Kind: "text", SentAt: now.Add(after),
		}))
		c.Lease = a.Lease
		return a
	}
	answers := func(answer string, taken ...sessions.Accepted) {
		t.Helper()
		turn := sessions.TurnResult{
			Events:     []sessions.Event{{Role: sessions.RoleAssistant, Content: answer, Tokens: 3}},
			Reply:      &sessions.Reply{Text: answer, Nonce: answer, Target: sessions.Target{RobotCode: storetest.Robot, ConversationID: c.Reader.Conversation}},
			ReplyWaits: true,
		}
		for _, a := range taken {
			turn.Taken, turn.TakenTokens = append(turn.Taken, a.EventID), append(turn.TakenTokens, 5)
		}
		storetest.Must[sessions.Committed](t)(s.Turns.Commit(t.Context(), c.Lease, turn))
	}
	before := arrives("before", "口令是 hunter7742x", -10*time.Second)
	answers("记下了前一句", before) // after the command was sent
	after := arrives("after", "今天星期几", -3*time.Second)
	answers("今天星期四", after)
	answers("两句一起答", arrives("late", "门牌是 hunter7743x", -8*time.Second), arrives("mixed", "明天呢", -2*time.Second))
	answers("你的口令是 hunter7742x", arrives("repeats", "我的口令是什么", -time.Second))
	command := arrives("command", "/忘记我 确认", -5*time.Second)

	f := memory.Forget{Robot: storetest.Robot, Person: storetest.ZhangID, Self: true, From: memory.Asking{Lease: c.Lease, Event: command.EventID, Language: "zh"}}
	done := storetest.Must[memory.Forgotten](t)(s.Erasure.ForgetPerson(t.Context(), f))
	c.Lease = done.Lease
	storetest.WantGone(t, pool, "hunter7742x", "hunter7743x", "记下了前一句", "两句一起答")
	stays(t, pool, "今天星期几", "明天呢", "我的口令是什么")
	replies := storetest.Collect(t, pool, "SELECT body || state FROM outbox WHERE session_key = '"+string(c.Reader.Key)+"'", pgx.RowTo[string])
	if len(replies) != 1 || replies[0] != "今天星期四sending" {
		t.Errorf("replies are %q, want the one to what was sent after the command", replies)
	}
	answers("已忘记", command)
	v := storetest.Must[sessions.View](t)(s.Turns.Begin(t.Context(), c.Lease, 5))
	var left []string
	for i, e := range v.Tail {
		if left = append(left, e.Content); e.Seq != int64(i+1) {
			t.Errorf("event %d has place %d", i, e.Seq)
		}
	}
	want := []string{"今天星期几", "今天星期四", "明天呢", "我的口令是什么", memory.ForgetDone("zh"), "已忘记"}
	if !slices.Equal(left, want) || v.Session.LastSeq != int64(len(want)) {
		t.Errorf("the log is %q to %d, want %q", left, v.Session.LastSeq, want)
	}
}
