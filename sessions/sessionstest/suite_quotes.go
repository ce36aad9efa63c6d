package sessionstest

import (
	"time"

	"ebb/sessions"
)

func testQuoted(b *suite) {
	l := b.leaseWithMessages(1)
	missing := func(why string, q sessions.Quote) {
		b.Helper()
		_, err := b.Store.Quoted(b.ctx, key, q)
		b.wantError(err, sessions.ErrNotFound, why)
	}
	e, err := b.Store.Quoted(b.ctx, key, sessions.Quote{ID: "msg-1"})
	b.checkError(err)
	if e.Content != "问题 1" || e.SenderID != "staff-1" || e.SenderNick != "张三" || e.Message == nil {
		b.Errorf("a message by its id: %+v", e)
	}
	missing("an unknown id", sessions.Quote{ID: "msg-9"})
	missing("no id", sessions.Quote{})
	missing("the bot's, before it said anything", sessions.Quote{FromBot: true, SentAt: time.Now()})

	first := b.runTurn(l, 1).Replies[0]
	bot := func(why string, at time.Time, want string) {
		b.Helper()
		e, err := b.Store.Quoted(b.ctx, key, sessions.Quote{FromBot: true, SentAt: at})
		b.checkError(err)
		if e.Content != want || e.Role != sessions.RoleAssistant {
			b.Errorf("%s: %+v", why, e)
		}
	}
	bot("the answer whose reply is being sent", time.Now(), "答复")
	bot("the same, sent late", time.Now().Add(time.Hour), "答复")
	missing("the bot's, without a time", sessions.Quote{FromBot: true})
	missing("the bot's, of another time", sessions.Quote{FromBot: true, SentAt: time.Now().Add(-time.Hour)})
	b.checkError(b.Store.Settle(b.ctx, sessions.Settled{Key: key, ID: first.ID, Sent: true}))
	bot("the answer whose reply was sent", time.Now(), "答复")
	missing("the bot's, sent after that", sessions.Quote{FromBot: true, SentAt: time.Now().Add(time.Hour)})

	m := newMessage(2)
	m.Quote = &sessions.Quote{ID: "msg-1"}
	a, err := b.Store.Accept(b.ctx, replicaA, key, m)
	b.checkError(err)
	quote := sessions.Quote{ID: "msg-1", SenderID: "staff-1", Who: "张三(staff-1)", Shown: "问题 1"}
	content := quote.Lead("") + m.Text
	other := l
	other.Term--
	b.wantError(b.Store.Requote(b.ctx, other, a.EventID, "x", quote), sessions.ErrLeaseLost, "quoting under another lease")
	b.checkError(b.Store.Requote(b.ctx, l, a.EventID, content, quote))
	v := b.beginTurn(l, 5)
	if len(v.Pending) != 1 || v.Pending[0].Content != "[引用 张三(staff-1): 问题 1]\n问题 2" || *v.Pending[0].Message.Quote != quote {
		b.Fatalf("what waits: %+v", v.Pending)
	}
	waits := newAnswer(v)
	waits.ReplyWaits = true
	second := b.commitTurn(l, waits).Replies[0]
	bot("not the answer whose reply waits behind it", time.Now(), "答复")
	b.wantError(b.Store.Requote(b.ctx, l, a.EventID, "x", quote), sessions.ErrLeaseLost, "quoting in a message that was taken")

	// Either of two replies may be meant.
	b.checkError(b.Store.Settle(b.ctx, sessions.Settled{Key: key, ID: second.ID, Sent: true}))
	missing("either of two answers", sessions.Quote{FromBot: true, SentAt: time.Now()})
}
