package sessionstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ebb/sessions"
)

// Storage is what bot and administrators use.
type Storage struct {
	sessions.Stores
	Erasure   sessions.Eraser
	Replicas  sessions.Elector
	Approvals sessions.Approvals
}

// Harness is one fresh storage.
type Harness struct {
	// Store and Other are two replicas' storage, perhaps the same.
	Store Storage
	Other Storage
	// Expire makes owner's heartbeat older than the time to live.
	Expire func(t *testing.T, owner sessions.ReplicaID)
	// DeleteRow deletes a session's row, as an outsider can. The log and all other rows stay.
	DeleteRow func(t *testing.T, key sessions.Key)
	// EndWindows ends all windows of limits so long ago.
	EndWindows func(t *testing.T, ago time.Duration)
	// FailFlush sets the consecutive failed flushes of the session.
	FailFlush func(t *testing.T, l sessions.Lease, failures int)
	// Log reads a session's whole log in order of arrival, with all states and summaries.
	Log func(t *testing.T, key sessions.Key) []sessions.Event
	// Summaries reads summaries in the order of storing.
	Summaries func(t *testing.T, key sessions.Key) []sessions.Summary
	// Blobs lists the addresses of the session's bodies, sorted.
	Blobs func(t *testing.T, key sessions.Key) []string
	// SpoilBlob replaces a body; an empty one deletes it.
	SpoilBlob func(t *testing.T, key sessions.Key, blob, body string)
	// Histories is the number of random histories; 0: rapid's number, and a failing one is made smaller.
	Histories int
	Edit      func(t *testing.T, key sessions.Key, seq int64, content string)
}

const (
	replicaA sessions.ReplicaID = "replica-a"
	replicaB sessions.ReplicaID = "replica-b"
)

// Steps that must work end the test.
type suite struct {
	*testing.T
	Harness
	ctx   context.Context
	tries []sessions.Outgoing // replies whose first try endTries has not ended
}

var key = sessions.NewKey("robot", "cidGroup==", "")

func newMessage(n int) sessions.Message {
	return sessions.Message{
		RobotCode: "robot", ConversationID: "cidGroup==", ConversationType: sessions.Group, ConversationTitle: "Team",
		ID: sessions.MessageID(fmt.Sprintf("msg-%d", n)), SenderID: "staff-1", SenderNick: "张三", Kind: "text",
		Text: fmt.Sprintf("问题 %d", n), Webhook: "https://example.com/hook", WebhookExpires: time.Now().Add(time.Hour).UTC(),
	}
}

func (b *suite) checkError(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *suite) wantError(err, target error, doing string) {
	b.Helper()
	if !errors.Is(err, target) {
		b.Errorf("%s: got error %v, want %v", doing, err, target)
	}
}

func (b *suite) sendBeat(owner sessions.ReplicaID) {
	b.Helper()
	_, err := b.Store.Leases.Beat(b.ctx, owner)
	b.checkError(err)
}

func (b *suite) acceptMessage(owner sessions.ReplicaID, n int) sessions.Accepted {
	b.Helper()
	a, err := b.Store.Inbox.Accept(b.ctx, owner, key, newMessage(n))
	b.checkError(err)
	return a
}

func (b *suite) acquireLease(owner sessions.ReplicaID) sessions.Lease {
	b.Helper()
	l, err := b.Store.Leases.Acquire(b.ctx, key, owner)
	b.checkError(err)
	return l
}

// leaseWithMessages accepts n messages for a living replica A.
func (b *suite) leaseWithMessages(n int) sessions.Lease {
	b.Helper()
	b.sendBeat(replicaA)
	for i := range n {
		b.acceptMessage(replicaA, i+1)
	}
	return b.acquireLease(replicaA)
}

func (b *suite) beginTurn(l sessions.Lease, limit int) sessions.View {
	b.Helper()
	v, err := b.Store.Turns.Begin(b.ctx, l, limit)
	b.checkError(err)
	return v
}

func (b *suite) commitTurn(l sessions.Lease, t sessions.TurnResult) sessions.Committed {
	b.Helper()
	c, err := b.Store.Turns.Commit(b.ctx, l, t)
	b.checkError(err)
	b.tries = append(b.tries, c.Replies...)
	return c
}

// endTries ends first tries, for which erasures wait. The replies stay open.
func (b *suite) endTries() {
	b.Helper()
	for _, o := range b.tries {
		err := b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: o.Key, ID: o.ID, Attempt: o.Attempts, NextAt: time.Now()})
		if !errors.Is(err, sessions.ErrNotFound) { // a later try has begun, or it was erased
			b.checkError(err)
		}
	}
	b.tries = nil
}

func (b *suite) runTurn(l sessions.Lease, limit int) sessions.Committed {
	b.Helper()
	return b.commitTurn(l, newAnswer(b.beginTurn(l, limit)))
}

// newAnswer takes all pending messages of a view, 10 tokens each, and answers with 5.
func newAnswer(v sessions.View) sessions.TurnResult {
	t := sessions.TurnResult{
		TotalTokens: v.Session.TotalTokens + 10*len(v.Pending) + 5, Appended: 10*len(v.Pending) + 5,
		ViewVersion: v.Session.ViewVersion, Ran: v.HasRuns,
		Events: []sessions.Event{{Role: sessions.RoleAssistant, Content: "答复", Tokens: 5}},
		Reply: &sessions.Reply{
			Text: "答复", Nonce: "nonce", Target: sessions.Target{ConversationID: "cidGroup==", Webhook: "https://example.com/hook"},
		},
	}
	for _, e := range v.Pending {
		t.Taken = append(t.Taken, e.ID)
		t.TakenTokens = append(t.TakenTokens, 10)
	}
	return t
}

// newPartialAnswer is newAnswer for the first message alone.
func newPartialAnswer(v sessions.View) sessions.TurnResult {
	t := newAnswer(v)
	t.Left, t.Taken, t.TakenTokens = t.Taken[1:], t.Taken[:1], t.TakenTokens[:1]
	return t
}

func eventContents(events []sessions.Event) string {
	var s strings.Builder
	for _, e := range events {
		fmt.Fprintf(&s, "%d:%s:%s ", e.Seq, e.Role, e.Content)
	}
	return s.String()
}
