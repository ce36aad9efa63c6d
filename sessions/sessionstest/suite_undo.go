package sessionstest

import (
	"fmt"
	"strings"
	"time"

	"ebb/sessions"
)

func checkShown(v sessions.View) string {
	var s strings.Builder
	fmt.Fprintf(&s, "gen %d after %d, summarized to %d |", v.Session.Gen, v.Session.BaseSeq, v.Session.CompactedSeq)
	for _, sum := range v.Summaries {
		fmt.Fprintf(&s, " %d-%d:%q", sum.StartSeq, sum.EndSeq, sum.Text)
	}
	fmt.Fprintf(&s, " | %q |", v.Session.Pinned)
	for _, e := range v.Tail {
		fmt.Fprintf(&s, " %d:%s:%q(%d)%s", e.Seq, e.Role, e.Content, e.Tokens, e.Blob)
	}
	return s.String()
}

func (b *suite) undoCompaction(l sessions.Lease, rest int) sessions.LogEntry {
	b.Helper()
	e, err := b.Store.Compactions.Undo(b.ctx, l, 0, rest)
	b.checkError(err)
	return e
}

func testUndo(b *suite) {
	l := b.runTools(1, bigBody, otherBody)
	_, err := b.Store.Compactions.Undo(b.ctx, l, 0, 10)
	b.wantError(err, sessions.ErrNotFound, "undoing nothing")
	b.checkError(b.Store.Compactions.Log(b.ctx, l, sessions.LogEntry{Outcome: "failed"}))
	_, err = b.Store.Compactions.Undo(b.ctx, l, 0, 10)
	b.wantError(err, sessions.ErrNotFound, "undoing what failed")
	first := b.beginTurn(l, 0)
	b.offloadResults(l, 3, 4)
	b.compactSession(l, sessions.Compaction{Pinned: &sessions.Pinned{Text: "pinned then"}})
	second := b.beginTurn(l, 0)
	c := newCompaction(0, 3)
	c.Pinned = &sessions.Pinned{Text: "pinned since"}
	c.Freed, c.Log = 40, sessions.LogEntry{Trigger: "manual", Policy: "token_budget", Mode: "summary_only", TokensBefore: 100, TokensAfter: 60}
	b.compactSession(l, c)
	b.keptBlobs(otherBody)
	_, err = b.Store.Jobs.OpenJob(b.ctx, l, sessions.Job{From: 3, Through: 4})
	b.checkError(err)

	size := b.beginTurn(l, 0).Session.TotalTokens
	entry := b.undoCompaction(l, 1000)
	v := b.beginTurn(l, 0)
	if checkShown(v) != checkShown(second) {
		b.Errorf("after the undo the view is\n%s\nwant\n%s", checkShown(v), checkShown(second))
	}
	b.keptBlobs(bigBody, otherBody)
	if s := v.Session; s.TotalTokens != second.Session.TotalTokens || s.RearmTokens != s.TotalTokens+1000 || s.CompactionCount != 1 {
		b.Errorf("after the undo the session is %+v, want %d tokens and a rest of 1000 more", s, second.Session.TotalTokens)
	}
	if entry.ID == 0 || entry.Trigger != "undo" || entry.Outcome != "committed" || entry.TokensBefore != size || entry.TokensAfter != size+40 ||
		entry.StartSeq != 1 || entry.EndSeq != 3 || entry.Policy != "token_budget" || entry.CreatedAt.IsZero() || entry.Key != key {
		b.Errorf("the undo is logged as %+v", entry)
	}
	_, err = b.Store.Jobs.Job(b.ctx, key)
	b.wantError(err, sessions.ErrNotFound, "reading the job of a view that was left")
	rows, err := b.Store.Compactions.Compactions(b.ctx, key, 10)
	b.checkError(err)
	if len(rows) != 5 || rows[0].ID != entry.ID || rows[1].Undone.IsZero() || !rows[2].Undone.IsZero() {
		b.Errorf("the log is %+v, want the undo, what it took back and, before that, what stands", rows)
	}
	for _, e := range b.Log(b.T, key) {
		if e.Archived {
			b.Errorf("event %d is still archived", e.Seq)
		}
	}
	if all := b.Summaries(b.T, key); len(all) != 1 || all[0].Status != sessions.Undone {
		b.Errorf("the summaries are %+v, want the one, undone", all)
	}

	b.undoCompaction(l, 0)
	b.undoCompaction(l, 0)
	if v := b.beginTurn(l, 0); checkShown(v) != checkShown(first) || v.Session.TotalTokens != first.Session.TotalTokens {
		b.Errorf("after all undos the view is\n%s\nwant\n%s", checkShown(v), checkShown(first))
	}
	b.keptBlobs()
	_, err = b.Store.Compactions.Undo(b.ctx, l, 0, 0)
	b.wantError(err, sessions.ErrNotFound, "undoing once more")
	b.compactSession(l, newCompaction(0, 3)) // an undone range can be compacted again
	b.checkSummaries(l, "1-3:3:0 ")
}

// An undo after an erasure adds the remaining texts to the context: neither the session nor the log has the size of before.
func testUndoErased(b *suite) {
	l := b.runTools(1, bigBody, otherBody) // 1 to 5
	before := b.beginTurn(l, 0)
	texts := func(v sessions.View) (n int) {
		for _, s := range v.Summaries {
			n += s.Tokens
		}
		for _, e := range v.Tail {
			n += e.Tokens
		}
		return n
	}
	c := newCompaction(0, 3)
	c.Summaries[0].Text, c.Summaries[0].Tokens = "## 进行中的任务\n- 周会在周三", 20
	c.Freed = texts(before) - before.Tail[3].Tokens - before.Tail[4].Tokens - 20
	c.Log = sessions.LogEntry{TokensBefore: 1000, TokensAfter: 1000 - c.Freed}
	b.compactSession(l, c)
	b.acceptMessage(replicaA, 2)
	b.runTurn(l, 1) // 6 and 7
	size := b.beginTurn(l, 0).Session.TotalTokens
	b.endTries()
	_, err := b.Store.Erasure.Erase(b.ctx, key, []int64{3})
	b.checkError(err)
	l = b.acquireLease(replicaA)
	entry := b.undoCompaction(l, 60)
	v := b.beginTurn(l, 0)
	erased := before.Tail[2].Tokens - v.Tail[2].Tokens
	if want := size + c.Freed - erased; erased <= 0 || v.Session.TotalTokens != want || v.Session.RearmTokens != want+60 || entry.TokensAfter != want {
		b.Errorf("%d tokens of %d and %d were erased: after the undo the session has %d and rests to %d, and the log says %d -> %d",
			erased, size, c.Freed, v.Session.TotalTokens, v.Session.RearmTokens, entry.TokensBefore, entry.TokensAfter)
	}
}

// A turn that undoes may run twice, and must not undo more than was asked for.
func testUndoOnce(b *suite) {
	l := b.leaseWithMessages(6)
	b.runTurn(l, 6)
	for through := range int64(4) {
		b.compactSession(l, newCompaction(through, through+1))
	}
	b.acceptMessage(replicaA, 7)
	asked := b.beginTurn(l, 1).Pending[0].ID
	undo := func(store Storage, event int64, want string) sessions.LogEntry {
		b.Helper()
		e, err := store.Compactions.Undo(b.ctx, l, event, 10)
		b.checkError(err)
		b.checkSummaries(l, want)
		return e
	}
	first := undo(b.Store, asked, "1-1:1:0 2-2:1:0 3-3:1:0 ")
	session, rows := b.beginTurn(l, 0).Session, b.logRows(5)
	if by := string(newMessage(7).SenderID); first.RequestedBy != by || rows[0].RequestedBy != by || rows[1].RequestedBy != "" {
		b.Errorf("the undo was asked for by %q, in the log by %q, want %q; the compaction before by %q", first.RequestedBy, rows[0].RequestedBy, by, rows[1].RequestedBy)
	}
	b.Expire(b.T, replicaA)
	b.sendBeat(replicaB)
	l = b.acquireLease(replicaB)
	again := undo(b.Other, asked, "1-1:1:0 2-2:1:0 3-3:1:0 ")
	if again.ID != first.ID || again.StartSeq != first.StartSeq || again.EndSeq != first.EndSeq || again.RequestedBy != first.RequestedBy || again.Trigger != "undo" ||
		again.TokensBefore != first.TokensBefore || again.TokensAfter != first.TokensAfter {
		b.Errorf("asked again the undo was %+v, want that of before, %+v", again, first)
	}
	b.logRows(len(rows))
	now := b.beginTurn(l, 0).Session
	if now.Lease = session.Lease; now != session {
		b.Errorf("an undo that was done before made of the session\n%+v\nthis:\n%+v", session, now)
	}
	if other := undo(b.Store, asked+1, "1-1:1:0 2-2:1:0 "); other.ID == first.ID {
		b.Errorf("what another message asks for was taken for done: %+v", other)
	}
	undo(b.Store, 0, "1-1:1:0 ")
	undo(b.Store, 0, "") // without a message's id each undo is a new one
	undo(b.Store, asked, "")
	_, err := b.Store.Compactions.Undo(b.ctx, l, asked+2, 10)
	b.wantError(err, sessions.ErrNotFound, "undoing what there is not")
	b.compactSession(l, newCompaction(0, 1))
	undo(b.Store, asked+2, "") // it had undone nothing
}

func (b *suite) logRows(n int) []sessions.LogEntry {
	b.Helper()
	rows, err := b.Store.Compactions.Compactions(b.ctx, key, 100)
	b.checkError(err)
	if len(rows) != n {
		b.Errorf("the log has %d rows, want %d: %+v", len(rows), n, rows)
	}
	return rows
}

// An undo brings back replaced summaries, whatever followed.
func testUndoRollUp(b *suite) {
	l := b.leaseWithMessages(6)
	b.runTurn(l, 6)
	b.compactSession(l, newCompaction(0, 2))
	b.compactSession(l, newCompaction(2, 4))
	rolled := newCompaction(4, 5)
	rolled.Summaries = []sessions.NewSummary{
		{StartSeq: 5, EndSeq: 5, Text: "five"}, {StartSeq: 1, EndSeq: 4, Text: "one to four", Level: 1},
	}
	rolled.Shown = []sessions.Shown{{Seq: 6, Text: "…", Tokens: 1}}
	b.compactSession(l, rolled)
	b.checkSummaries(l, "1-4:4:1 5-5:1:0 ")
	b.acceptMessage(replicaA, 7)
	b.runTurn(l, 1)
	b.undoCompaction(l, 0)
	b.checkSummaries(l, "1-2:2:0 3-4:2:0 ")
	if got := eventContents(b.beginTurn(l, 0).Tail); got != "5:user:问题 5 6:user:问题 6 7:assistant:答复 8:user:问题 7 9:assistant:答复 " {
		b.Errorf("the tail is %q, want the events of the undone summary and those after it", got)
	}
	b.compactSession(l, newCompaction(4, 8))
	b.undoCompaction(l, 0)
	b.undoCompaction(l, 0)
	b.checkSummaries(l, "1-2:2:0 ")
}

// P15: a new generation starts with nothing of the old one, and nothing of the old one comes back.
func testRenew(b *suite) {
	l := b.runTools(1, bigBody, otherBody) // 1 to 5
	b.offloadResults(l, 4)
	c := newCompaction(0, 3)
	c.Pinned, c.RearmTokens = &sessions.Pinned{Text: "pinned"}, 500
	b.compactSession(l, c)
	b.checkError(b.Store.Compactions.Log(b.ctx, l, sessions.LogEntry{Outcome: "failed", Error: "busy", Failures: 2, Rearm: 900}))
	b.FailFlush(b.T, l, 2)
	late, err := b.Store.Jobs.OpenJob(b.ctx, l, sessions.Job{From: 3, Through: 5})
	b.checkError(err)
	log := eventContents(b.Log(b.T, key))
	b.acceptMessage(replicaA, 2) // waits

	b.checkError(b.Store.Sessions.Renew(b.ctx, l))
	v := b.beginTurn(l, 10)
	if len(v.Summaries) != 0 || len(v.Tail) != 0 || len(v.Pending) != 1 {
		b.Errorf("the new view is %s, %d waiting; want it empty but for the message that waits", checkShown(v), len(v.Pending))
	}
	if s := v.Session; s.Gen != 1 || s.BaseSeq != 5 || s.CompactedSeq != 5 || s.TotalTokens != 0 || s.RearmTokens != 0 ||
		s.CompactFailures != 0 || s.CompactError != "" || s.FlushFailures != 0 || s.FlushEpoch != -1 || s.CompactionCount != 1 || s.Pinned != "pinned" {
		b.Errorf("the new generation's state is %+v", s)
	}
	if all := b.Summaries(b.T, key); len(all) != 1 || all[0].Status != sessions.Closed {
		b.Errorf("the summaries are %+v, want the one, closed", all)
	}
	if got := eventContents(b.Log(b.T, key)); got != log+"0:user:问题 2 " {
		b.Errorf("the log is %q, want all of %q", got, log)
	}
	b.keptBlobs()
	_, err = b.Store.Jobs.Job(b.ctx, key)
	b.wantError(err, sessions.ErrNotFound, "reading the job of the old generation")
	_, err = b.Store.Compactions.Undo(b.ctx, l, 0, 0)
	b.wantError(err, sessions.ErrNotFound, "undoing across generations")
	stale := newCompaction(3, 5)
	stale.Source = late.Hash
	_, err = b.Store.Compactions.Compact(b.ctx, l, stale)
	b.wantError(err, sessions.ErrConflict, "committing a compaction of the old generation")
	stale.From, stale.Through = 5, 5
	_, err = b.Store.Compactions.Compact(b.ctx, l, stale)
	b.wantError(err, sessions.ErrConflict, "committing an old generation's summary at the new cursor")

	b.commitTurn(l, newAnswer(v)) // 6 and 7
	fresh := newCompaction(5, 6)
	fresh.Gen = 1
	b.compactSession(l, fresh)
	b.checkSummaries(l, "6-6:1:0 ")
	b.undoCompaction(l, 0)
	if v = b.beginTurn(l, 0); eventContents(v.Tail) != "6:user:问题 2 7:assistant:答复 " || v.Session.CompactedSeq != 5 {
		b.Errorf("after an undo the new generation's view is %s", checkShown(v))
	}
	_, err = b.Store.Compactions.Undo(b.ctx, l, 0, 0)
	b.wantError(err, sessions.ErrNotFound, "undoing across generations")
}

// S13: a session's own settings stay until they are taken back.
func testConfigure(b *suite) {
	l := b.leaseWithMessages(1)
	b.runTurn(l, 1)
	if s := b.beginTurn(l, 0).Session; s.Settings != "" {
		b.Errorf("a new session has the settings %q", s.Settings)
	}
	b.checkError(b.Store.Sessions.Configure(b.ctx, l, `{"tail_turns": 4}`))
	b.checkError(b.Store.Sessions.Configure(b.ctx, l, `{"policy": "turns"}`))
	b.compactSession(l, newCompaction(0, 2))
	b.checkError(b.Store.Sessions.Renew(b.ctx, l))
	if s := b.beginTurn(l, 0).Session; s.Settings != `{"policy": "turns"}` {
		b.Errorf("the settings are %q, want the newest", s.Settings)
	}
	b.checkError(b.Store.Sessions.Configure(b.ctx, l, ""))
	if s := b.beginTurn(l, 0).Session; s.Settings != "" {
		b.Errorf("settings that were taken back are %q", s.Settings)
	}
}

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
