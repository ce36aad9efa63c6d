package sql_test

import (
	"testing"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// Messages that were sent back to back may arrive in another order. An erasure goes by the order in which they were sent:
// what the person said before the command is gone, what they said after it stays.
func TestErasuresGoByTheOrderSent(t *testing.T) {
	t.Parallel()
	s, pool, c := openChat(t)
	now := time.Now()
	arrives := func(id, text string, sent time.Time) sessions.Accepted {
		a := must[sessions.Accepted](t)(s.Accept(t.Context(), "a", c.reader.Key, sessions.Message{
			RobotCode: robot, ConversationID: c.reader.Conversation, ConversationType: sessions.Group, ID: sessions.MessageID(id),
			SenderID: zhangID, StaffID: zhangID, SenderNick: zhangNick, Text: text, Kind: "text", SentAt: sent,
		}))
		c.lease = a.Lease
		return a
	}
	c.speak("l1", liID, "李娜", "发布在周五", nil)
	arrives("after", "之后的话", now.Add(time.Second))
	first := arrives("first", "口令是 hunter7742x", now.Add(-2*time.Second))
	command := arrives("command", "/忘记我 确认", now)
	late := arrives("late", "备用口令是 hunter7743x", now.Add(-time.Second))

	before := must[[]sessions.Event](t)(s.MessagesBefore(t.Context(), c.reader.Key, zhangID, command.EventID, 9))
	if len(before) != 2 || before[0].ID != late.EventID || before[1].ID != first.EventID {
		t.Fatalf("before the command: %+v, want what was sent last, then what was sent first", before)
	}
	f := memory.Forget{Robot: robot, Person: zhangID, Self: true, From: memory.Asking{Lease: c.lease, Event: command.EventID, Language: "zh"}}
	must[memory.Forgotten](t)(s.ForgetPerson(t.Context(), f))
	gone(t, pool, "hunter7742x", "hunter7743x")
	stays(t, pool, "之后的话", "发布在周五")
}
