package chaos

import (
	"testing"

	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sql/inspect"
)

// A stop ends the messages of its asker alone. Messages from other askers, sent before, are answered behind them.
func TestCheckerLetsStoppedMessagesPass(t *testing.T) {
	t.Parallel()
	for text, broken := range map[string]int{
		wording.Say(wording.CutShort, "zh"): 0, "q0000002 周五\n\n" + wording.Say(wording.CutShort, "en"): 0, "q0000002 周五": 1,
	} {
		e := wholeEvidence()
		e.log = append([]inspect.Logged{
			e.log[1], {Key: groupA, Seq: 2, Role: sessions.RoleAssistant, State: sessions.Done, Content: text},
			e.log[0], {Key: groupA, Seq: 4, Role: sessions.RoleAssistant, State: sessions.Done, Content: "q0000001 周五"},
		}, e.log[3:]...)
		e.letters[0].Text = text
		e.letters = append(e.letters, inspect.Letter{Key: groupA, Conversation: "cid-a", Sent: true, Text: "q0000001 周五"})
		e.replies[0].Text = text
		e.replies = append(e.replies[:1:1], append([]dingtalktest.Reply{{Conversation: "cid-a", Text: "q0000001 周五"}}, e.replies[1:]...)...)
		if f := e.checkAll(); len(f.broken) != broken {
			t.Errorf("answered with %q, found %q, want %d", text, f.broken, broken)
		}
	}
}

// A model may write words beside a call of a tool. The reply is its last text.
func TestCheckerTakesTheLastTextOfATurn(t *testing.T) {
	t.Parallel()
	e := wholeEvidence()
	e.log = append(e.log[:2:2], append([]inspect.Logged{{Key: groupA, Seq: 2, Role: sessions.RoleAssistant, State: sessions.Done, Content: "好的。"}}, e.log[2:]...)...)
	if f := e.checkAll(); len(f.broken) > 0 {
		t.Errorf("found %q", f.broken)
	}
}

// Administrators read notices of a model without money in their private chats, and wrote none of them.
func TestCheckerKnowsNotices(t *testing.T) {
	t.Parallel()
	const key, text = "robot/notices:u-zhang", "⏰ 模型 main 的账户余额或额度已用完"
	for place, broken := range map[string]int{dingtalktest.DirectConversation("u-zhang"): 0, "cid-a": 1} {
		e := wholeEvidence()
		e.log = append(e.log,
			inspect.Logged{Key: key, Seq: 1, Role: sessions.RoleUser, State: sessions.Done, MsgID: "alarm:main:unpaid:2026-03-02:1:u-zhang", Content: text},
			inspect.Logged{Key: key, Seq: 2, Role: sessions.RoleAssistant, State: sessions.Done, Content: text})
		e.letters = append(e.letters, inspect.Letter{Key: key, Conversation: "notices:u-zhang", Sent: true, Text: text})
		e.arrive(place, text)
		e.noteScheduled()
		e.placeNotices()
		if f := e.checkAll(); len(f.broken) != broken {
			t.Errorf("sent to %s, found %q, want %d", place, f.broken, broken)
		}
	}
}
