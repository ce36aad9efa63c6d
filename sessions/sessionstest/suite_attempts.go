package sessionstest

import (
	"slices"
	"strings"

	"ebb/sessions"
)

// counts checks the attempts that are counted on the messages of the log, in order of arrival.
func (b *bench) counts(what string, want ...int) {
	b.Helper()
	var got []int
	for _, e := range b.Log(b.T, key) {
		got = append(got, e.Attempts)
	}
	if !slices.Equal(got, want) {
		b.Errorf("%s: the counted attempts are %v, want %v", what, got, want)
	}
}

// suspect begins a turn and checks that the oldest message is a suspect with that count.
func (b *bench) suspect(l sessions.Lease, want int) {
	b.Helper()
	if v := b.begin(l, 10); v.Suspect != want || len(v.Pending) != 0 || v.Session.Key != key {
		b.Errorf("the turn begins with %q and a count of %d, want nothing and %d", contents(v.Pending), v.Suspect, want)
	}
}

// alone begins a turn on the oldest message and checks its count.
func (b *bench) alone(l sessions.Lease, want int) sessions.View {
	b.Helper()
	v, err := b.Store.BeginAlone(b.ctx, l, 10)
	b.check(err)
	if len(v.Pending) != 1 || v.Pending[0].Attempts != want || v.Suspect != want {
		b.Fatalf("a turn on one message begins with %q and a count of %d, want one with %d", contents(v.Pending), v.Suspect, want)
	}
	return v
}

func testBeginBytes(b *bench) {
	b.beat(replicaA)
	var l sessions.Lease
	for i, bytes := range []int{sessions.MaxTurnBytes + 1, sessions.MaxTurnBytes / 2, sessions.MaxTurnBytes / 2, 1, 1} {
		m := message(i + 1)
		m.Text = strings.Repeat("x", bytes)
		a, err := b.Store.Accept(b.ctx, replicaA, key, m)
		b.check(err)
		l = a.Lease
	}
	for i, want := range []int{1, 2, 2, 0} {
		v := b.begin(l, 4)
		if len(v.Pending) != want || v.More != (i < 2) {
			b.Fatalf("turn %d takes %d messages, and more wait: %t; want %d", i+1, len(v.Pending), v.More, want)
		}
		for _, e := range v.Pending {
			if e.Message.Text != e.Content {
				b.Errorf("the message of event %d has another text than the event", e.ID)
			}
		}
		if want > 0 {
			b.commit(l, answer(v))
		}
	}
}

// dies has the holder of the lease die, and gives the session to another replica.
func (b *bench) dies(dead, next sessions.ReplicaID) sessions.Lease {
	b.Helper()
	b.Expire(b.T, dead)
	b.beat(next)
	return b.acquire(next)
}

func testAttemptsOfTheDead(b *bench) {
	l := b.held(3)
	b.begin(l, 2)
	b.begin(l, 2) // its first answer was lost
	l = b.dies(replicaA, replicaB)
	b.suspect(l, 1)
	b.suspect(l, 1)
	b.counts("after a death and two looks", 1, 1, 0)
	l = b.dies(replicaB, replicaA)
	b.suspect(l, 1) // who died only looked
	b.alone(l, 1)
	l = b.dies(replicaA, replicaB)
	b.suspect(l, 2)
	b.commit(l, answer(b.alone(l, 2)))
	b.counts("after two deaths of the first message", 2, 1, 0, 0)
	b.suspect(l, 1)
	b.commit(l, answer(b.alone(l, 1)))
	if v := b.begin(l, 10); len(v.Pending) != 1 || v.Pending[0].MsgID != "msg-3" || v.Suspect != 0 {
		b.Errorf("then comes %q, want the third message at its first attempt", contents(v.Pending))
	}
}

func testAttemptsOfAccept(b *bench) {
	l := b.held(1)
	b.begin(l, 10)
	b.Expire(b.T, replicaA)
	b.beat(replicaB)
	l = b.accept(replicaB, 2).Lease
	b.suspect(l, 1)
	b.commit(l, answer(b.alone(l, 1)))
	if v := b.begin(l, 10); len(v.Pending) != 1 || v.Suspect != 0 {
		b.Errorf("then comes %q with a count of %d, want the message that came after the death", contents(v.Pending), v.Suspect)
	}
}

func testAttemptsSpared(b *bench) {
	l := b.held(3)
	for what, free := range map[string]func(sessions.Lease){
		"a stop": func(l sessions.Lease) {
			_, err := b.Store.Resign(b.ctx, l.Owner)
			b.check(err)
			b.beat(l.Owner)
		},
		"a hand-over": func(l sessions.Lease) { b.check(b.Store.Release(b.ctx, l)) },
		"an abandoned turn": func(l sessions.Lease) {
			b.check(b.Store.Abandon(b.ctx, l, nil))
			b.check(b.Store.Abandon(b.ctx, l, nil))
			b.Expire(b.T, l.Owner)
		},
		"an erasure": func(l sessions.Lease) {
			_, err := b.Store.Erase(b.ctx, key, []int64{1})
			b.check(err)
		},
	} {
		v := b.begin(l, 10)
		if len(v.Pending) == 3 { // there must be something to erase
			t := answer(v)
			t.Taken, t.TakenTokens = t.Taken[:1], t.TakenTokens[:1]
			b.commit(l, t)
			v = b.begin(l, 10)
		}
		if len(v.Pending) != 2 {
			b.Fatalf("before %s the turn takes %q, want two messages", what, contents(v.Pending))
		}
		free(l)
		next := replicaB
		if l.Owner == replicaB {
			next = replicaA
		}
		b.beat(next)
		l = b.acquire(next)
		if v = b.begin(l, 10); len(v.Pending) != 2 || v.Suspect != 0 {
			b.Errorf("after %s the turn takes %q with a count of %d, want both messages and 0", what, contents(v.Pending), v.Suspect)
		}
	}
}

func testAttemptsOfARest(b *bench) {
	l := b.held(3)
	t := answer(b.begin(l, 10))
	t.Taken, t.TakenTokens = t.Taken[:1], t.TakenTokens[:1]
	b.commit(l, t)
	l = b.dies(replicaA, replicaB)
	if v := b.begin(l, 10); len(v.Pending) != 2 || v.Suspect != 0 {
		b.Errorf("after the turn of another message its process died: %q with a count of %d, want both and 0", contents(v.Pending), v.Suspect)
	}
}

func testAttemptsBlamed(b *bench) {
	l := b.held(3)
	v := b.begin(l, 2)
	b.check(b.Store.Abandon(b.ctx, l, []int64{v.Pending[1].ID}))
	b.check(b.Store.Abandon(b.ctx, l, []int64{v.Pending[1].ID}))
	b.counts("after the second message broke a turn", 0, 1, 0)
	if v = b.begin(l, 10); len(v.Pending) != 1 || v.Pending[0].MsgID != "msg-1" {
		b.Errorf("a turn takes %q, want the message before the suspect alone", contents(v.Pending))
	}
	b.commit(l, answer(v))
	b.suspect(l, 1)
	v = b.alone(l, 1)
	b.check(b.Store.Abandon(b.ctx, l, []int64{v.Pending[0].ID}))
	b.counts("after it broke another", 0, 2, 0, 0)
}

func testAttemptsOfTheFrozen(b *bench) {
	a := b.held(2)
	b.begin(a, 10)
	l := b.dies(replicaA, replicaB)
	b.suspect(l, 1)
	b.alone(l, 1)
	b.check(b.Store.Abandon(b.ctx, a, nil)) // it comes back, and finds its lease lost
	b.check(b.Store.Abandon(b.ctx, a, nil))
	b.counts("after the dead came back", 0, 0)
	l = b.dies(replicaB, replicaA)
	b.suspect(l, 1)
	b.counts("after the other died with the first message", 1, 0)
	b.check(b.Store.Abandon(b.ctx, sessions.Lease{Key: "robot/elsewhere", Owner: replicaA, Term: 1}, nil))
	for i := range 2 {
		if log := b.Log(b.T, key); log[i].State != sessions.Pending {
			b.Errorf("message %d is %s", i, log[i].State)
		}
	}
}
