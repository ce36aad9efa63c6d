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

// Storage is all that a storage of sessions does: the bot's part and an administrator's.
type Storage interface {
	sessions.Store
	sessions.Eraser
	sessions.Elector
}

// Harness is one fresh storage under test.
type Harness struct {
	// Store and Other are two views of the storage, as two replicas have it. They may be the same.
	Store Storage
	Other Storage
	// Expire makes owner's heartbeat older than the time to live.
	Expire func(t *testing.T, owner sessions.ReplicaID)
	// FailFlush makes the session remember failures flushes in a row that failed.
	FailFlush func(t *testing.T, l sessions.Lease, failures int)
	// Log reads a session's whole log in order of arrival: pending and dead messages and summaries too.
	Log func(t *testing.T, key sessions.Key) []sessions.Event
	// Summaries reads all of a session's summaries, whatever their state, in the order in which they were stored.
	Summaries func(t *testing.T, key sessions.Key) []sessions.Summary
	// Blobs lists the addresses of the bodies that are kept for a session, sorted.
	Blobs func(t *testing.T, key sessions.Key) []string
	// SpoilBlob puts another body under an address, as after a fault of a disk; with an empty one it is gone.
	SpoilBlob func(t *testing.T, key sessions.Key, blob, body string)
	// Histories is how many random histories are played; 0: as many as rapid plays, and a bad one is made smaller.
	Histories int
	// Edit changes what the event at a place says.
	Edit func(t *testing.T, key sessions.Key, seq int64, content string)
}

// The replicas of the suite.
const (
	replicaA sessions.ReplicaID = "replica-a"
	replicaB sessions.ReplicaID = "replica-b"
)

// TestStore checks that a store does what sessions.Store promises. open makes a new storage for each test.
func TestStore(t *testing.T, open func(t *testing.T) Harness) {
	t.Parallel()
	tests := []struct {
		name string
		run  func(*suite)
	}{
		{"accepting stores and dedupes", testAccept},
		{"a session's state is read alone", testSession},
		{"data that can never be stored are refused permanently", testRefused},
		{"accepting the same message at once stores it once", testAcceptAtOnce},
		{"accepting what databases dislike", testAcceptOddText},
		{"a conversation is private only where that was said, and only so far", testAcceptKind},
		{"the staff id of a sender is learned from frames with both ids", testStaffOf},
		{"a sender id with two staff ids is no member's", testStaffClash},
		{"accepting takes free leases only", testAcceptLease},
		{"a turn sees pending messages in order and up to the limit", testBeginOrder},
		{"a turn takes messages in the order in which they were sent", testBeginSent},
		{"a turn takes no more bytes than it may, and at least one message", testBeginBytes},
		{"the death of a process is an attempt of what was in its turns", testAttemptsOfTheDead},
		{"a death is seen also where a message finds it", testAttemptsOfAccept},
		{"a lease that was given up or freed counts no attempt", testAttemptsSpared},
		{"what a turn leaves is in no turn", testAttemptsOfARest},
		{"a turn that broke is an attempt of the blamed", testAttemptsBlamed},
		{"a process that comes back takes its attempt back", testAttemptsOfTheFrozen},
		{"a commit gives places in the order given", testCommitPlaces},
		{"a commit keeps the outcome of a command", testCommitOutcome},
		{"a commit is whole or nothing", testCommitWhole},
		{"a commit sets dead letters aside", testCommitDead},
		{"a commit keeps the counters", testCommitCounters},
		{"spendings add up by kind", testSpent},
		{"figures beyond all bounds are kept as far as they fit", testAbsurdFigures},
		{"what a message replies to is looked up", testQuoted},
		{"tool calls survive a crash and go with the commit", testToolRuns},
		{"every write is fenced by the term", testFencing},
		{"leases go stale and change hands", testTakeover},
		{"two replicas fight over a lease", testLeaseRace},
		{"releasing frees one session", testRelease},
		{"resigning frees everything at once", testResign},
		{"one replica leads", testLeader},
		{"a heartbeat returns the storage's clock", testClock},
		{"the sweep finds what waits", testWaiting},
		{"the sweep finds orphans behind busy sessions", testWaitingOrphans},
		{"replicas wake each other", testListen},
		{"a reply is kept until it is settled", testOutbox},
		{"a claim takes open replies as they are", testOutboxClaim},
		{"a claim keeps the parts that arrived", testOutboxParts},
		{"a reply left in a dead replica's hand is resumed", testOutboxResumed},
		{"a released reply has not arrived", testOutboxPutDown},
		{"a compaction moves the cursor once", testCompact},
		{"a compaction's notice is a reply", testNotice},
		{"summaries lie end to end", testCompactTiles},
		{"a turn that commits after a compaction adds to it", testCompactMidTurn},
		{"a turn that commits after any change of the view adds to it", testViewChangedMidTurn},
		{"a failed compaction is remembered", testCompactFailed},
		{"a backlog is listed until it rests", testBacklogs},
		{"a compaction begins a cycle in which flushes are tried again", testCompactForgivesFlushes},
		{"results are moved out of the view and read again", testOffload},
		{"results whose bodies are gone are read from the log", testBlobLogged},
		{"results that are gone are said to be so", testBlobFaults},
		{"bodies are kept as long as the view refers to them", testBlobsCounted},
		{"a refused attempt shows nothing otherwise", testShownRefused},
		{"a job has the events to summarize", testJob},
		{"what a job staged is found again", testJobStaged},
		{"an edited event is not summarized in its old form", testJobEdited},
		{"of two workers the one with the lease compacts", testCompactRivals},
		{"of many compactions at once one commits", testCompactRace},
		{"an undo gives the former view back", testUndo},
		{"a message has an undo made once", testUndoOnce},
		{"an undo brings back what was rolled up", testUndoRollUp},
		{"a new generation begins with nothing", testRenew},
		{"leases of idle sessions are released", testRest},
		{"a session keeps its own settings", testConfigure},
		{"no summary has an erased event", testErase},
		{"an emptied summary is written again", testEraseRewrite},
		{"no view has an erased event", testEraseTail},
		{"no reply has an erased event", testEraseReplies},
		{"erasures end a few turns of a session, and wait for the next", testEraseWaits},
		{"erasures end upkeep of a session a few times, and wait for the next", testEraseWaitsForUpkeep},
		{"a session is deleted with all it has", testDelete},
		{"whatever happens nothing is lost", testHistories},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.run(&suite{T: t, Harness: open(t), ctx: t.Context()})
		})
	}
}

// suite is one test with its storage and the steps that tests are made of. Steps that must work end the test.
type suite struct {
	*testing.T
	Harness
	ctx context.Context
}

// key is the session of most tests.
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

// wantError checks that an error is the one promised.
func (b *suite) wantError(err, target error, doing string) {
	b.Helper()
	if !errors.Is(err, target) {
		b.Errorf("%s: got error %v, want %v", doing, err, target)
	}
}

func (b *suite) sendBeat(owner sessions.ReplicaID) {
	b.Helper()
	_, err := b.Store.Beat(b.ctx, owner)
	b.checkError(err)
}

func (b *suite) acceptMessage(owner sessions.ReplicaID, n int) sessions.Accepted {
	b.Helper()
	a, err := b.Store.Accept(b.ctx, owner, key, newMessage(n))
	b.checkError(err)
	return a
}

func (b *suite) acquireLease(owner sessions.ReplicaID) sessions.Lease {
	b.Helper()
	l, err := b.Store.Acquire(b.ctx, key, owner)
	b.checkError(err)
	return l
}

// leaseWithMessages accepts n messages for a living replica A and returns its lease.
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
	v, err := b.Store.Begin(b.ctx, l, limit)
	b.checkError(err)
	return v
}

func (b *suite) commitTurn(l sessions.Lease, t sessions.Turn) sessions.Committed {
	b.Helper()
	c, err := b.Store.Commit(b.ctx, l, t)
	b.checkError(err)
	return c
}

// runTurn takes up to limit messages and answers them with one event.
func (b *suite) runTurn(l sessions.Lease, limit int) sessions.Committed {
	b.Helper()
	return b.commitTurn(l, newAnswer(b.beginTurn(l, limit)))
}

// newAnswer is a turn that takes all pending messages of a view, 10 tokens each, and answers with 5.
func newAnswer(v sessions.View) sessions.Turn {
	t := sessions.Turn{
		TotalTokens: v.Session.TotalTokens + 10*len(v.Pending) + 5, Appended: 10*len(v.Pending) + 5,
		ViewVersion: v.Session.ViewVersion,
		Events:      []sessions.Event{{Role: sessions.RoleAssistant, Content: "答复", Tokens: 5}},
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

// eventContents lists what events say, for comparing.
func eventContents(events []sessions.Event) string {
	var s strings.Builder
	for _, e := range events {
		fmt.Fprintf(&s, "%d:%s:%s ", e.Seq, e.Role, e.Content)
	}
	return s.String()
}
