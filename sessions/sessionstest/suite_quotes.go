package sessionstest

import (
	"time"

	"ebb/sessions"
)

// testQuotedByKey quotes messages of the open API by their keys: the parts of a long reply, and a file. Their time says nothing.
func testQuotedByKey(b *suite) {
	l := b.leaseWithMessages(1)
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: b.runTurn(l, 1).Replies[0].ID, Sent: true, Via: "webhook"}))
	_, err := b.Store.Inbox.Accept(b.ctx, replicaA, key, newMessage(7))
	b.checkError(err)
	turn := newAnswer(b.beginTurn(l, 1))
	turn.Events[0].Content, turn.Reply.Text = "长的答复", "长的答复"
	reply := b.commitTurn(l, turn).Replies[0]
	claimed, err := b.Store.Outbox.Claim(b.ctx, l, sessions.SendAttempt{IDs: []int64{reply.ID}, Part: 1, Nonce: reply.Reply.Nonce, Carrier: "part 1"})
	if b.checkError(err); len(claimed) != 1 {
		b.Fatalf("claimed: %+v", claimed)
	}
	pause := sessions.SendOutcome{Key: key, ID: reply.ID, Attempt: claimed[0].Attempts, Part: 2, Via: "openapi", Carrier: "part 2", NextAt: time.Now().Add(time.Hour)}
	b.checkError(b.Store.Outbox.Settle(b.ctx, pause))
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: reply.ID, Sent: true, Via: "openapi", Carrier: "part 3"}))
	long := time.Now().Add(-time.Hour)
	for _, carrier := range []string{"part 1", "part 2", "part 3"} {
		for _, fromBot := range []bool{true, false} { // a frame may lack the sender
			e, err := b.Store.Turns.Quoted(b.ctx, key, sessions.Quote{FromBot: fromBot, Card: carrier, SentAt: long})
			if b.checkError(err); e.Content != "长的答复" || e.Role != sessions.RoleAssistant {
				b.Errorf("the message %q: %+v", carrier, e)
			}
		}
	}
	e, err := b.Store.Turns.Quoted(b.ctx, key, sessions.Quote{FromBot: true, Card: "unknown", SentAt: time.Now()})
	if b.checkError(err); e.Content != "答复" {
		b.Errorf("a message by a webhook, sent beside one with keys: %+v", e)
	}
}
