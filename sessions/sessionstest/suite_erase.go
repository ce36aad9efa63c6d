package sessionstest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ebb/sessions"
)

const secret = "Zq7-secret"

func (b *suite) checkHidden() {
	b.Helper()
	l := b.acquireLease(replicaA)
	var all strings.Builder
	v := b.beginTurn(l, 10)
	fmt.Fprintf(&all, "%s %s %+v", checkShown(v), v.Session.Pinned, v.Pending)
	for _, e := range b.Log(b.T, key) {
		fmt.Fprintf(&all, " %d:%s:%s:%+v:%+v", e.Seq, e.Role, e.Content, e.ToolCalls, e.Message)
	}
	for _, sum := range b.Summaries(b.T, key) {
		all.WriteString(" " + sum.Text)
	}
	for _, blob := range b.Blobs(b.T, key) {
		body, err := b.Store.Compactions.Blob(b.ctx, key, blob)
		b.checkError(err)
		all.WriteString(" " + body)
	}
	src, err := b.Store.Jobs.OpenJob(b.ctx, l, sessions.Job{Gen: v.Session.Gen, From: v.Session.CompactedSeq, Through: v.Session.LastSeq})
	b.checkError(err)
	all.WriteString(" " + eventContents(src.Events))
	if strings.Contains(all.String(), secret) {
		b.Errorf("the secret is still there:\n%s", all.String())
	}
}

// P75: an erased text is in no body, blob or summary. A summary loses its lines and stays, or is emptied until it is
// written again.
func testErase(b *suite) {
	l := b.runTools(1, bigBody+secret, otherBody) // 1 to 5, the secret at 3
	b.offloadResults(l, 3, 4)
	b.compactSession(l, newCompaction(0, 1))
	second := newCompaction(1, 3)
	second.Summaries[0].Text, second.Summaries[0].Tokens = "## 进行中的任务\n- 周会在周三\n- about "+secret+"\n- 午餐吃面", 40
	second.Pinned = &sessions.Pinned{Text: "pinned"}
	b.compactSession(l, second)
	b.acceptMessage(replicaA, 2)
	b.runTurn(l, 1) // 6 and 7
	b.compactSession(l, newCompaction(3, 5))
	b.undoCompaction(l, 60)
	before := b.beginTurn(l, 0).Session
	job := sessions.Job{From: 3, Through: 7}
	_, err := b.Store.Jobs.OpenJob(b.ctx, l, job)
	b.checkError(err)
	b.checkError(b.Store.Jobs.StageJob(b.ctx, l, job, []byte(secret), sessions.Spending{}))

	b.endTries()
	done, err := b.Other.Erasure.Erase(b.ctx, key, []int64{3, 3})
	b.checkError(err)
	if want := (sessions.Erased{Events: 1, Healed: 1}); done != want {
		b.Errorf("the erasure gave %+v, want %+v", done, want)
	}
	_, err = b.Store.Turns.Begin(b.ctx, l, 0)
	b.wantError(err, sessions.ErrLeaseLost, "going on with what was read before")
	_, err = b.Store.Jobs.Job(b.ctx, key)
	b.wantError(err, sessions.ErrNotFound, "reading the job of before")
	l = b.acquireLease(replicaA)
	b.checkSummaries(l, "1-1:1:0 2-3:2:0 ")
	v := b.beginTurn(l, 0)
	if text := v.Summaries[1].Text; text != "## 进行中的任务\n- 周会在周三\n- 午餐吃面" {
		b.Errorf("the healed summary is %q", text)
	}
	freed := 40 - v.Summaries[1].Tokens
	if s := v.Session; freed <= 0 || s.TotalTokens != before.TotalTokens-freed || s.RearmTokens != before.RearmTokens || s.RearmTokens == 0 ||
		s.CompactError != sessions.CompactUndone || s.Pinned != "" || s.CompactedSeq != 3 || s.LastSeq != 7 {
		b.Errorf("after an erasure that freed %d tokens the session is %+v, before it was %+v", freed, s, before)
	}
	b.checkHidden()
	b.undoCompaction(l, 0) // the way back to the view before that summary stays open
	b.checkSummaries(l, "1-1:1:0 ")
	if e := b.beginTurn(l, 0).Tail[1]; e.Seq != 3 || e.Content != sessions.ErasedText || e.Tokens != sessions.ErasedTokens || e.Blob != "" ||
		e.Role != sessions.RoleTool || e.ToolCallID == "" {
		b.Errorf("after an undo the erased event is %+v", e)
	}
	b.checkHidden()
}

// A summary that repeats little else is emptied until its range is written again, once.
func testEraseRewrite(b *suite) {
	l := b.runTools(1, bigBody+secret, otherBody)
	b.compactSession(l, newCompaction(0, 1))
	second := newCompaction(1, 3)
	second.Summaries[0].Text = "about " + secret
	b.compactSession(l, second)
	b.compactSession(l, newCompaction(3, 5))
	w := sessions.Rewritten{ID: b.beginTurn(l, 0).Summaries[1].ID, Text: "again", Tokens: 9, Growth: 7, Log: sessions.LogEntry{Trigger: "rewrite"}}
	b.wantError(b.Store.Compactions.Rewrite(b.ctx, l, w), sessions.ErrConflict, "rewriting a summary that says something")
	b.endTries()
	done, err := b.Store.Erasure.Erase(b.ctx, key, []int64{3})
	b.checkError(err)
	if want := (sessions.Erased{Events: 1, Summaries: 1}); done != want {
		b.Errorf("the erasure gave %+v, want %+v", done, want)
	}
	b.wantError(b.Store.Compactions.Rewrite(b.ctx, l, w), sessions.ErrLeaseLost, "rewriting with a lost lease")
	l = b.acquireLease(replicaA)
	b.checkSummaries(l, "1-1:1:0 2-3:2:0 4-5:2:0 ")
	v := b.beginTurn(l, 0)
	if !v.Summaries[1].Emptied() || v.Summaries[0].Emptied() || v.Summaries[2].Emptied() {
		b.Errorf("after the erasure the view is\n%s", checkShown(v))
	}
	b.checkHidden()
	b.checkError(b.Store.Compactions.Rewrite(b.ctx, l, w))
	b.wantError(b.Store.Compactions.Rewrite(b.ctx, l, w), sessions.ErrConflict, "rewriting it once more")
	now := b.beginTurn(l, 0)
	if s := now.Summaries[1]; s.Text != "again" || s.Tokens != 9 || now.Session.TotalTokens != v.Session.TotalTokens+7 ||
		now.Session.ViewVersion == v.Session.ViewVersion {
		b.Errorf("rewritten the summary is %+v, the session %+v", s, now.Session)
	}
	rows, err := b.Store.Compactions.Compactions(b.ctx, key, 1)
	b.checkError(err)
	if len(rows) != 1 || rows[0].Trigger != "rewrite" || rows[0].Outcome != "committed" {
		b.Errorf("the log's last row is %+v", rows)
	}
	b.undoCompaction(l, 0) // takes back a compaction, not the rewriting
	b.checkSummaries(l, "1-1:1:0 2-3:2:0 ")
}

// Events in no summary are wiped in place, and no undo shows them again.
func testEraseTail(b *suite) {
	l := b.runTools(1, bigBody+secret, otherBody) // 1 to 5
	v := b.beginTurn(l, 0)
	cut := sessions.Compaction{Pinned: &sessions.Pinned{Text: "- " + secret}, Shown: []sessions.Shown{
		{Seq: 3, Text: "cut " + secret, Tokens: 1}, {Seq: 4, Text: "cut other", Tokens: 1},
	}}
	b.compactSession(l, cut)
	b.compactSession(l, sessions.Compaction{Shown: []sessions.Shown{blobReference(v.Tail[2]), blobReference(v.Tail[3])}})
	b.keptBlobs(bigBody+secret, otherBody)
	b.endTries()
	for name, bad := range map[string][]int64{"nothing is": {3, 9}, "pending messages are": {0}} {
		_, err := b.Store.Erasure.Erase(b.ctx, key, bad)
		b.wantError(err, sessions.ErrNotFound, "erasing where "+name)
	}
	_, err := b.Store.Erasure.Erase(b.ctx, "robot/elsewhere", []int64{1})
	b.wantError(err, sessions.ErrNotFound, "erasing in no session")
	if now := b.beginTurn(l, 0); len(now.Tail) != len(v.Tail) {
		b.Errorf("refused erasures left\n%s", checkShown(now))
	}
	done, err := b.Store.Erasure.Erase(b.ctx, key, []int64{3})
	b.checkError(err)
	if want := (sessions.Erased{Events: 1, Blobs: 1}); done != want {
		b.Errorf("the erasure gave %+v, want %+v", done, want)
	}
	b.keptBlobs(otherBody)
	b.checkHidden()
	l = b.acquireLease(replicaA)
	b.undoCompaction(l, 0)
	if v := b.beginTurn(l, 0); v.Tail[2].Content != sessions.ErasedText || v.Tail[3].Content != "cut other" {
		b.Errorf("after an undo the view is\n%s", checkShown(v))
	}
	b.checkHidden()
	_, err = b.Store.Erasure.Erase(b.ctx, key, []int64{2})
	b.checkError(err)
	l = b.acquireLease(replicaA)
	if calls := b.beginTurn(l, 0).Tail[1].ToolCalls; len(calls) != 2 || calls[0].ID != "call-1-0" || calls[0].Name != "query" || calls[0].Arguments != "{}" {
		b.Errorf("an erased event calls %+v, want its calls without their arguments", calls)
	}
}

// A reply that was not delivered is given up with its answer; a message keeps its reply address.
func testEraseReplies(b *suite) {
	l := b.leaseWithMessages(2)
	b.runTurn(l, 1) // 1 and 2: its reply is open
	b.endTries()
	l2 := b.runTurn(l, 1)
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: l2.Replies[0].ID, Sent: true}))
	done, err := b.Store.Erasure.Erase(b.ctx, key, []int64{1})
	b.checkError(err)
	if want := (sessions.Erased{Events: 1, Replies: 1}); done != want { // the settled one
		b.Errorf("erasing a question gave %+v, want %+v", done, want)
	}
	l = b.acquireLease(replicaA)
	if open, err := b.Store.Outbox.Unsent(b.ctx, l); err != nil || len(open) != 1 {
		b.Errorf("to be sent are %+v (%v), want the answer", open, err)
	} else if open, err = b.Store.Outbox.Claim(b.ctx, l, sessions.SendAttempt{IDs: []int64{open[0].ID}}); err != nil || len(open) != 1 || open[0].Reply.Text != "答复" {
		b.Errorf("claimed are %+v (%v), want the answer", open, err)
	} else {
		b.tries = append(b.tries, open...)
		b.endTries()
	}
	if m := b.beginTurn(l, 0).Tail[0].Message; m == nil || m.Text != sessions.ErasedText || m.ID != "msg-1" {
		b.Errorf("an erased message came as %+v", m)
	}
	done, err = b.Store.Erasure.Erase(b.ctx, key, []int64{2})
	b.checkError(err)
	if done.Replies != 1 {
		b.Errorf("erasing an answer gave %+v, want its reply given up", done)
	}
	l = b.acquireLease(replicaA)
	if open, err := b.Store.Outbox.Unsent(b.ctx, l); err != nil || len(open) != 0 {
		b.Errorf("to be sent are %+v (%v), want nothing", open, err)
	}
}

// Erasures end a few consecutive turns. The next one waits.
func testEraseWaits(b *suite) {
	l := b.leaseWithMessages(2)
	b.runTurn(l, 1) // 1 and 2
	b.endTries()
	for range sessions.MaxCuts {
		v := b.beginTurn(l, 1)
		_, err := b.Store.Erasure.Erase(b.ctx, key, []int64{1})
		b.checkError(err)
		_, err = b.Store.Erasure.Erase(b.ctx, key, []int64{2}) // an event of the same turn
		b.checkError(err)
		_, err = b.Store.Turns.Commit(b.ctx, l, newAnswer(v))
		b.wantError(err, sessions.ErrLeaseLost, "a commit after an erasure")
		b.checkError(b.Store.Turns.Abandon(b.ctx, l, nil))
		l = b.acquireLease(replicaA)
	}
	v := b.beginTurn(l, 1)
	short, stop := context.WithTimeout(b.ctx, 200*time.Millisecond)
	defer stop()
	_, err := b.Other.Erasure.Erase(short, key, []int64{1})
	b.wantError(err, context.DeadlineExceeded, "an erasure beside the turn")
	erased := make(chan error)
	go func() {
		_, err := b.Other.Erasure.Erase(b.ctx, key, []int64{1})
		erased <- err
	}()
	b.commitTurn(l, newAnswer(v)) // 3 and 4
	b.endTries()
	b.checkError(<-erased)
	l = b.acquireLease(replicaA)
	b.acceptMessage(replicaA, 3)
	v = b.beginTurn(l, 1)
	_, err = b.Store.Erasure.Erase(b.ctx, key, []int64{3}) // the count began again
	b.checkError(err)
	_, err = b.Store.Turns.Commit(b.ctx, l, newAnswer(v))
	b.wantError(err, sessions.ErrLeaseLost, "a commit after the next erasure")
	for range sessions.MaxCuts - 1 {
		l = b.acquireLease(replicaA)
		b.beginTurn(l, 1)
		_, err = b.Store.Erasure.Erase(b.ctx, key, []int64{3})
		b.checkError(err)
	}
	l = b.acquireLease(replicaA)
	b.beginTurn(l, 1)
	b.Expire(b.T, replicaA) // its turn will not commit
	_, err = b.Store.Erasure.Erase(b.ctx, key, []int64{3})
	b.checkError(err)
}

// Erasures end upkeep a few times; then they wait, also if turns commit meanwhile.
func testEraseWaitsForUpkeep(b *suite) {
	l := b.leaseWithMessages(2)
	b.runTurn(l, 1) // 1 and 2
	for n := range sessions.MaxCuts {
		b.checkError(b.Store.Jobs.MarkUpkeep(b.ctx, l, time.Minute))
		b.eraseEvent(1)
		_, err := b.Store.Compactions.Compact(b.ctx, l, newCompaction(0, 2))
		b.wantError(err, sessions.ErrLeaseLost, "a compaction after an erasure")
		b.wantError(b.Store.Jobs.MarkUpkeep(b.ctx, l, 0), sessions.ErrLeaseLost, "the end of upkeep after an erasure")
		l = b.acquireLease(replicaA)
		b.runTurn(l, n+2)
	}
	b.eraseEvent(1) // nothing is under way
	l = b.acquireLease(replicaA)
	b.checkError(b.Store.Jobs.MarkUpkeep(b.ctx, l, time.Minute))
	short, stop := context.WithTimeout(b.ctx, 200*time.Millisecond)
	defer stop()
	_, err := b.Other.Erasure.Erase(short, key, []int64{1})
	b.wantError(err, context.DeadlineExceeded, "an erasure beside upkeep")
	erased := make(chan error)
	erase := func() {
		_, err := b.Other.Erasure.Erase(b.ctx, key, []int64{1})
		erased <- err
	}
	go erase()
	b.checkError(b.Store.Jobs.MarkUpkeep(b.ctx, l, 0))
	b.checkError(<-erased)
	l = b.acquireLease(replicaA)
	b.checkError(b.Store.Jobs.MarkUpkeep(b.ctx, l, time.Minute))
	go erase()
	b.compactSession(l, newCompaction(0, 2)) // the mark stays
	b.checkError(<-erased)
	l = b.acquireLease(replicaA)
	b.checkError(b.Store.Jobs.MarkUpkeep(b.ctx, l, 100*time.Millisecond))
	for range sessions.MaxCuts {
		b.eraseEvent(1)
		l = b.acquireLease(replicaA)
		b.checkError(b.Store.Jobs.MarkUpkeep(b.ctx, l, 100*time.Millisecond))
	}
	b.eraseEvent(1) // waits for the limit
	l = b.acquireLease(replicaA)
	b.checkError(b.Store.Jobs.MarkUpkeep(b.ctx, l, time.Minute))
	b.Expire(b.T, replicaA)
	b.eraseEvent(1)
}

func (b *suite) eraseEvent(seq int64) {
	b.Helper()
	b.endTries()
	_, err := b.Store.Erasure.Erase(b.ctx, key, []int64{seq})
	b.checkError(err)
}

// P93: an erasure or a deletion waits for the outcome of a reply under way. A replica without a heartbeat may still
// send.
func testEraseWaitsForReply(b *suite) {
	l := b.leaseWithMessages(3)
	b.runTurn(l, 1) // 1 and 2
	erase := func(ctx context.Context) error { _, err := b.Other.Erasure.Erase(ctx, key, []int64{1}); return err }
	remove := func(ctx context.Context) error { _, err := b.Other.Erasure.Delete(ctx, key); return err }
	for _, do := range []func(context.Context) error{erase, remove} {
		short, stop := context.WithTimeout(b.ctx, 100*time.Millisecond)
		b.wantError(do(short), context.DeadlineExceeded, "an erasure beside a try")
		stop()
	}
	ended := make(chan error)
	go func() { ended <- erase(b.ctx) }()
	b.endTries()
	b.checkError(<-ended)
	l = b.acquireLease(replicaA)
	b.tries = b.claimReply(l, "", b.unsentReplies(l)[0].ID)
	go func() { ended <- erase(b.ctx) }()
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: b.tries[0].ID, Attempt: b.tries[0].Attempts, Sent: true}))
	b.checkError(<-ended)
	b.runTurn(b.acquireLease(replicaA), 1)
	b.Expire(b.T, replicaA)
	short, stop := context.WithTimeout(b.ctx, 100*time.Millisecond)
	b.wantError(erase(short), context.DeadlineExceeded, "an erasure beside a replica without a heartbeat")
	stop()
	go func() { ended <- remove(b.ctx) }()
	b.endTries()
	b.checkError(<-ended)
}

// An erasure or a deletion ends the term at once, and its receipt waits for a call of that term that may still change a card. The next
// term changes that card only afterwards.
func testEraseWaitsForFrame(b *suite) {
	l := b.leaseWithMessages(2)
	b.runTurn(l, 1) // 1 and 2
	b.endTries()
	card := sessions.Card{Kind: sessions.ReplyCard, Track: "frames", EventID: b.beginTurn(l, 1).Pending[0].ID}
	_, _, err := b.Store.Cards.OpenCard(b.ctx, l, card, 0)
	b.checkError(err)
	b.wantError(b.Store.Cards.BeginFrame(b.ctx, l, "unknown", ""), sessions.ErrConflict, "a frame of an unknown card")
	b.checkError(b.Store.Cards.BeginFrame(b.ctx, l, card.Track, ""))
	b.checkError(b.Store.Cards.BeginFrame(b.ctx, l, card.Track, "")) // the next one of the same display

	short, stop := context.WithTimeout(b.ctx, time.Second)
	_, err = b.Other.Erasure.Erase(short, key, []int64{1})
	stop()
	b.wantError(err, context.DeadlineExceeded, "an erasure beside a frame")
	if log := b.Log(b.T, key); log[0].Content != sessions.ErasedText {
		b.Errorf("the event reads %q while its erasure waits", log[0].Content)
	}
	b.wantError(b.Store.Cards.BeginFrame(b.ctx, l, card.Track, ""), sessions.ErrLeaseLost, "a frame of an ended term")
	next := b.acquireLease(replicaA)
	b.wantError(b.Store.Cards.BeginFrame(b.ctx, next, card.Track, ""), sessions.ErrConflict, "a frame beside that of an earlier term")
	if c, err := b.Store.Cards.OpenCardOf(b.ctx, key, []string{card.Track}, nil); err != nil || c.Busy <= 0 || c.Busy > sessions.FrameTime {
		b.Errorf("the card may change for %s, %v", c.Busy, err)
	}
	b.checkError(b.Store.Cards.EndFrame(b.ctx, l, card.Track))
	if c, err := b.Store.Cards.OpenCardOf(b.ctx, key, []string{card.Track}, nil); err != nil || c.Busy != 0 {
		b.Errorf("after the end of the frame the card may change for %s, %v", c.Busy, err)
	}
	b.checkError(b.Store.Cards.BeginFrame(b.ctx, next, card.Track, ""))
	b.checkError(b.Store.Cards.EndFrame(b.ctx, l, card.Track)) // late, of the earlier term

	ended := make(chan error)
	for _, do := range []func() error{
		func() error { _, err := b.Other.Erasure.Erase(b.ctx, key, []int64{2}); return err },
		func() error { _, err := b.Other.Erasure.Delete(b.ctx, key); return err },
	} {
		go func() { ended <- do() }()
		select {
		case err := <-ended:
			b.Fatalf("an erasure ended beside a frame: %v", err)
		case <-time.After(200 * time.Millisecond):
		}
		b.checkError(b.Store.Cards.EndFrame(b.ctx, next, card.Track))
		b.checkError(<-ended)
		if next, err = b.Store.Leases.Acquire(b.ctx, key, replicaA); err == nil {
			b.checkError(b.Store.Cards.BeginFrame(b.ctx, next, card.Track, ""))
		}
	}
}

// P80: a session is deleted with all it has, even if a body is gone already.
func testDelete(b *suite) {
	l := b.runTools(1, bigBody, otherBody)
	b.offloadResults(l, 3, 4)
	b.SpoilBlob(b.T, key, sessions.BlobOf(bigBody), "")
	b.compactSession(l, newCompaction(0, 2))
	b.acceptMessage(replicaA, 2) // waits
	b.endTries()
	done, err := b.Other.Erasure.Delete(b.ctx, key)
	b.checkError(err)
	if want := (sessions.Deleted{Events: 7, Summaries: 1, Compactions: 2, Blobs: 1, Replies: 1}); done != want {
		b.Errorf("the deletion gave %+v, want %+v", done, want)
	}
	_, err = b.Store.Sessions.Session(b.ctx, key)
	b.wantError(err, sessions.ErrNotFound, "reading what was deleted")
	_, err = b.Other.Erasure.Delete(b.ctx, key)
	b.wantError(err, sessions.ErrNotFound, "deleting it again")
	_, err = b.Store.Compactions.Blob(b.ctx, key, sessions.BlobOf(otherBody))
	b.wantError(err, sessions.ErrNotFound, "reading a body of it")
	if n := len(b.Log(b.T, key)) + len(b.Summaries(b.T, key)) + len(b.Blobs(b.T, key)); n != 0 {
		b.Errorf("%d rows are left", n)
	}

	again := func() {
		b.Helper()
		for _, n := range []int{1, 2} {
			if a := b.acceptMessage(replicaA, n); a.New || a.EventID != 0 {
				b.Errorf("deleted message %d was accepted again: %+v", n, a)
			}
		}
	}
	again()
	_, err = b.Store.Sessions.Session(b.ctx, key)
	b.wantError(err, sessions.ErrNotFound, "reading the session after its messages were delivered again")

	b.acceptMessage(replicaA, 3)
	again()
	now := b.acquireLease(replicaA)
	if now.Term <= l.Term {
		b.Errorf("the new session has term %d, the deleted one had %d", now.Term, l.Term)
	}
	b.wantError(b.Store.Compactions.Log(b.ctx, l, sessions.LogEntry{Outcome: "failed"}), sessions.ErrLeaseLost, "going on with the deleted session")
	if v := b.beginTurn(now, 10); len(v.Pending) != 1 || v.Session.LastSeq != 0 || v.Session.Title != "Team" {
		b.Errorf("the new session is %+v", v)
	}
	b.runTurn(now, 10)
}
