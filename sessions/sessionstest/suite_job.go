package sessionstest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ebb/sessions"
)

func testJob(b *suite) {
	l := b.leaseWithMessages(4)
	b.runTurn(l, 4)
	_, err := b.Store.Jobs.Job(b.ctx, key)
	b.wantError(err, sessions.ErrNotFound, "reading a job where there is none")
	for name, bad := range map[string]sessions.Job{
		"another generation": {Gen: 1, Through: 3},
		"another cursor":     {From: 1, Through: 3},
		"beyond the log":     {Through: 6},
		"backwards":          {Through: -1},
	} {
		_, err := b.Store.Jobs.OpenJob(b.ctx, l, bad)
		b.wantError(err, sessions.ErrConflict, "opening a job of "+name)
	}
	job := sessions.Job{Through: 3, Version: "v1"}
	b.wantError(b.Store.Jobs.StageJob(b.ctx, l, job, []byte("s"), sessions.Spending{}), sessions.ErrConflict, "staging what was not opened")
	src, err := b.Store.Jobs.OpenJob(b.ctx, l, job)
	b.checkError(err)
	if eventContents(src.Events) != "1:user:问题 1 2:user:问题 2 3:user:问题 3 " || src.Hash == "" || src.Staged != nil {
		b.Errorf("the job has %q, hash %q, staged %q", eventContents(src.Events), src.Hash, src.Staged)
	}
	for name, other := range map[string]sessions.Job{
		"another end":          {Through: 4, Version: "v1"},
		"another version":      {Through: 3, Version: "v2"},
		"another generation":   {Gen: 1, Through: 3, Version: "v1"},
		"another place before": {From: 1, Through: 3, Version: "v1"},
	} {
		b.wantError(b.Store.Jobs.StageJob(b.ctx, l, other, []byte("s"), sessions.Spending{}), sessions.ErrConflict, "staging a job of "+name)
	}
	b.checkError(b.Store.Jobs.StageJob(b.ctx, l, job, []byte("text\x00\xff"), sessions.Spending{}))
	got, err := b.Other.Jobs.Job(b.ctx, key)
	b.checkError(err)
	if want := (sessions.Job{Through: 3, Version: "v1", Attempts: 1, Staged: true}); got != want {
		b.Errorf("the job is %+v, want %+v", got, want)
	}
	c := newCompaction(0, 3)
	c.Source = src.Hash
	b.compactSession(l, c)
	_, err = b.Store.Jobs.Job(b.ctx, key)
	b.wantError(err, sessions.ErrNotFound, "reading the job after its compaction")
}

// A staged job is found by the same job over the same events only.
func testJobStaged(b *suite) {
	l := b.leaseWithMessages(4)
	b.runTurn(l, 4)
	job := sessions.Job{Through: 3, Version: "v1"}
	open := func(j sessions.Job, attempts int, staged string) sessions.Source {
		b.Helper()
		src, err := b.Store.Jobs.OpenJob(b.ctx, l, j)
		b.checkError(err)
		if string(src.Staged) != staged {
			b.Errorf("job %+v finds %q staged, want %q", j, src.Staged, staged)
		}
		row, err := b.Store.Jobs.Job(b.ctx, key)
		b.checkError(err)
		if row.Attempts != attempts || row.Staged != (staged != "") || row.Through != j.Through || row.Version != j.Version {
			b.Errorf("the row of job %+v is %+v, want attempt %d", j, row, attempts)
		}
		return src
	}
	first := open(job, 1, "")
	b.checkError(b.Store.Jobs.StageJob(b.ctx, l, job, []byte("text"), sessions.Spending{}))
	b.Expire(b.T, replicaA)
	b.sendBeat(replicaB)
	l = b.acquireLease(replicaB)
	if again := open(job, 2, "text"); again.Hash != first.Hash {
		b.Errorf("the same events have the hashes %s and %s", first.Hash, again.Hash)
	}
	job.Version = "v2"
	open(job, 3, "")
	b.checkError(b.Store.Jobs.StageJob(b.ctx, l, job, []byte("new text"), sessions.Spending{}))
	open(sessions.Job{Through: 2, Version: "v2"}, 1, "")
	open(job, 1, "")
}

// The cost of a draft is charged with its staging, not again with its compaction.
func testStagedCost(b *suite) {
	l := b.leaseWithMessages(4)
	b.runTurn(l, 4)
	job := sessions.Job{Through: 3, Version: "v1"}
	paid := sessions.Spending{Kind: sessions.SpentSummary, Usage: sessions.Usage{Prompt: 30, Cached: 20, Completion: 4}, Cost: 0.5}
	stage := func() string {
		b.Helper()
		src, err := b.Store.Jobs.OpenJob(b.ctx, l, job)
		b.checkError(err)
		b.checkError(b.Store.Jobs.StageJob(b.ctx, l, job, []byte("text"), paid))
		return src.Hash
	}
	stage()
	b.wantError(b.Store.Jobs.StageJob(b.ctx, l, sessions.Job{Through: 4}, []byte("text"), paid), sessions.ErrConflict, "staging what was not opened")
	b.eraseEvent(1)
	_, err := b.Store.Jobs.Job(b.ctx, key)
	b.wantError(err, sessions.ErrNotFound, "reading a job after an erasure")
	l = b.acquireLease(replicaA)
	c := newCompaction(0, 3)
	c.Source, c.Log.Usage, c.Log.Cost = stage(), paid.Usage, paid.Cost
	b.compactSession(l, c)
	twice := sessions.Spending{Kind: paid.Kind, Usage: paid.Usage.Add(paid.Usage), Cost: 2 * paid.Cost}
	spent, err := b.Store.Ledger.Spent(b.ctx, key, time.Now())
	b.checkError(err)
	if !slices.Equal(spent, []sessions.Spending{twice}) {
		b.Errorf("spent today: %+v, want %+v", spent, twice)
	}
	if s := b.beginTurn(l, 0).Session; s.SpentToday != 2*34 || s.Usage != twice.Usage {
		b.Errorf("upkeep took %d tokens today and everything %+v, want %d and %+v", s.SpentToday, s.Usage, 2*34, twice.Usage)
	}
	log, err := b.Store.Compactions.Compactions(b.ctx, key, 1)
	b.checkError(err)
	if log[0].Usage != paid.Usage || log[0].Cost != paid.Cost {
		b.Errorf("the log has %+v and %v, want the cost of the draft", log[0].Usage, log[0].Cost)
	}
}

// P50: events that changed since planning are not compacted.
func testJobEdited(b *suite) {
	l := b.leaseWithMessages(4)
	b.runTurn(l, 4)
	job := sessions.Job{Through: 3}
	src, err := b.Store.Jobs.OpenJob(b.ctx, l, job)
	b.checkError(err)
	b.checkError(b.Store.Jobs.StageJob(b.ctx, l, job, []byte("text"), sessions.Spending{}))
	b.Edit(b.T, key, 5, "edited behind the range")
	b.Edit(b.T, key, 2, "[erased]")
	c := newCompaction(0, 3)
	c.Source = src.Hash
	_, err = b.Store.Compactions.Compact(b.ctx, l, c)
	b.wantError(err, sessions.ErrConflict, "compacting what was edited since")
	if v := b.beginTurn(l, 0); v.Session.CompactedSeq != 0 || len(v.Summaries) != 0 || len(v.Tail) != 5 {
		b.Errorf("the refused compaction left %+v", v.Session)
	}
	again, err := b.Store.Jobs.OpenJob(b.ctx, l, job)
	b.checkError(err)
	if again.Staged != nil || again.Hash == src.Hash || again.Events[1].Content != "[erased]" {
		b.Errorf("after the edit the job finds %q staged and has %q", again.Staged, eventContents(again.Events))
	}
	b.Edit(b.T, key, 5, "edited behind the range again")
	c.Source = again.Hash
	b.compactSession(l, c)
}

// P52: of two workers at one range the one that lost the lease writes nothing.
func testCompactRivals(b *suite) {
	l := b.leaseWithMessages(4)
	b.runTurn(l, 4)
	src, err := b.Store.Jobs.OpenJob(b.ctx, l, sessions.Job{Through: 3})
	b.checkError(err)
	b.Expire(b.T, replicaA)
	b.sendBeat(replicaB)
	next := b.acquireLease(replicaB)
	c := newCompaction(0, 3)
	c.Source = src.Hash
	other := c
	other.Summaries = []sessions.NewSummary{{StartSeq: 1, EndSeq: 3, Text: "summary of B", Tokens: 1}}
	_, err = b.Other.Jobs.OpenJob(b.ctx, next, sessions.Job{Through: 3})
	b.checkError(err)
	var lost, won error
	var wg sync.WaitGroup
	wg.Go(func() { _, lost = b.Store.Compactions.Compact(b.ctx, l, c) })
	wg.Go(func() { _, won = b.Other.Compactions.Compact(b.ctx, next, other) })
	wg.Wait()
	b.wantError(lost, sessions.ErrLeaseLost, "compacting after the lease was lost")
	b.checkError(won)
	v := b.beginTurn(next, 0)
	rows, err := b.Store.Compactions.Compactions(b.ctx, key, 10)
	b.checkError(err)
	if len(v.Summaries) != 1 || v.Summaries[0].Text != "summary of B" || v.Session.CompactionCount != 1 || len(rows) != 1 {
		b.Errorf("the view has %+v after %d compactions, %d in the log; want that of the new owner alone",
			v.Summaries, v.Session.CompactionCount, len(rows))
	}
}

// P49: many at once, one of them commits.
func testCompactRace(b *suite) {
	l := b.leaseWithMessages(4)
	b.runTurn(l, 4)
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		store := b.Store
		if i%2 == 1 {
			store = b.Other
		}
		wg.Go(func() { _, errs[i] = store.Compactions.Compact(b.ctx, l, newCompaction(0, int64(1+i%4))) })
	}
	wg.Wait()
	done := 0
	for _, err := range errs {
		switch {
		case err == nil:
			done++
		case !errors.Is(err, sessions.ErrConflict):
			b.Errorf("one of many compactions gave %v", err)
		}
	}
	v := b.beginTurn(l, 0)
	if done != 1 || len(v.Summaries) != 1 || v.Session.CompactionCount != 1 || v.Summaries[0].EndSeq != v.Session.CompactedSeq {
		b.Errorf("%d compactions at once committed: the view has %+v, cursor %d", done, v.Summaries, v.Session.CompactedSeq)
	}
}

// askApprovals commits a turn of the waiting messages whose calls wait, and returns its first message.
func (b *suite) askApprovals(l sessions.Lease, wait time.Duration, ids ...int64) (event int64) {
	b.Helper()
	v := b.beginTurn(l, 10)
	t := newAnswer(v)
	for _, id := range ids {
		t.Waits = append(t.Waits, sessions.Approval{
			ID: id, EventID: t.Taken[0], Tool: fmt.Sprint("x__", id), Arguments: `{"n":1}`, AskedBy: "staff-1", Wait: wait,
			Webhook: "https://example.com/hook", WebhookExpires: time.Now().Add(time.Hour).UTC().Truncate(time.Second),
		})
	}
	b.commitTurn(l, t)
	return t.Taken[0]
}

// namesOf are the numbers and states of approvals.
func namesOf(list []sessions.FoundApproval) (names string) {
	for _, f := range list {
		names += fmt.Sprintf("%d %s asked %v by %s, decided by %q %q; ", f.ID, f.State, f.Asked, f.Asker, f.DecidedBy, f.Decider)
	}
	return names
}

func testApprovalDecided(b *suite) {
	l := b.leaseWithMessages(1)
	turn := b.askApprovals(l, time.Hour, 1, 2)
	b.acceptMessage(replicaA, 2)
	second := b.askApprovals(l, time.Hour, 3)
	waiting, last, err := b.Store.Approvals.WaitingApprovals(b.ctx, key)
	b.checkError(err)
	if len(waiting) != 3 || last != 3 || waiting[0].ExpiresAt.Sub(waiting[0].CreatedAt).Round(time.Second) != time.Hour || waiting[2].EventID != second {
		b.Errorf("%+v wait, the last number is %d", waiting, last)
	}
	find := func(q sessions.ApprovalQuery, want string) {
		b.Helper()
		found, err := b.Other.Approvals.FindApprovals(b.ctx, key, q)
		b.checkError(err)
		if got := namesOf(found); got != want {
			b.Errorf("%+v finds %s, want %s", q, got, want)
		}
	}
	find(sessions.ApprovalQuery{Turn: turn, Person: "staff-1"}, `1 waiting asked true by 张三, decided by "" ""; 2 waiting asked true by 张三, decided by "" ""; `)
	find(sessions.ApprovalQuery{ID: 3, Person: "staff-2"}, `3 waiting asked false by 张三, decided by "" ""; `)
	find(sessions.ApprovalQuery{ID: 4, Person: "staff-1"}, "")

	said := b.acceptMessage(replicaA, 3)
	decide := func(ids []int64, state sessions.ApprovalState) int {
		b.Helper()
		done, err := b.Store.Approvals.DecideApprovals(b.ctx, l, sessions.Decision{IDs: ids, State: state, By: "staff-1", Event: said.EventID})
		b.checkError(err)
		return len(done)
	}
	if n := decide([]int64{1, 2}, sessions.ApprovalApproved); n != 2 {
		b.Errorf("%d were approved, want 2", n)
	}
	if n := decide([]int64{1, 3}, sessions.ApprovalRejected); n != 1 {
		b.Errorf("%d were rejected, want the one that waited", n)
	}
	find(sessions.ApprovalQuery{ID: 1, Person: "staff-1"}, `1 approved asked true by 张三, decided by "staff-1" "张三"; `)
	find(sessions.ApprovalQuery{}, "")
	if found, err := b.Store.Approvals.FindApprovals(b.ctx, key, sessions.ApprovalQuery{Event: said.EventID}); err != nil || len(found) != 3 {
		b.Errorf("the message decided on %d: %v", len(found), err)
	}
	if v := b.beginTurn(l, 10); len(v.Pending) != 1 || v.Pending[0].Message.Outcome != sessions.Decided {
		b.Error("the message of the decision does not say that it decided")
	}
	if _, last, err := b.Store.Approvals.WaitingApprovals(b.ctx, key); err != nil || last != 3 {
		b.Errorf("the last number is %d: %v", last, err)
	}

	late := l
	late.Term--
	_, err = b.Store.Approvals.DecideApprovals(b.ctx, late, sessions.Decision{IDs: []int64{3}, State: sessions.ApprovalApproved, Event: said.EventID})
	b.wantError(err, sessions.ErrLeaseLost, "decision under an old term")
	waits := newAnswer(b.beginTurn(l, 10))
	waits.Waits = []sessions.Approval{{ID: 9, EventID: said.EventID, Tool: "x__9", Wait: time.Hour}}
	if _, err := b.Store.Turns.Commit(b.ctx, late, waits); err == nil {
		b.Error("a turn was committed under an old term")
	}
	if _, last, err := b.Store.Approvals.WaitingApprovals(b.ctx, key); err != nil || last != 3 {
		b.Errorf("a refused commit stored call %d: %v", last, err)
	}
}

func testApprovalExpires(b *suite) {
	l := b.leaseWithMessages(1)
	b.askApprovals(l, time.Nanosecond, 1, 2)
	b.acceptMessage(replicaA, 2)
	b.askApprovals(l, time.Hour, 3)
	due := b.awaitDue(2)
	if n, err := b.Store.Approvals.CountApprovals(b.ctx); err != nil || n != 3 {
		b.Errorf("%d wait, want 3: %v", n, err)
	}
	if next, err := b.Other.Approvals.DueApprovals(b.ctx, due[0], 10); err != nil || len(next) != 1 || next[0].ID != due[1].ID {
		b.Errorf("behind the first one come %+v: %v", next, err)
	}
	if first, err := b.Other.Approvals.DueApprovals(b.ctx, sessions.Approval{}, 1); err != nil || len(first) != 1 || first[0].ID != due[0].ID {
		b.Errorf("the first one is %+v: %v", first, err)
	}
	if due[0].Webhook == "" || due[0].WebhookExpires.IsZero() {
		b.Errorf("the webhook of the question is lost: %+v", due[0])
	}
	expire := func(a sessions.Approval) (sessions.Accepted, error) {
		return b.Store.Approvals.ExpireApproval(b.ctx, replicaA, a, func(asked sessions.Message) sessions.Message {
			asked.ID, asked.Text = "expired-1", "asked by "+string(asked.SenderID)
			return asked
		})
	}
	done, err := expire(due[0])
	b.checkError(err)
	if !done.New || done.EventID == 0 {
		b.Errorf("no message was stored: %+v", done)
	}
	_, err = expire(due[0])
	b.wantError(err, sessions.ErrConflict, "the second end of a wait")
	_, err = expire(sessions.Approval{Key: key, ID: 3})
	b.wantError(err, sessions.ErrConflict, "the end of a wait that goes on")
	if n, err := b.Store.Approvals.DecideApprovals(b.ctx, l, sessions.Decision{IDs: []int64{1, 2}, State: sessions.ApprovalApproved, By: "staff-1", Event: done.EventID}); err != nil || len(n) != 0 {
		b.Errorf("%d overdue calls were decided: %v", len(n), err)
	}
	if v := b.beginTurn(l, 10); len(v.Pending) != 1 || v.Pending[0].Content != "asked by staff-1" {
		b.Errorf("%d messages wait", len(v.Pending))
	}
}

// awaitDue returns the due calls once they are n.
func (b *suite) awaitDue(n int) []sessions.Approval {
	b.Helper()
	for range 1000 {
		due, err := b.Store.Approvals.DueApprovals(b.ctx, sessions.Approval{}, 10)
		b.checkError(err)
		if len(due) == n {
			return due
		}
	}
	b.Fatalf("not %d calls are due", n)
	return nil
}
