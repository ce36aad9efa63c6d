package sessionstest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ebb/sessions"
)

// newSummaries takes the ends of ranges in pairs.
func newSummaries(ends ...int64) []sessions.NewSummary {
	var list []sessions.NewSummary
	for i := 0; i < len(ends); i += 2 {
		list = append(list, sessions.NewSummary{
			StartSeq: ends[i], EndSeq: ends[i+1], Text: fmt.Sprintf("%d to %d", ends[i], ends[i+1]), Tokens: 2,
		})
	}
	return list
}

func newCompaction(from, through int64) sessions.Compaction {
	return sessions.Compaction{From: from, Through: through, Summaries: newSummaries(from+1, through)}
}

func (b *suite) compactSession(l sessions.Lease, c sessions.Compaction) sessions.Compacted {
	b.Helper()
	done, err := b.Store.Compactions.Compact(b.ctx, l, c)
	b.checkError(err)
	return done
}

func (b *suite) checkSummaries(l sessions.Lease, want string) {
	b.Helper()
	var got strings.Builder
	for _, s := range b.beginTurn(l, 0).Summaries {
		fmt.Fprintf(&got, "%d-%d:%d:%d ", s.StartSeq, s.EndSeq, s.MsgCount, s.Level)
	}
	if got.String() != want {
		b.Errorf("the view has summaries %q, want %q", got.String(), want)
	}
}

// The notice of a compaction is written with it, once, and waits to be claimed. A refused compaction leaves none.
func testNotice(b *suite) {
	l := b.leaseWithMessages(3)
	sent := b.runTurn(l, 3).Replies[0]
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: sent.ID, Attempt: 1, Sent: true}))
	c := newCompaction(0, 2)
	c.Notice = &sessions.Reply{Target: sessions.Target{ConversationID: "cidGroup=="}, Text: "compacted", Nonce: "notice"}
	done := b.compactSession(l, c)
	_, err := b.Store.Compactions.Compact(b.ctx, l, c)
	b.wantError(err, sessions.ErrConflict, "compacting the same range twice")
	open := b.unsentReplies(l)
	if len(done.Replies) != 1 || len(open) != 1 || open[0].ID != done.Replies[0].ID || open[0].Maybe || done.Replies[0].Attempts != 0 ||
		done.Replies[0].Created.IsZero() {
		b.Fatalf("the compaction gave %+v, and unsent are %+v", done.Replies, open)
	}
	claimed := b.claimReply(l, "", open[0].ID)
	if len(claimed) != 1 || claimed[0].Reply.Text != "compacted" || claimed[0].Reply.Nonce != "notice" || claimed[0].Attempts != 1 {
		b.Errorf("claimed is %+v", claimed)
	}
}

// P3: the cursor moves once, with the summary of the events that it passes.
func testCompact(b *suite) {
	l := b.leaseWithMessages(3)
	b.runTurn(l, 3)
	c := sessions.Compaction{
		Through: 2, Summaries: []sessions.NewSummary{{StartSeq: 1, EndSeq: 2, Text: "摘要 one", Tokens: 9}},
		Freed: 11, RearmTokens: 77, Pinned: &sessions.Pinned{Text: "pinned"},
		Log: sessions.LogEntry{Trigger: "threshold", Audit: `{"ok":true}`, Duration: 3 * time.Second, Usage: sessions.Usage{Prompt: 10}},
	}
	b.compactSession(l, c)
	_, err := b.Other.Compactions.Compact(b.ctx, l, c)
	b.wantError(err, sessions.ErrConflict, "compacting the same range twice")
	other := newCompaction(2, 3)
	other.Gen = 1
	for name, bad := range map[string]sessions.Compaction{
		"another generation":      other,
		"beyond the log":          newCompaction(2, 5),
		"backwards":               newCompaction(2, 1),
		"without a summary":       {From: 2, Through: 3},
		"with a gap":              {From: 2, Through: 4, Summaries: newSummaries(4, 4)},
		"with too short a tale":   {From: 2, Through: 4, Summaries: newSummaries(3, 3)},
		"beyond the cursor":       {From: 2, Through: 3, Summaries: newSummaries(3, 4)},
		"half of the summary":     {From: 2, Through: 3, Summaries: newSummaries(2, 3)},
		"a part of the summary":   {From: 2, Through: 2, Summaries: newSummaries(1, 1)},
		"twice the same":          {From: 2, Through: 4, Summaries: newSummaries(3, 4, 3, 3)},
		"before the conversation": {From: 2, Through: 3, Summaries: newSummaries(0, 3)},
		"an upside-down range":    {From: 2, Through: 3, Summaries: newSummaries(3, 3, 5, 4)},
	} {
		_, err := b.Store.Compactions.Compact(b.ctx, l, bad)
		b.wantError(err, sessions.ErrConflict, "compacting "+name)
	}
	empty := newCompaction(2, 3)
	empty.Summaries[0].Text = ""
	_, err = b.Store.Compactions.Compact(b.ctx, l, empty)
	b.wantError(err, sessions.ErrRefused, "compacting into nothing")
	v := b.beginTurn(l, 0)
	if s := v.Session; s.CompactedSeq != 2 || s.CompactionCount != 1 || s.TotalTokens != 24 || s.RearmTokens != 77 ||
		s.Pinned != "pinned" || s.ObservedTokens != 0 || s.CompactedAt.IsZero() || s.Usage.Prompt != 0 || s.SpentToday != 0 {
		b.Errorf("the session is %+v", s)
	}
	if got := eventContents(v.Tail); got != "3:user:问题 3 4:assistant:答复 " {
		b.Errorf("the tail is %q", got)
	}
	log := b.Log(b.T, key)
	if len(v.Summaries) != 1 {
		b.Fatalf("there are %d summaries, want 1", len(v.Summaries))
	}
	sum := v.Summaries[0]
	if sum.StartSeq != 1 || sum.EndSeq != 2 || sum.MsgCount != 2 || sum.Text != "摘要 one" || sum.Tokens != 9 ||
		sum.Status != sessions.Active || sum.Level != 0 || sum.StartMsgID != log[0].ID || sum.EndMsgID != log[1].ID {
		b.Errorf("the summary is %+v", sum)
	}
	last := log[len(log)-1]
	if last.Role != sessions.RoleSummary || last.Seq != 0 || last.Content != "摘要 one" || last.Tokens != 9 {
		b.Errorf("the mark in the log is %+v", last)
	}
	for _, e := range log {
		if e.Archived != (e.Seq == 1 || e.Seq == 2) || (e.Seq > 0 && e.Content == "") {
			b.Errorf("event %d: archived %t, content %q", e.Seq, e.Archived, e.Content)
		}
	}
}

// P2, P13: summaries lie end to end and count their events; replaced summaries stay readable.
func testCompactTiles(b *suite) {
	l := b.leaseWithMessages(6)
	b.runTurn(l, 6)
	b.compactSession(l, newCompaction(0, 2))
	b.compactSession(l, newCompaction(2, 3))
	b.checkSummaries(l, "1-2:2:0 3-3:1:0 ")
	rolled := newCompaction(3, 5)
	rolled.Summaries = []sessions.NewSummary{{StartSeq: 3, EndSeq: 5, Text: "3 to 5", Level: 1}}
	b.compactSession(l, rolled)
	b.checkSummaries(l, "1-2:2:0 3-5:3:1 ")
	both := newCompaction(5, 6) // a segment, and what has rolled up with it
	both.Summaries = append(both.Summaries, sessions.NewSummary{StartSeq: 1, EndSeq: 6, Text: "all six", Level: 2})
	b.compactSession(l, both)
	b.checkSummaries(l, "1-6:6:2 ")
	v := b.beginTurn(l, 0)
	if got := eventContents(v.Tail); got != "7:assistant:答复 " {
		b.Errorf("the tail is %q", got)
	}
	log := b.Log(b.T, key)
	if s := v.Summaries[0]; s.StartMsgID != log[0].ID || s.EndMsgID != log[5].ID || s.Text != "all six" {
		b.Errorf("the summary is %+v, want it to name the events %d and %d at its ends", s, log[0].ID, log[5].ID)
	}
	var replaced []string
	for _, s := range b.Summaries(b.T, key) {
		if s.Status == sessions.Superseded {
			replaced = append(replaced, fmt.Sprintf("%d-%d:%s", s.StartSeq, s.EndSeq, s.Text))
		}
	}
	if got, want := strings.Join(replaced, ", "), "1-2:1 to 2, 3-3:3 to 3, 3-5:3 to 5, 6-6:6 to 6"; got != want {
		b.Errorf("what was replaced reads %q, want %q", got, want)
	}
	b.compactSession(l, sessions.Compaction{From: 6, Through: 6, Summaries: []sessions.NewSummary{{StartSeq: 1, EndSeq: 6, Text: "shorter", Level: 3}}})
	b.checkSummaries(l, "1-6:6:3 ")
	if s := b.beginTurn(l, 0).Session; s.CompactedSeq != 6 || s.CompactionCount != 5 {
		b.Errorf("the session is %+v, want its cursor at 6 after five compactions", s)
	}
	marks := 0
	for _, e := range b.Log(b.T, key) {
		if e.Role == sessions.RoleSummary {
			marks++
		}
	}
	if marks != 5 {
		b.Errorf("the log has %d marks of five compactions", marks)
	}
}

func testCompactMidTurn(b *suite) {
	l := b.leaseWithMessages(3)
	b.runTurn(l, 3) // 35 tokens
	b.acceptMessage(replicaA, 4)
	t := newAnswer(b.beginTurn(l, 1))
	t.ObservedTokens = 99
	c := newCompaction(0, 2)
	c.Freed = 18
	b.compactSession(l, c)
	b.commitTurn(l, t)
	s := b.beginTurn(l, 0).Session
	if s.TotalTokens != 35-18+15 || s.ObservedTokens != 0 {
		b.Errorf("total is %d, observed %d; want what the compaction left and the turn added, 32, and 0: the prompt was of the old view",
			s.TotalTokens, s.ObservedTokens)
	}
}

// After a change of the view during a turn, the turn's own count does not replace the new one.
func testViewChangedMidTurn(b *suite) {
	l := b.runTools(1, bigBody, otherBody) // 1 to 5
	body := b.beginTurn(l, 0).Tail[2]
	for i, change := range []struct {
		name string
		do   func()
	}{
		{"results were moved out", func() { b.offloadResults(l, 3, 4) }},
		{"results were shortened", func() {
			b.compactSession(l, sessions.Compaction{Freed: 40, Shown: []sessions.Shown{{Seq: body.Seq, Text: "cut", Tokens: 10}}})
		}},
		{"a compaction was undone", func() { b.undoCompaction(l, 0) }},
		{"a message was erased", func() {
			b.endTries()
			_, err := b.Other.Erasure.Erase(b.ctx, key, []int64{4})
			b.checkError(err)
			l = b.acquireLease(replicaA)
		}},
		{"the conversation was renewed", func() { b.checkError(b.Store.Sessions.Renew(b.ctx, l)) }},
		{"nothing happened but a failure", nil},
	} {
		b.acceptMessage(replicaA, 2+i)
		before := b.beginTurn(l, 1)
		t := newAnswer(before)
		t.TotalTokens, t.ObservedTokens = 5000, 4999
		want := t.TotalTokens
		if change.do == nil {
			b.checkError(b.Store.Compactions.Log(b.ctx, l, sessions.LogEntry{Outcome: "failed"}))
		} else {
			change.do()
			left := b.beginTurn(l, 0).Session
			if want = left.TotalTokens + t.Appended; left.ViewVersion <= before.Session.ViewVersion {
				b.Errorf("%s, and the view's version went from %d to %d", change.name, before.Session.ViewVersion, left.ViewVersion)
			}
		}
		b.commitTurn(l, t)
		s := b.beginTurn(l, 0).Session
		if observed := t.ObservedTokens * min(1, want/t.TotalTokens); s.TotalTokens != want || s.ObservedTokens != observed {
			b.Errorf("%s under a turn, which left %d tokens, %d observed; want %d and %d",
				change.name, s.TotalTokens, s.ObservedTokens, want, observed)
		}
		if change.do == nil && s.ViewVersion != before.Session.ViewVersion {
			b.Errorf("a turn's commit changed the view's version to %d", s.ViewVersion)
		}
	}
}

func testCompactFailed(b *suite) {
	l := b.leaseWithMessages(1)
	retry := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	b.checkError(b.Store.Compactions.Log(b.ctx, l, sessions.LogEntry{
		Outcome: "failed", Error: "busy", Failures: 2, RetryAt: retry, Rearm: 900,
		Usage: sessions.Usage{Prompt: 30, Cached: 20, Completion: 4},
	}))
	s := b.beginTurn(l, 0).Session
	if s.CompactFailures != 2 || !s.CompactRetryAt.Equal(retry) || s.RearmTokens != 900 || s.CompactError != "busy" {
		b.Errorf("the session remembers %d failures, retry at %v, rearm %d, error %q", s.CompactFailures, s.CompactRetryAt, s.RearmTokens, s.CompactError)
	}
	if s.SpentToday != 34 || (s.Usage != sessions.Usage{Prompt: 30, Cached: 20, Completion: 4}) {
		b.Errorf("the failed attempt's usage is kept as %+v, %d of it today; want it all, and 34", s.Usage, s.SpentToday)
	}
	b.runTurn(l, 1)
	b.compactSession(l, newCompaction(0, 1))
	if s = b.beginTurn(l, 0).Session; s.CompactFailures != 0 || !s.CompactRetryAt.IsZero() || s.CompactError != "" {
		b.Errorf("a compaction that worked left %d failures, retry at %v, error %q", s.CompactFailures, s.CompactRetryAt, s.CompactError)
	}
}

func testCompactForgivesFlushes(b *suite) {
	l := b.leaseWithMessages(1)
	b.runTurn(l, 1)
	b.FailFlush(b.T, l, 3)
	if s := b.beginTurn(l, 0).Session; s.FlushFailures != 3 {
		b.Fatalf("the session counts %d flushes that failed, want 3", s.FlushFailures)
	}
	b.compactSession(l, newCompaction(0, 1))
	if s := b.beginTurn(l, 0).Session; s.FlushFailures != 0 {
		b.Errorf("after the compaction the session counts %d flushes that failed: it would never flush again", s.FlushFailures)
	}
}

func testBacklogs(b *suite) {
	b.sendBeat(replicaB)
	l := b.leaseWithMessages(2)
	b.runTurn(l, 2)
	tokens := b.beginTurn(l, 0).Session.TotalTokens
	list := func(owner sessions.ReplicaID, least int, after sessions.Key, want ...sessions.Key) {
		b.Helper()
		got, err := b.Store.Compactions.Backlogs(b.ctx, owner, least, after, 10)
		b.checkError(err)
		keys := []sessions.Key{}
		for _, s := range got {
			keys = append(keys, s.Key)
			if s.TotalTokens < least || s.ConversationID != "cidGroup==" {
				b.Errorf("listed as %+v", s)
			}
		}
		if !slices.Equal(keys, want) {
			b.Errorf("for %s with %d tokens behind %q: %v, want %v", owner, least, after, keys, want)
		}
	}
	list(replicaA, tokens, "", key)
	list(replicaA, tokens+1, "")
	list(replicaA, tokens, key)
	list(replicaB, tokens, "") // a living replica holds it
	if got, err := b.Store.Compactions.Backlogs(b.ctx, replicaA, tokens, "", 0); err != nil || len(got) != 0 {
		b.Errorf("with a limit of none: %v, %v", got, err)
	}
	b.checkError(b.Store.Compactions.Log(b.ctx, l, sessions.LogEntry{
		Outcome: "failed", Failures: 1, RetryAt: time.Now().Add(time.Hour), Usage: sessions.Usage{Prompt: 30, Completion: 4},
	}))
	list(replicaA, tokens, "")
	b.checkError(b.Store.Compactions.Log(b.ctx, l, sessions.LogEntry{Outcome: "failed", Failures: 1, RetryAt: time.Now().Add(-time.Second)}))
	list(replicaA, tokens, "", key)
	if got, err := b.Store.Compactions.Backlogs(b.ctx, replicaA, tokens, "", 10); err != nil || got[0].SpentToday != 34 {
		b.Errorf("listed as %+v, %v; want 34 tokens spent", got, err)
	}
	b.checkError(b.Store.Compactions.Log(b.ctx, l, sessions.LogEntry{Outcome: "nothing", Rearm: tokens + 1}))
	list(replicaA, tokens, "") // it rests until it has grown
}
