package sessionstest

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"ebb/sessions"
)

func testBeginOrder(b *suite) {
	l := b.leaseWithMessages(5)
	if v := b.beginTurn(l, 0); len(v.Pending) != 0 {
		b.Errorf("with limit 0 there are %d pending messages, want none", len(v.Pending))
	}
	v := b.beginTurn(l, 3)
	if got := eventContents(v.Pending); got != "0:user:问题 1 0:user:问题 2 0:user:问题 3 " {
		b.Errorf("a turn of three sees %q", got)
	}
	for _, e := range v.Pending {
		if e.Attempts != 0 || e.State != sessions.Pending {
			b.Errorf("message %s has %d attempts and is %s, want 0 and pending", e.MsgID, e.Attempts, e.State)
		}
	}
	b.commitTurn(l, newAnswer(v))
	v = b.beginTurn(l, 3)
	if got := eventContents(v.Pending); got != "0:user:问题 4 0:user:问题 5 " {
		b.Errorf("the next turn sees %q", got)
	}
	if got := eventContents(v.Tail); got != "1:user:问题 1 2:user:问题 2 3:user:问题 3 4:assistant:答复 " {
		b.Errorf("its tail is %q", got)
	}
}

func testBeginSent(b *suite) {
	b.sendBeat(replicaA)
	now := time.Now().Truncate(time.Millisecond)
	for i, m := range []struct{ sent, received time.Time }{
		{sent: now.Add(2 * time.Second)},
		{sent: now.Add(time.Second)},
		{sent: now.Add(time.Second)}, // at the same time: by arrival
		{sent: now.Add(time.Second - time.Microsecond)},
		{},                            // without a time: now
		{sent: now.AddDate(-1, 0, 0)}, // can't be true
		{sent: now.AddDate(1, 0, 0), received: now.Add(-time.Second)},
	} {
		msg := newMessage(i + 1)
		msg.SentAt, msg.ReceivedAt = m.sent, m.received
		_, err := b.Store.Inbox.Accept(b.ctx, replicaA, key, msg)
		b.checkError(err)
	}
	l := b.acquireLease(replicaA)
	v := b.beginTurn(l, 6)
	if got := eventContents(v.Pending); got != "0:user:问题 7 0:user:问题 5 0:user:问题 6 0:user:问题 4 0:user:问题 2 0:user:问题 3 " {
		b.Fatalf("a turn of six sees %q", got)
	}
	// A late message sent before those stands behind them: they are in a turn.
	late := newMessage(8)
	late.SentAt = now.Add(-time.Minute)
	_, err := b.Store.Inbox.Accept(b.ctx, replicaA, key, late)
	b.checkError(err)
	if again := b.beginTurn(l, 6); eventContents(again.Pending) != eventContents(v.Pending) {
		b.Errorf("the turn that is begun again sees %q", eventContents(again.Pending))
	}
	b.commitTurn(l, newAnswer(v))
	if v = b.beginTurn(l, 6); eventContents(v.Pending) != "0:user:问题 8 0:user:问题 1 " {
		b.Errorf("the next turn sees %q", eventContents(v.Pending))
	}
}

func testCommitPlaces(b *suite) {
	l := b.leaseWithMessages(2)
	v := b.beginTurn(l, 10)
	b.acceptMessage(replicaA, 3) // arrives while the turn runs
	t := newAnswer(v)
	slices.Reverse(t.Taken)
	t.TakenTokens = []int{7, 8}
	t.Events = []sessions.Event{
		{Role: sessions.RoleAssistant, ToolCalls: []sessions.ToolCall{{ID: "c1", Name: "search", Arguments: `{"q":"x"}`}}, Tokens: 3},
		{Role: sessions.RoleTool, ToolCallID: "c1", ToolName: "search", Content: "found", Tokens: 4},
		{Role: sessions.RoleAssistant, Content: "done", Tokens: 5},
	}
	c := b.commitTurn(l, t)
	if c.LastSeq != 5 || len(c.Replies) != 1 || c.Replies[0].Maybe || c.Replies[0].Reply.Text != "答复" {
		b.Errorf("the commit gave %+v, want place 5 and its reply", c)
	}
	v = b.beginTurn(l, 10)
	want := "1:user:问题 2 2:user:问题 1 3:assistant: 4:tool:found 5:assistant:done "
	if eventContents(v.Tail) != want {
		b.Errorf("the view is %q, want %q", eventContents(v.Tail), want)
	}
	var tokens []int
	if w := v.Pending; len(w) != 1 || w[0].Message.Webhook == "" || w[0].Message.WebhookExpires.IsZero() {
		b.Errorf("waiting are %+v, want one message with its webhook", w)
	}
	b.webhooksOf(sessions.Pending)
	for _, e := range v.Tail {
		tokens = append(tokens, e.Tokens)
		if e.State != sessions.Done || e.Archived {
			b.Errorf("event %d is %s, archived %t", e.Seq, e.State, e.Archived)
		}
	}
	if !slices.Equal(tokens, []int{7, 8, 3, 4, 5}) {
		b.Errorf("tokens are %v", tokens)
	}
	call, result := v.Tail[2], v.Tail[3]
	if len(call.ToolCalls) != 1 || call.ToolCalls[0].Name != "search" || result.ToolCallID != "c1" || result.ToolName != "search" {
		b.Errorf("the tool exchange was stored as %+v and %+v", call, result)
	}
	if len(v.Pending) != 1 || v.Pending[0].MsgID != "msg-3" {
		b.Errorf("pending is %q, want the message that came during the turn", eventContents(v.Pending))
	}
	b.commitTurn(l, newAnswer(v))
	if v = b.beginTurn(l, 10); v.Tail[5].Content != "问题 3" || v.Session.LastSeq != 7 {
		b.Errorf("the message that came during the turn stands at %q, want after its answer", eventContents(v.Tail))
	}
}

func testCommitOutcome(b *suite) {
	l := b.leaseWithMessages(2)
	first := newAnswer(b.beginTurn(l, 1))
	first.Outcome = sessions.Previewed
	b.commitTurn(l, first)
	b.runTurn(l, 1)
	tail := b.beginTurn(l, 1).Tail
	if len(tail) != 4 || tail[0].Message.Outcome != sessions.Previewed || tail[2].Message.Outcome != "" || tail[2].Message.ID != "msg-2" {
		b.Errorf("the messages after two turns: %+v, %+v", tail[0].Message, tail[2].Message)
	}
}

func testCommitStops(b *suite) {
	for n := 1; n <= 4; n++ {
		m := newMessage(n)
		m.SenderID = sessions.UserID(fmt.Sprint("person ", n))
		_, err := b.Store.Inbox.Accept(b.ctx, replicaA, key, m)
		b.checkError(err)
	}
	l := b.leaseWithMessages(0)
	v := b.beginTurn(l, 2)
	card := sessions.Card{Kind: sessions.ReplyCard, Track: "shared", EventID: v.Pending[0].ID}
	_, _, err := b.Store.Cards.OpenCard(b.ctx, l, card, 0)
	b.checkError(err)
	waiting, err := b.Store.Inbox.Pending(b.ctx, key, 10)
	b.checkError(err)
	t := newPartialAnswer(v)
	t.CardTo, t.Stops = t.Left[0], []sessions.Event{{ID: waiting[1].ID, Tokens: 2}, {ID: waiting[0].ID, Tokens: 3}}
	b.commitTurn(l, t)
	_, err = b.Store.Turns.Commit(b.ctx, l, sessions.TurnResult{Stops: t.Stops[:1]})
	b.wantError(err, sessions.ErrConflict, "a turn that was stopped by a command without a place")

	again := b.beginTurn(l, 10)
	if got := eventContents(again.Tail); got != "1:user:问题 1 2:assistant:答复 3:user:问题 3 4:user:问题 4 " || again.Session.LastSeq != 4 {
		b.Errorf("the log has %q as far as %d", got, again.Session.LastSeq)
	}
	for i, outcome := range []sessions.Outcome{"", "", sessions.StopDone, sessions.StopDone} {
		if e := again.Tail[i]; e.Message != nil && (e.Message.Outcome != outcome || e.Message.Webhook != "") {
			b.Errorf("event %d is %+v", e.Seq, e.Message)
		} else if e.Message != nil && (e.Message.Next == t.CardTo) != (outcome == sessions.StopDone) {
			b.Errorf("the message that goes on behind event %d is %d, want %d", e.Seq, e.Message.Next, t.CardTo)
		}
	}
	if len(again.Pending) != 1 || again.Pending[0].ID != t.Left[0] || again.Pending[0].Attempts != 0 {
		b.Errorf("waiting are %+v, want the other's message", again.Pending)
	}
	found, err := b.Store.Cards.OpenCardOf(b.ctx, key, []string{"another"}, []int64{t.Left[0]})
	if err != nil || found.Track != card.Track || found.EventID != t.Left[0] {
		b.Errorf("the other's card is %+v, %v", found, err)
	}
	for n, asked := range map[int]bool{1: false, 2: true, 3: false} {
		c, err := b.Store.Cards.ClickedCard(b.ctx, card.Track, sessions.UserID(fmt.Sprint("person ", n)))
		if err != nil || c.Asked != asked || !c.Running || asked && c.Shared {
			b.Errorf("a click of person %d: %+v, %v", n, c, err)
		}
	}
	list, err := b.Store.Cards.AbandonedCards(b.ctx, sessions.ReplyCard, 0, 10)
	if err != nil || len(list) != 0 {
		b.Errorf("abandoned are %+v, %v", list, err)
	}
}

func testCommitWhole(b *suite) {
	l := b.leaseWithMessages(2)
	v := b.beginTurn(l, 10)
	t := newAnswer(v)
	b.commitTurn(l, t)
	before := eventContents(b.Log(b.T, key))
	_, err := b.Store.Turns.Commit(b.ctx, l, t)
	b.wantError(err, sessions.ErrConflict, "committing a turn twice")
	b.acceptMessage(replicaA, 3)
	mixed := newAnswer(b.beginTurn(l, 10))
	mixed.Taken, mixed.TakenTokens = append(mixed.Taken, t.Taken[0]), append(mixed.TakenTokens, 1)
	_, err = b.Store.Turns.Commit(b.ctx, l, mixed)
	b.wantError(err, sessions.ErrConflict, "taking a message that is answered")
	dead := sessions.TurnResult{Dead: t.Taken[:1], Reply: t.Reply}
	_, err = b.Store.Turns.Commit(b.ctx, l, dead)
	b.wantError(err, sessions.ErrConflict, "setting an answered message aside")
	if got := eventContents(b.Log(b.T, key)); got != before+"0:user:问题 3 " {
		b.Errorf("refused commits changed the log from %q to %q", before, got)
	}
	unsent, err := b.Store.Outbox.Unsent(b.ctx, l)
	b.checkError(err)
	if len(unsent) != 1 {
		b.Errorf("there are %d replies, want that of the commit that worked", len(unsent))
	}
	if s := b.beginTurn(l, 0).Session; s.LastSeq != 3 {
		b.Errorf("the last place is %d, want 3", s.LastSeq)
	}
}

func (b *suite) webhooksOf(state sessions.State) {
	b.Helper()
	for _, e := range b.Log(b.T, key) {
		if m := e.Message; m != nil && e.State != state && (m.Webhook != "" || !m.WebhookExpires.IsZero() || m.Text == "") {
			b.Errorf("message %d is %s and kept as %+v, want it without its webhook", e.ID, e.State, m)
		}
	}
}

func testCommitDead(b *suite) {
	l := b.leaseWithMessages(3)
	v := b.beginTurn(l, 10)
	t := newAnswer(v)
	t.Taken, t.TakenTokens, t.Dead, t.Left = t.Taken[1:2], t.TakenTokens[1:2], t.Taken[:1], t.Taken[2:]
	b.commitTurn(l, t)
	b.webhooksOf(sessions.Pending)
	v = b.beginTurn(l, 10)
	if eventContents(v.Tail) != "1:user:问题 2 2:assistant:答复 " || eventContents(v.Pending) != "0:user:问题 3 " {
		b.Errorf("after setting a message aside the view is %q and pending %q", eventContents(v.Tail), eventContents(v.Pending))
	}
	log := b.Log(b.T, key)
	if log[0].State != sessions.Dead || log[0].Seq != 0 {
		b.Errorf("the message set aside is %s at place %d, want dead without one", log[0].State, log[0].Seq)
	}
	if again := b.acceptMessage(replicaA, 1); again.New {
		b.Error("a redelivered dead letter came to life")
	}
}

func testCommitCounters(b *suite) {
	l := b.leaseWithMessages(1)
	t := newAnswer(b.beginTurn(l, 10))
	t.TotalTokens, t.ObservedTokens, t.Calibration = 1234, 1200, 1.25
	b.commitTurn(l, t)
	s := b.beginTurn(l, 0).Session
	if s.TotalTokens != 1234 || s.ObservedTokens != 1200 || s.ObservedSeq != 1 || s.CalibrationFactor != 1.25 {
		b.Errorf("counters are total %d, observed %d up to %d, factor %v; want 1234, 1200 up to 1 (the answer was not in the prompt), 1.25",
			s.TotalTokens, s.ObservedTokens, s.ObservedSeq, s.CalibrationFactor)
	}
	b.acceptMessage(replicaA, 2)
	t = newAnswer(b.beginTurn(l, 10))
	t.TotalTokens = 1300
	b.commitTurn(l, t)
	s = b.beginTurn(l, 0).Session
	if s.TotalTokens != 1300 || s.ObservedTokens != 1200 || s.ObservedSeq != 1 || s.CalibrationFactor != 1.25 {
		b.Errorf("a silent provider changed the counters to %+v", s)
	}
}

// A session's day has each kind of work with its tokens and cost. Answers are no upkeep, and only committed turns
// count.
func testSpent(b *suite) {
	l := b.leaseWithMessages(3)
	u := sessions.Usage{Prompt: 30, Cached: 20, Completion: 4}
	want := func(upkeep int, usage sessions.Usage, want ...sessions.Spending) {
		b.Helper()
		got, err := b.Store.Ledger.Spent(b.ctx, l.Key, time.Now())
		b.checkError(err)
		if !slices.Equal(got, want) {
			b.Errorf("spent today: %+v, want %+v", got, want)
		}
		if s := b.beginTurn(l, 0).Session; s.SpentToday != upkeep || s.Usage != usage {
			b.Errorf("upkeep took %d tokens today and everything %+v, want %d and %+v", s.SpentToday, s.Usage, upkeep, usage)
		}
	}
	want(0, sessions.Usage{})
	t := newAnswer(b.beginTurn(l, 1))
	t.Spent.Usage, t.Spent.Cost = u, 0.5
	b.commitTurn(l, t)
	if _, err := b.Store.Turns.Commit(b.ctx, l, t); !errors.Is(err, sessions.ErrConflict) {
		b.Errorf("to commit a turn twice gives %v", err)
	}
	stale := l
	stale.Term--
	if _, err := b.Store.Turns.Commit(b.ctx, stale, withBlob(b.beginTurn(l, 1), t)); !errors.Is(err, sessions.ErrLeaseLost) {
		b.Errorf("a commit without the lease gives %v", err)
	}
	turn := sessions.Spending{Kind: sessions.SpentTurn, Usage: u, Cost: 0.5}
	want(0, u, turn)
	t = withBlob(b.beginTurn(l, 1), t)
	t.Spent.Usage, t.Spent.Cost = sessions.Usage{}, 0 // no model was asked
	b.commitTurn(l, t)
	want(0, u, turn)
	b.checkError(b.Store.Ledger.Charge(b.ctx, l.Key, turn))
	b.checkError(b.Store.Ledger.Charge(b.ctx, l.Key, sessions.Spending{Kind: sessions.SpentDigest, Usage: u, Cost: 0.25}))
	b.checkError(b.Store.Compactions.Log(b.ctx, l, sessions.LogEntry{Outcome: "failed", Usage: u, Cost: 2}))
	b.checkError(b.Store.Ledger.Charge(b.ctx, "r/missing", turn))
	probe := sessions.Spending{Kind: sessions.SpentProbe, Usage: u, Cost: 0.125}
	b.checkError(b.Store.Ledger.Charge(b.ctx, l.Key, probe))
	turn.Usage, turn.Cost = u.Add(u), 1
	want(68, u.Add(u).Add(u).Add(u).Add(u), sessions.Spending{Kind: sessions.SpentDigest, Usage: u, Cost: 0.25}, probe,
		sessions.Spending{Kind: sessions.SpentSummary, Usage: u, Cost: 2}, turn)
	if got, err := b.Store.Ledger.Spent(b.ctx, l.Key, time.Now().AddDate(0, 0, -31)); err != nil || len(got) != 4 {
		b.Errorf("since a month: %+v, %v", got, err)
	}
	if got, err := b.Store.Ledger.Spent(b.ctx, l.Key, time.Now().AddDate(0, 0, 1)); err != nil || len(got) != 0 {
		b.Errorf("since tomorrow: %+v, %v", got, err)
	}
	if got, err := b.Store.Ledger.Spent(b.ctx, "r/missing", time.Now()); err != nil || len(got) != 0 {
		b.Errorf("a session that does not exist spent %+v, %v", got, err)
	}
}

// Providers may report any figure. A bad one must not lose a turn or a compaction.
func testAbsurdFigures(b *suite) {
	const absurd = 1 << 40
	l := b.leaseWithMessages(4)
	t := newAnswer(b.beginTurn(l, 1))
	t.TotalTokens, t.ObservedTokens, t.Calibration, t.Appended = absurd, absurd, math.Inf(1), absurd
	t.TakenTokens[0], t.Events[0].Tokens = absurd, absurd
	t.Spent.Usage = sessions.Usage{Prompt: math.MaxInt, Cached: math.MaxInt, Completion: math.MaxInt}
	b.commitTurn(l, t)
	b.commitTurn(l, withBlob(b.beginTurn(l, 1), t))
	s := b.beginTurn(l, 0).Session
	if s.TotalTokens < math.MaxInt32 || s.ObservedTokens < math.MaxInt32 || s.CalibrationFactor != 1 || s.LastSeq != 4 {
		b.Errorf("the session is %+v, want both turns, figures as large as they can be kept, and the factor as it was", s)
	}
	t = withBlob(b.beginTurn(l, 1), t)
	b.compactSession(l, sessions.Compaction{
		Through: 2, Summaries: []sessions.NewSummary{{StartSeq: 1, EndSeq: 2, Text: "s", Tokens: absurd}}, Freed: -absurd, RearmTokens: absurd,
		Shown: []sessions.Shown{{Seq: 3, Text: "short", Tokens: -absurd}},
		Log:   sessions.LogEntry{TokensBefore: absurd, TokensAfter: -absurd, Usage: t.Spent.Usage, Cost: math.NaN()},
	})
	b.commitTurn(l, t) // adds to what the compaction left
	b.checkError(b.Store.Compactions.Log(b.ctx, l, sessions.LogEntry{Outcome: "failed", TokensBefore: absurd, Failures: absurd, Rearm: absurd, Usage: t.Spent.Usage}))
	t = withBlob(b.beginTurn(l, 1), t)
	t.TotalTokens, t.ObservedTokens, t.Calibration, t.ViewVersion = -5, -5, math.NaN(), 1
	t.TakenTokens[0], t.Events[0].Tokens, t.Spent.Usage = -5, -5, sessions.Usage{Prompt: -5}
	b.commitTurn(l, t)
	if s = b.beginTurn(l, 0).Session; s.TotalTokens != 0 || s.CalibrationFactor != 1 || s.LastSeq != 8 {
		b.Errorf("after figures below nothing the session is %+v, want a total of 0 and the factor as it was", s)
	}
}

func withBlob(v sessions.View, t sessions.TurnResult) sessions.TurnResult {
	t.Taken = []int64{v.Pending[0].ID}
	return t
}

func testToolRuns(b *suite) {
	l := b.leaseWithMessages(2)
	first := b.beginTurn(l, 1).Pending[0].ID
	run := sessions.ToolRun{EventID: first, Call: sessions.ToolCall{ID: "c1", Name: "pay", Arguments: `{"amount":5}`}}
	b.checkError(b.Store.Turns.RecordRun(b.ctx, l, run))
	done := sessions.ToolRun{EventID: first, Call: sessions.ToolCall{ID: "c2", Name: "look", Arguments: `{}`}}
	b.checkError(b.Store.Turns.RecordRun(b.ctx, l, done))
	done.Finished, done.Result = true, "seen"
	b.checkError(b.Store.Turns.RecordRun(b.ctx, l, done))

	b.Expire(b.T, replicaA) // it died
	b.sendBeat(replicaB)
	l = b.acquireLease(replicaB)
	v := b.beginAlone(l, sessions.Alone{}, 1)
	if want := []sessions.ToolRun{run, done}; !slices.Equal(v.Runs, want) {
		b.Errorf("the next attempt knows of runs %+v, want %+v", v.Runs, want)
	}
	b.commitTurn(l, newAnswer(v))
	if v = b.beginTurn(l, 10); len(v.Runs) != 0 {
		b.Errorf("the turn after the commit knows of runs %+v, want none", v.Runs)
	}
}

func testFencing(b *suite) {
	l := b.leaseWithMessages(2)
	t := newAnswer(b.beginTurn(l, 1))
	reply := b.commitTurn(l, t).Replies[0]
	pending := b.beginTurn(l, 1).Pending[0].ID
	before := eventContents(b.Log(b.T, key))
	for name, stale := range map[string]sessions.Lease{
		"an old term":     {Key: key, Owner: replicaA, Term: l.Term - 1},
		"a term to come":  {Key: key, Owner: replicaA, Term: l.Term + 1},
		"another owner":   {Key: key, Owner: replicaB, Term: l.Term},
		"no owner":        {Key: key, Term: l.Term},
		"another session": {Key: "robot/elsewhere", Owner: replicaA, Term: l.Term},
	} {
		_, err := b.Store.Turns.Begin(b.ctx, stale, 10)
		b.wantError(err, sessions.ErrLeaseLost, "beginning with "+name)
		_, err = b.Store.Turns.BeginAlone(b.ctx, stale, 10, sessions.Alone{})
		b.wantError(err, sessions.ErrLeaseLost, "beginning a suspect with "+name)
		_, err = b.Store.Turns.Commit(b.ctx, stale, sessions.TurnResult{Taken: []int64{pending}, TakenTokens: []int{1}, Reply: t.Reply})
		b.wantError(err, sessions.ErrLeaseLost, "committing with "+name)
		_, err = b.Store.Turns.Commit(b.ctx, stale, sessions.TurnResult{})
		b.wantError(err, sessions.ErrLeaseLost, "committing nothing with "+name)
		b.wantError(b.Store.Turns.RecordRun(b.ctx, stale, sessions.ToolRun{EventID: pending, Call: sessions.ToolCall{ID: "x"}}),
			sessions.ErrLeaseLost, "recording a run with "+name)
		_, err = b.Store.Compactions.Compact(b.ctx, stale, newCompaction(0, 2))
		b.wantError(err, sessions.ErrLeaseLost, "compacting with "+name)
		_, err = b.Store.Jobs.OpenJob(b.ctx, stale, sessions.Job{Through: 2})
		b.wantError(err, sessions.ErrLeaseLost, "opening a job with "+name)
		b.wantError(b.Store.Jobs.StageJob(b.ctx, stale, sessions.Job{Through: 2}, []byte("s"), sessions.Spending{}), sessions.ErrLeaseLost, "staging a job with "+name)
		b.wantError(b.Store.Jobs.MarkUpkeep(b.ctx, stale, time.Minute), sessions.ErrLeaseLost, "marking upkeep with "+name)
		_, err = b.Store.Compactions.Undo(b.ctx, stale, 0, 0)
		b.wantError(err, sessions.ErrLeaseLost, "undoing with "+name)
		b.wantError(b.Store.Sessions.Renew(b.ctx, stale), sessions.ErrLeaseLost, "renewing with "+name)
		b.wantError(b.Store.Sessions.Configure(b.ctx, stale, `{"policy":"turns"}`), sessions.ErrLeaseLost, "configuring with "+name)
		b.wantError(b.Store.Compactions.Log(b.ctx, stale, sessions.LogEntry{Outcome: "failed", Failures: 9}),
			sessions.ErrLeaseLost, "logging with "+name)
		_, err = b.Store.Outbox.Claim(b.ctx, stale, sessions.SendAttempt{IDs: []int64{reply.ID}})
		b.wantError(err, sessions.ErrLeaseLost, "claiming a reply with "+name)
		_, err = b.Store.Outbox.Unsent(b.ctx, stale)
		b.wantError(err, sessions.ErrLeaseLost, "listing replies with "+name)
	}
	if got := eventContents(b.Log(b.T, key)); got != before {
		b.Errorf("fenced writes changed the log from %q to %q", before, got)
	}
	v := b.beginTurn(l, 10)
	if len(v.Pending) != 1 || v.Pending[0].Attempts != 0 || len(v.Runs) != 0 || v.Session.CompactFailures != 0 {
		b.Errorf("fenced writes left %d pending, %+v", len(v.Pending), v.Session)
	}
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: reply.ID, Sent: true})) // true for any holder of the lease
}

func testQuoted(b *suite) {
	l := b.leaseWithMessages(1)
	missing := func(why string, q sessions.Quote) {
		b.Helper()
		_, err := b.Store.Turns.Quoted(b.ctx, key, q)
		b.wantError(err, sessions.ErrNotFound, why)
	}
	e, err := b.Store.Turns.Quoted(b.ctx, key, sessions.Quote{ID: "msg-1"})
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
		e, err := b.Store.Turns.Quoted(b.ctx, key, sessions.Quote{FromBot: true, SentAt: at})
		b.checkError(err)
		if e.Content != want || e.Role != sessions.RoleAssistant {
			b.Errorf("%s: %+v", why, e)
		}
	}
	bot("the answer whose reply is being sent", time.Now(), "答复")
	bot("the same, sent late", time.Now().Add(time.Hour), "答复")
	missing("the bot's, without a time", sessions.Quote{FromBot: true})
	missing("the bot's, of another time", sessions.Quote{FromBot: true, SentAt: time.Now().Add(-time.Hour)})
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: first.ID, Sent: true}))
	bot("the answer whose reply was sent", time.Now(), "答复")
	missing("the bot's, sent after that", sessions.Quote{FromBot: true, SentAt: time.Now().Add(time.Hour)})

	missing("a card without a sender at that time: it may be another robot's", sessions.Quote{Card: "key of another robot", SentAt: time.Now()})
	m := newMessage(2)
	m.Quote = &sessions.Quote{ID: "msg-1"}
	a, err := b.Store.Inbox.Accept(b.ctx, replicaA, key, m)
	b.checkError(err)
	quote := sessions.Quote{ID: "msg-1", SenderID: "staff-1", Who: "张三(staff-1)", Shown: "问题 1"}
	content := quote.Lead("") + m.Text
	other := l
	other.Term--
	b.wantError(b.Store.Turns.Requote(b.ctx, other, a.EventID, "x", quote), sessions.ErrLeaseLost, "quoting under another lease")
	b.checkError(b.Store.Turns.Requote(b.ctx, l, a.EventID, content, quote))
	v := b.beginTurn(l, 5)
	if len(v.Pending) != 1 || v.Pending[0].Content != "[引用 张三(staff-1): 问题 1]\n问题 2" || !reflect.DeepEqual(*v.Pending[0].Message.Quote, quote) {
		b.Fatalf("what waits: %+v", v.Pending)
	}
	waits := newAnswer(v)
	waits.ReplyWaits = true
	second := b.commitTurn(l, waits).Replies[0]
	bot("not the answer whose reply waits behind it", time.Now(), "答复")
	b.wantError(b.Store.Turns.Requote(b.ctx, l, a.EventID, "x", quote), sessions.ErrLeaseLost, "quoting in a message that was taken")

	// Either of two replies may be meant.
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: second.ID, Sent: true}))
	missing("either of two answers", sessions.Quote{FromBot: true, SentAt: time.Now()})
}
