package sessionstest

import (
	"slices"
	"strings"
	"time"

	"ebb/sessions"
)

func (b *suite) checkCounts(what string, want ...int) {
	b.Helper()
	var got []int
	for _, e := range b.Log(b.T, key) {
		got = append(got, e.Attempts)
	}
	if !slices.Equal(got, want) {
		b.Errorf("%s: the counted attempts are %v, want %v", what, got, want)
	}
}

// suspectMessage begins no turn: its oldest message is a suspect.
func (b *suite) suspectMessage(l sessions.Lease, count, width int) {
	b.Helper()
	if v := b.beginTurn(l, 10); v.Suspect != count || v.Width != width || len(v.Pending) != 0 || v.Session.Key != key {
		b.Errorf("the turn begins with %q, a count of %d and a width of %d, want nothing, %d and %d", eventContents(v.Pending), v.Suspect, v.Width, count, width)
	}
}

func (b *suite) wantSuspects(when string, want int) {
	b.Helper()
	n, err := b.Store.Turns.Suspects(b.ctx)
	if b.checkError(err); n != want {
		b.Errorf("%s %d sessions have suspects, want %d", when, n, want)
	}
}

func (b *suite) beginAlone(l sessions.Lease, a sessions.Alone, want int) sessions.View {
	b.Helper()
	v, err := b.Store.Turns.BeginAlone(b.ctx, l, 10, a)
	b.checkError(err)
	if len(v.Pending) != 1 || v.Pending[0].Attempts != want {
		b.Fatalf("a turn on one message begins with %q and a count of %d, want one with %d", eventContents(v.Pending), v.Suspect, want)
	}
	return v
}

func testBeginBytes(b *suite) {
	b.sendBeat(replicaA)
	var l sessions.Lease
	for i, bytes := range []int{sessions.MaxTurnBytes + 1, sessions.MaxTurnBytes / 2, sessions.MaxTurnBytes / 2, 1, 1} {
		m := newMessage(i + 1)
		m.Text = strings.Repeat("x", bytes)
		a, err := b.Store.Inbox.Accept(b.ctx, replicaA, key, m)
		b.checkError(err)
		l = a.Lease
	}
	for i, want := range []int{1, 2, 2, 0} {
		v := b.beginTurn(l, 4)
		if len(v.Pending) != want || v.More != (i < 2) {
			b.Fatalf("turn %d takes %d messages, and more wait: %t; want %d", i+1, len(v.Pending), v.More, want)
		}
		for _, e := range v.Pending {
			if e.Message.Text != e.Content {
				b.Errorf("the message of event %d has another text than the event", e.ID)
			}
		}
		if want > 0 {
			b.commitTurn(l, newAnswer(v))
		}
	}
}

func (b *suite) killReplica(dead, next sessions.ReplicaID) sessions.Lease {
	b.Helper()
	b.Expire(b.T, dead)
	b.sendBeat(next)
	return b.acquireLease(next)
}

// One death says little: the messages are taken as before. From the second on they are suspects, and only a death at width 1
// counts.
func testAttemptsOfTheDead(b *suite) {
	l := b.leaseWithMessages(3)
	b.beginTurn(l, 2)
	b.beginTurn(l, 2) // its first answer was lost
	l = b.killReplica(replicaA, replicaB)
	b.wantSuspects("after one death", 0)
	b.killReplica(replicaB, replicaA) // it began no turn
	l = b.killReplica(replicaA, replicaB)
	for range 2 {
		if v := b.beginTurn(l, 10); len(v.Pending) != 3 || v.Suspect != 0 {
			b.Errorf("after one death the turn takes %q with a count of %d, want all messages and 0", eventContents(v.Pending), v.Suspect)
		}
	}
	b.checkCounts("after a death and two turns", 1, 1, 0)
	b.Expire(b.T, replicaB)
	b.wantSuspects("before the lease of the dead is taken", 1)
	b.sendBeat(replicaA)
	l = b.acquireLease(replicaA)
	b.wantSuspects("before a turn counted the second death", 1)
	b.suspectMessage(l, 2, 0)
	b.suspectMessage(l, 2, 0)
	b.checkCounts("after a second death and two looks", 2, 2, 1)
	l = b.killReplica(replicaA, replicaB)
	b.suspectMessage(l, 2, 0) // the dead replica only read
	for _, width := range []int{5, 3, 2} {
		b.beginAlone(l, sessions.Alone{Width: width}, 2)
		l = b.killReplica(l.Owner, other(l.Owner))
		b.suspectMessage(l, 2, (width+1)/2)
	}
	first := b.Log(b.T, key)[0].ID
	b.beginAlone(l, sessions.Alone{Width: 1}, 2)
	b.beginAlone(l, sessions.Alone{Event: first, Width: sessions.Joined}, 2) // others came
	l = b.killReplica(l.Owner, other(l.Owner))
	b.suspectMessage(l, 2, sessions.Joined)
	b.checkCounts("after deaths beside others", 2, 2, 1)
	b.beginAlone(l, sessions.Alone{Width: 1}, 2)
	l = b.killReplica(l.Owner, other(l.Owner))
	b.suspectMessage(l, 3, 1)
	b.checkCounts("after a death alone", 3, 2, 1)
	last := b.Log(b.T, key)[2].ID
	b.commitTurn(l, newAnswer(b.beginAlone(l, sessions.Alone{Event: last}, 1)))
	b.commitTurn(l, newAnswer(b.beginAlone(l, sessions.Alone{}, 3)))
	b.suspectMessage(l, 2, 0)
	if v, err := b.Store.Turns.BeginAlone(b.ctx, l, 10, sessions.Alone{Event: last}); err != nil || len(v.Pending) != 0 {
		b.Errorf("a message that is answered is taken alone: %q, %v", eventContents(v.Pending), err)
	}
	b.commitTurn(l, newAnswer(b.beginAlone(l, sessions.Alone{Width: 1}, 2)))
	b.wantSuspects("in the end", 0)
}

func other(r sessions.ReplicaID) sessions.ReplicaID {
	if r == replicaA {
		return replicaB
	}
	return replicaA
}

func testAttemptsOfAccept(b *suite) {
	l := b.leaseWithMessages(1)
	b.beginTurn(l, 10)
	b.Expire(b.T, replicaA)
	b.sendBeat(replicaB)
	l = b.acceptMessage(replicaB, 2).Lease
	if v := b.beginTurn(l, 10); len(v.Pending) != 2 || v.Suspect != 0 {
		b.Errorf("the turn takes %q with a count of %d, want also the message that came after the death", eventContents(v.Pending), v.Suspect)
	}
	b.checkCounts("after a death that a message found", 1, 0)
}

func testAttemptsSpared(b *suite) {
	l := b.leaseWithMessages(3)
	for what, free := range map[string]func(sessions.Lease){
		"a stop": func(l sessions.Lease) {
			_, err := b.Store.Leases.Resign(b.ctx, l.Owner)
			b.checkError(err)
			b.sendBeat(l.Owner)
		},
		"a hand-over": func(l sessions.Lease) { b.checkError(b.Store.Leases.Release(b.ctx, l)) },
		"an abandoned turn": func(l sessions.Lease) {
			b.checkError(b.Store.Turns.Abandon(b.ctx, l, nil))
			b.checkError(b.Store.Turns.Abandon(b.ctx, l, nil))
			b.Expire(b.T, l.Owner)
		},
		"an erasure": func(l sessions.Lease) {
			b.eraseEvent(1)
		},
	} {
		v := b.beginTurn(l, 10)
		if len(v.Pending) == 3 {
			b.commitTurn(l, newPartialAnswer(v))
			v = b.beginTurn(l, 10)
		}
		if len(v.Pending) != 2 {
			b.Fatalf("before %s the turn takes %q, want two messages", what, eventContents(v.Pending))
		}
		free(l)
		next := other(l.Owner)
		if what == "an erasure" { // it leaves the session to its owner
			next = l.Owner
		}
		b.sendBeat(next)
		l = b.acquireLease(next)
		if v = b.beginTurn(l, 10); len(v.Pending) != 2 || v.Suspect != 0 {
			b.Errorf("after %s the turn takes %q with a count of %d, want both messages and 0", what, eventContents(v.Pending), v.Suspect)
		}
	}
}

func testAttemptsOfARest(b *suite) {
	l := b.leaseWithMessages(3)
	b.commitTurn(l, newPartialAnswer(b.beginTurn(l, 10)))
	l = b.killReplica(replicaA, replicaB)
	if v := b.beginTurn(l, 10); len(v.Pending) != 2 || v.Suspect != 0 {
		b.Errorf("after the turn of another message its process died: %q with a count of %d, want both and 0", eventContents(v.Pending), v.Suspect)
	}
}

func testAttemptsBlamed(b *suite) {
	l := b.leaseWithMessages(3)
	v := b.beginTurn(l, 2)
	b.checkError(b.Store.Turns.Abandon(b.ctx, l, []int64{v.Pending[1].ID}))
	b.checkError(b.Store.Turns.Abandon(b.ctx, l, []int64{v.Pending[1].ID}))
	b.checkCounts("after the second message broke a turn", 0, 1, 0)
	if v = b.beginTurn(l, 10); len(v.Pending) != 1 || v.Pending[0].MsgID != "msg-1" {
		b.Errorf("a turn takes %q, want the message before the suspect alone", eventContents(v.Pending))
	}
	b.commitTurn(l, newAnswer(v))
	v = b.beginTurn(l, 10)
	if len(v.Pending) != 1 || v.Pending[0].MsgID != "msg-2" || !v.More {
		b.Errorf("a turn takes %q, want the message that broke one by itself", eventContents(v.Pending))
	}
	b.checkError(b.Store.Turns.Abandon(b.ctx, l, []int64{v.Pending[0].ID}))
	b.checkCounts("after it broke another", 0, 2, 0, 0)
	b.suspectMessage(l, 2, 0)
	v = b.beginAlone(l, sessions.Alone{Width: 1}, 2)
	b.checkError(b.Store.Turns.Abandon(b.ctx, l, []int64{v.Pending[0].ID}))
	b.suspectMessage(l, 3, 1)
}

func testAttemptsOfTheFrozen(b *suite) {
	a := b.leaseWithMessages(2)
	b.beginTurn(a, 10)
	l := b.killReplica(replicaA, replicaB)
	b.beginTurn(l, 1)
	b.checkCounts("after a death", 1, 1)
	b.checkError(b.Store.Turns.Abandon(b.ctx, a, nil)) // it comes back, and finds its lease lost
	b.checkError(b.Store.Turns.Abandon(b.ctx, a, nil))
	b.checkCounts("after the dead came back", 0, 0)
	l = b.killReplica(replicaB, replicaA)
	b.beginTurn(l, 1)
	b.checkCounts("after the other died with the first message", 1, 0)
	b.checkError(b.Store.Turns.Abandon(b.ctx, sessions.Lease{Key: "robot/elsewhere", Owner: replicaA, Term: 1}, nil))
	for i := range 2 {
		if log := b.Log(b.T, key); log[i].State != sessions.Pending {
			b.Errorf("message %d is %s", i, log[i].State)
		}
	}
}

// A claim of an abandoned card counts as an attempt, unless it is postponed without a call.
func testCardTries(b *suite) {
	l := b.leaseWithMessages(1)
	card := sessions.Card{Kind: sessions.ReplyCard, Track: "tried", EventID: b.beginTurn(l, 1).Pending[0].ID}
	_, _, err := b.Store.Cards.OpenCard(b.ctx, l, card, 0)
	b.checkError(err)
	b.commitTurn(l, newAnswer(b.beginTurn(l, 1)))
	claim := func(tries int, prepaid bool) sessions.Card {
		b.Helper()
		list, err := b.Store.Cards.AbandonedCards(b.ctx, sessions.ReplyCard, 0, 10)
		if b.checkError(err); len(list) != 1 || list[0].Tries != tries || list[0].Prepaid != prepaid {
			b.Fatalf("claimed are %+v, want attempt %d, prepaid %t", list, tries, prepaid)
		}
		return list[0]
	}
	first := claim(1, true)
	b.checkError(b.Store.Cards.PostponeCard(b.ctx, first, 0, false))
	second := claim(1, true)
	third := claim(2, true)
	b.checkError(b.Store.Cards.PostponeCard(b.ctx, second, time.Hour, true)) // a late word of the claim before
	b.checkError(b.Store.Cards.PostponeCard(b.ctx, third, 0, true))
	last := claim(3, false)
	b.checkError(b.Store.Cards.PostponeCard(b.ctx, last, time.Hour, true))
	if got := b.abandoned(); len(got) != 0 {
		b.Errorf("claimed within its pause: %v", got)
	}
	if n, err := b.Store.Cards.GivenUpCards(b.ctx); n != 0 || err != nil {
		b.Errorf("%d cards are given up, %v", n, err)
	}
	b.checkError(b.Store.Cards.SettleCard(b.ctx, key, card.Track, sessions.CardGivenUp))
	if n, err := b.Store.Cards.GivenUpCards(b.ctx); n != 1 || err != nil {
		b.Errorf("%d cards are given up, %v, want one", n, err)
	}
	mark := sessions.Card{Kind: sessions.ReactionCard, Track: "mark", EventID: card.EventID}
	_, _, err = b.Store.Cards.OpenCard(b.ctx, l, mark, 0)
	b.checkError(err)
	b.checkError(b.Store.Cards.SettleCard(b.ctx, key, mark.Track, sessions.CardGivenUp))
	if n, err := b.Store.Cards.GivenUpCards(b.ctx); n != 1 || err != nil {
		b.Errorf("%d cards are given up beside a reaction, %v, want one", n, err)
	}
}

func testLeader(b *suite) {
	leads := func(want sessions.Leader, when string) {
		b.Helper()
		for _, s := range []Storage{b.Store, b.Other} {
			if got, err := s.Replicas.Leader(b.ctx); err != nil || got != want {
				b.Errorf("%s the leader is %+v (%v), want %+v", when, got, err, want)
			}
		}
	}
	mark := func(owner sessions.ReplicaID, s sessions.ReplicaStatus) {
		b.Helper()
		b.checkError(b.Store.Replicas.Mark(b.ctx, owner, s))
	}
	leads(sessions.Leader{}, "before any heartbeat")
	mark(replicaA, sessions.ReplicaStatus{Connected: true})
	leads(sessions.Leader{}, "after a mark without a heartbeat")
	b.sendBeat(replicaB)
	b.sendBeat(replicaA)
	leads(sessions.Leader{Replica: replicaB}, "without a connected replica")
	mark(replicaA, sessions.ReplicaStatus{Connected: true})
	leads(sessions.Leader{Replica: replicaA, Connected: true}, "where the younger is connected")
	mark(replicaB, sessions.ReplicaStatus{Connected: true})
	leads(sessions.Leader{Replica: replicaB, Connected: true}, "where both are connected")
	b.sendBeat(replicaB) // a heartbeat changes nothing of it
	mark(replicaB, sessions.ReplicaStatus{Connected: true, Draining: true})
	leads(sessions.Leader{Replica: replicaA, Connected: true}, "while the older drains")
	b.Expire(b.T, replicaA)
	leads(sessions.Leader{}, "when the only one that does not drain is dead")
	b.sendBeat(replicaA)
	_, err := b.Store.Leases.Resign(b.ctx, replicaA)
	b.checkError(err)
	leads(sessions.Leader{}, "when it has resigned")
	b.sendBeat(replicaA)
	leads(sessions.Leader{Replica: replicaA}, "after its restart")
}

func testClock(b *suite) {
	first, err := b.Store.Leases.Beat(b.ctx, replicaA)
	b.checkError(err)
	a := b.acceptMessage(replicaA, 1)
	second, err := b.Other.Leases.Beat(b.ctx, replicaB)
	b.checkError(err)
	at := b.beginTurn(a.Lease, 1).Pending[0].CreatedAt
	if at.Before(first) || at.After(second) {
		b.Errorf("a message between heartbeats of %v and %v is of %v", first, second, at)
	}
}

// testToolRunsApart holds that the messages of a broken attempt know its calls, also after they were taken apart.
func testToolRunsApart(b *suite) {
	l := b.leaseWithMessages(2)
	run := sessions.ToolRun{
		EventID: b.beginTurn(l, 10).Pending[0].ID, Call: sessions.ToolCall{ID: "c1", Name: "pay", Arguments: `{"amount":5}`}, Finished: true, Result: "paid",
	}
	b.checkError(b.Store.Turns.RecordRun(b.ctx, l, run))
	b.Expire(b.T, replicaA) // it died with both messages
	b.sendBeat(replicaB)
	l = b.acquireLease(replicaB)
	for _, message := range []string{"first", "second"} {
		v := b.beginAlone(l, sessions.Alone{}, 1)
		if !slices.Equal(v.Runs, []sessions.ToolRun{run}) {
			b.Errorf("the attempt at the %s message knows of runs %+v, want %+v", message, v.Runs, run)
		}
		b.commitTurn(l, newAnswer(v))
	}
	b.acceptMessage(replicaB, 3)
	b.beginTurn(l, 10)
	b.Expire(b.T, replicaB)
	b.sendBeat(replicaA)
	if v := b.beginAlone(b.acquireLease(replicaA), sessions.Alone{}, 1); len(v.Runs) != 0 {
		b.Errorf("a later broken attempt knows of runs %+v, want none", v.Runs)
	}
}
