package sessionstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ebb/sessions"
)

func testAccept(b *suite) {
	b.sendBeat(replicaA)
	first := b.acceptMessage(replicaA, 1)
	second := b.acceptMessage(replicaA, 2)
	if !first.New || !second.New || first.EventID >= second.EventID {
		b.Errorf("two messages were stored as %+v and %+v: want both new, in order of arrival", first, second)
	}
	want := sessions.Lease{Key: key, Owner: replicaA, Term: 1}
	if first.Lease != want {
		b.Errorf("the first message took lease %+v, want %+v", first.Lease, want)
	}
	again := newMessage(1)
	again.Text = "changed"
	a, err := b.Other.Inbox.Accept(b.ctx, replicaA, key, again)
	b.checkError(err)
	if a.New || a.EventID != first.EventID || a.Lease != want {
		b.Errorf("a redelivered message was stored as %+v, want the old event %d and the old lease", a, first.EventID)
	}
	other, err := b.Store.Inbox.Accept(b.ctx, replicaA, sessions.NewKey("robot-2", "cidGroup==", ""), newMessage(1))
	b.checkError(err)
	if !other.New {
		b.Error("the same message for another robot was taken for a redelivery")
	}
	v := b.beginTurn(first.Lease, 10)
	if len(v.Pending) != 2 || v.Pending[0].Content != "问题 1" {
		b.Fatalf("pending are %v, want the two messages as they came first", eventContents(v.Pending))
	}
	e := v.Pending[0]
	if e.SenderID != "staff-1" || e.SenderNick != "张三" || e.MsgID != "msg-1" || e.Role != sessions.RoleUser ||
		e.Message == nil || e.Message.Text != "问题 1" || e.CreatedAt.IsZero() || e.Key != key {
		b.Errorf("the stored message lost something: %+v", e)
	}
	if s := v.Session; s.Title != "Team" || s.RobotCode != "robot" || s.ConversationType != sessions.Group ||
		s.ConversationID != "cidGroup==" || s.FlushEpoch != -1 || s.CalibrationFactor != 1 || s.LastSeq != 0 {
		b.Errorf("the new session is %+v", s)
	}
}

func testSession(b *suite) {
	_, err := b.Store.Sessions.Session(b.ctx, key)
	b.wantError(err, sessions.ErrNotFound, "reading a session that is not there")
	l := b.leaseWithMessages(2)
	b.runTurn(l, 1)
	want := b.beginTurn(l, 0).Session
	b.sendBeat(replicaB)
	got, err := b.Other.Sessions.Session(b.ctx, key)
	b.checkError(err)
	if got.Key != key || got.Lease != l || got.LastSeq != 2 || got.TotalTokens != 15 || got.Title != "Team" || got.FlushEpoch != -1 ||
		!got.LastActiveAt.Equal(want.LastActiveAt) {
		b.Errorf("another replica reads %+v, want %+v", got, want)
	}
	if v := b.beginTurn(l, 10); len(v.Pending) != 1 || v.Pending[0].Attempts != 0 {
		b.Errorf("reading the session changed what waits: %+v", v.Pending)
	}
}

func testRefused(b *suite) {
	l := b.leaseWithMessages(1)
	// Accepted, the next one like it would be lost as its double.
	_, err := b.Store.Inbox.Accept(b.ctx, replicaA, key, sessions.Message{Text: "no id"})
	b.wantError(err, sessions.ErrRefused, "accepting a message without an id")
	t := newAnswer(b.beginTurn(l, 10))
	t.TakenTokens = nil
	_, err = b.Store.Turns.Commit(b.ctx, l, t)
	b.wantError(err, sessions.ErrRefused, "committing a message without its count")
	if s := b.beginTurn(l, 0).Session; s.LastSeq != 0 {
		b.Errorf("what was refused got place %d", s.LastSeq)
	}
}

func testAcceptAtOnce(b *suite) {
	b.sendBeat(replicaA)
	const workers, messages = 8, 10
	var mu sync.Mutex
	fresh := map[int]int{}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			store := b.Store
			if w%2 == 1 {
				store = b.Other
			}
			for n := range messages {
				a, err := store.Inbox.Accept(b.ctx, replicaA, key, newMessage(n))
				if err != nil || a.EventID == 0 || a.Lease.Owner != replicaA {
					b.Errorf("accepting message %d: %+v, %v", n, a, err)
					return
				}
				if a.New {
					mu.Lock()
					fresh[n]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for n := range messages {
		if fresh[n] != 1 {
			b.Errorf("message %d was new %d times, want once", n, fresh[n])
		}
	}
	if got := len(b.beginTurn(b.acquireLease(replicaA), 100).Pending); got != messages {
		b.Errorf("%d messages are pending, want %d", got, messages)
	}
}

func testAcceptKind(b *suite) {
	b.sendBeat(replicaA)
	for i, tt := range []struct {
		said []sessions.ConversationType
		want sessions.ConversationType
	}{
		{[]sessions.ConversationType{""}, ""},
		{[]sessions.ConversationType{"", sessions.Private, ""}, sessions.Private},
		{[]sessions.ConversationType{"", sessions.Group, ""}, sessions.Group},
		{[]sessions.ConversationType{sessions.Private, sessions.Group}, sessions.Group},
		{[]sessions.ConversationType{sessions.Group, sessions.Private}, sessions.Group},
	} {
		k := sessions.NewKey("robot", sessions.ConversationID(fmt.Sprintf("kind-%d", i)), "")
		for n, kind := range tt.said {
			m := newMessage(n + 1)
			m.ConversationType = kind
			_, err := b.Store.Inbox.Accept(b.ctx, replicaA, k, m)
			b.checkError(err)
		}
		s, err := b.Store.Sessions.Session(b.ctx, k)
		b.checkError(err)
		if s.ConversationType != tt.want {
			b.Errorf("after frames that said %q the session's type is %q, want %q", tt.said, s.ConversationType, tt.want)
		}
	}
}

func testAcceptOddText(b *suite) {
	b.sendBeat(replicaA)
	m := newMessage(1)
	m.Text, m.SenderNick = "zero\x00byte and \xff\xfe and \\u0000", "nick\x00"
	m.Quote = &sessions.Quote{Text: "quoted\x00"}
	_, err := b.Store.Inbox.Accept(b.ctx, replicaA, key, m)
	b.checkError(err)
	long := newMessage(2)
	for len(long.Text) < 300<<10 {
		long.Text += long.Text
	}
	_, err = b.Store.Inbox.Accept(b.ctx, replicaA, key, long)
	b.checkError(err)
	l := b.acquireLease(replicaA)
	v := b.beginTurn(l, 10)
	if len(v.Pending) != 1 || v.Pending[0].Message == nil || v.Pending[0].Message.Quote == nil {
		b.Fatalf("the odd message lost its form: %+v", v.Pending)
	}
	b.commitTurn(l, newAnswer(v))
	if v = b.beginTurn(l, 10); len(v.Pending) != 1 || v.Pending[0].Content != long.Text {
		b.Errorf("%d messages are pending, want the long one, whole", len(v.Pending))
	}
}

func testAcceptLease(b *suite) {
	b.sendBeat(replicaA)
	b.sendBeat(replicaB)
	l := b.acceptMessage(replicaA, 1).Lease
	if got := b.acceptMessage(replicaB, 2).Lease; got != l {
		b.Errorf("a message at B for A's session shows lease %+v, want A's %+v", got, l)
	}
	b.Expire(b.T, replicaA)
	if a := b.acceptMessage(replicaB, 2); a.New || a.Lease.Owner == replicaB {
		b.Errorf("a redelivery took the lease: %+v", a)
	}
	want := sessions.Lease{Key: key, Owner: replicaB, Term: l.Term + 1}
	if got := b.acceptMessage(replicaB, 3).Lease; got != want {
		b.Errorf("a message at B after A's death took lease %+v, want %+v", got, want)
	}
	if got := b.acceptMessage(replicaB, 4).Lease; got != want {
		b.Errorf("the next message changed the lease to %+v, want %+v", got, want)
	}
}

func testWaiting(b *suite) {
	b.sendBeat(replicaA)
	b.sendBeat(replicaB)
	waiting := func(owner sessions.ReplicaID, want ...sessions.Key) {
		b.Helper()
		got, err := b.Other.Inbox.Waiting(b.ctx, owner, 10)
		b.checkError(err)
		if !slices.Equal(got, want) {
			b.Errorf("waiting for %s are %v, want %v", owner, got, want)
		}
	}
	waiting(replicaA)
	second := sessions.NewKey("robot", "cidSecond", "")
	b.acceptMessage(replicaA, 1)
	_, err := b.Store.Inbox.Accept(b.ctx, replicaA, second, newMessage(2))
	b.checkError(err)
	waiting(replicaA, key, second)
	waiting(replicaB)
	if got, err := b.Store.Inbox.Waiting(b.ctx, replicaA, 1); err != nil || !slices.Equal(got, []sessions.Key{key}) {
		b.Errorf("of two waiting sessions the first is %v (%v), want the one that waits longest", got, err)
	}

	l := b.acquireLease(replicaA)
	c := b.runTurn(l, 10)
	waiting(replicaA, second)
	b.Expire(b.T, replicaA)
	waiting(replicaB, second, key) // the reply may be unsent, and is younger than the second session's message
	b.sendBeat(replicaA)
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: c.Replies[0].ID, Attempt: 1, NextAt: time.Now().Add(time.Hour)}))
	waiting(replicaA, second) // the reply's next try is not due
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: c.Replies[0].ID, Attempt: 1, NextAt: time.Now().Add(-time.Hour)}))
	waiting(replicaA, second, key)
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: c.Replies[0].ID, Sent: true}))
	waiting(replicaA, second)
	b.Expire(b.T, replicaA)
	waiting(replicaB, second)
}

// A replica whose own sessions are all busy still finds sessions without an owner.
func testWaitingOrphans(b *suite) {
	b.sendBeat(replicaA)
	accept := func(store Storage, owner sessions.ReplicaID, id sessions.ConversationID) sessions.Key {
		b.Helper()
		k := sessions.NewKey("robot", id, "")
		_, err := store.Inbox.Accept(b.ctx, owner, k, newMessage(1))
		b.checkError(err)
		return k
	}
	own := accept(b.Store, replicaA, "cidOwn")
	own2 := accept(b.Store, replicaA, "cidOwn2")
	b.sendBeat(replicaB)
	left := accept(b.Other, replicaB, "cidLeft")
	b.sendBeat("replica-c")
	dead := accept(b.Other, "replica-c", "cidDead")
	if n, err := b.Other.Leases.Resign(b.ctx, replicaB); n != 1 || err != nil {
		b.Fatalf("B resigned %d leases (%v), want 1", n, err)
	}
	b.Expire(b.T, "replica-c")
	got, err := b.Store.Inbox.Waiting(b.ctx, replicaA, 10)
	b.checkError(err)
	if want := []sessions.Key{left, dead, own, own2}; !slices.Equal(got, want) {
		b.Errorf("waiting are %v, want %v: those without an owner first", got, want)
	}
	if got, err = b.Store.Inbox.Waiting(b.ctx, replicaA, 1); err != nil || !slices.Equal(got, []sessions.Key{left}) {
		b.Errorf("with room for one it is %v (%v), want %v", got, err, left)
	}
}

func testListen(b *suite) {
	b.sendBeat(replicaA)
	b.sendBeat(replicaB)
	b.acceptMessage(replicaA, 1)
	ctx, cancel := context.WithCancel(b.ctx)
	woken := make(chan sessions.Key, 100)
	done := make(chan error, 1)
	go func() { done <- b.Other.Inbox.Listen(ctx, replicaA, func(k sessions.Key) { woken <- k }) }()
	expect := func(want sessions.Key, why string) {
		b.Helper()
		select {
		case got := <-woken:
			if got != want {
				b.Errorf("woken with %q, want %q: %s", got, want, why)
			}
		case <-time.After(20 * time.Second):
			b.Fatalf("not woken: %s", why)
		}
	}
	expect("", "it listens now")
	b.acceptMessage(replicaA, 2) // its own: no news to it
	b.acceptMessage(replicaB, 3)
	expect(key, "B stored a message for A's session")
	b.acceptMessage(replicaB, 3) // a redelivery is no news
	_, err := b.Store.Inbox.Accept(b.ctx, replicaB, sessions.NewKey("robot", "cidB", ""), newMessage(4))
	b.checkError(err)
	if n, err := b.Store.Leases.Resign(b.ctx, replicaB); n != 1 || err != nil {
		b.Fatalf("B resigned %d leases (%v), want 1", n, err)
	}
	expect("", "B gave up its leases")
	cancel()
	select {
	case err := <-done:
		if err != nil {
			b.Errorf("listening ended with %v, want nothing", err)
		}
	case <-time.After(20 * time.Second):
		b.Fatal("listening did not end with its context")
	}
}

func testTakeover(b *suite) {
	old := b.leaseWithMessages(1)
	b.sendBeat(replicaB)
	_, err := b.Other.Leases.Acquire(b.ctx, key, replicaB)
	b.wantError(err, sessions.ErrLeaseHeld, "acquiring a living replica's session")
	_, err = b.Store.Leases.Acquire(b.ctx, sessions.NewKey("nobody", "nowhere", ""), replicaB)
	b.wantError(err, sessions.ErrNotFound, "acquiring a session that is not there")
	if again := b.acquireLease(replicaA); again != old {
		b.Errorf("acquiring its own lease again gave %+v, want %+v", again, old)
	}
	b.Expire(b.T, replicaA)
	if again := b.acquireLease(replicaA); again != old {
		b.Errorf("a late replica without a successor got %+v, want its old lease %+v", again, old)
	}
	l, err := b.Other.Leases.Acquire(b.ctx, key, replicaB)
	b.checkError(err)
	if l.Owner != replicaB || l.Term != old.Term+1 {
		b.Errorf("the takeover gave %+v, want term %d of B", l, old.Term+1)
	}
	b.sendBeat(replicaA)
	_, err = b.Store.Leases.Acquire(b.ctx, key, replicaA)
	b.wantError(err, sessions.ErrLeaseHeld, "acquiring after waking up late")
	if v, err := b.Other.Turns.Begin(b.ctx, l, 10); err != nil || len(v.Pending) != 1 {
		b.Errorf("the new owner sees %d pending messages (%v), want 1", len(v.Pending), err)
	}
}

func testLeaseRace(b *suite) {
	b.acceptMessage("nobody", 1)
	b.sendBeat(replicaA)
	b.sendBeat(replicaB)
	const rounds = 20
	last := int64(1)
	for round := range rounds {
		var wg sync.WaitGroup
		leases := make([]sessions.Lease, 2)
		errs := make([]error, 2)
		for i, store := range []Storage{b.Store, b.Other} {
			owner := []sessions.ReplicaID{replicaA, replicaB}[i]
			wg.Go(func() { leases[i], errs[i] = store.Leases.Acquire(b.ctx, key, owner) })
		}
		wg.Wait()
		winner := 0
		if errs[0] != nil {
			winner = 1
		}
		if errs[winner] != nil {
			b.Fatalf("round %d: neither replica got the lease: %v, %v", round, errs[0], errs[1])
		}
		b.wantError(errs[1-winner], sessions.ErrLeaseHeld, fmt.Sprintf("round %d: the other replica", round))
		if leases[winner].Term != last+1 {
			b.Fatalf("round %d: term went from %d to %d", round, last, leases[winner].Term)
		}
		last = leases[winner].Term
		if n, err := b.Store.Leases.Resign(b.ctx, leases[winner].Owner); n != 1 || err != nil {
			b.Fatalf("round %d: resigned %d leases (%v), want 1", round, n, err)
		}
		b.sendBeat(leases[winner].Owner)
	}
}

func testRelease(b *suite) {
	l := b.leaseWithMessages(1)
	b.sendBeat(replicaB)
	old := l
	old.Term--
	b.wantError(b.Store.Leases.Release(b.ctx, old), sessions.ErrLeaseLost, "releasing an old term")
	_, err := b.Other.Leases.Acquire(b.ctx, key, replicaB)
	b.wantError(err, sessions.ErrLeaseHeld, "acquiring after an old term was released")
	b.checkError(b.Store.Leases.Release(b.ctx, l))
	_, err = b.Store.Turns.Commit(b.ctx, l, sessions.TurnResult{})
	b.wantError(err, sessions.ErrLeaseLost, "committing after releasing")
	if free, err := b.Store.Cards.LeaseOf(b.ctx, key); err != nil || free != (sessions.Lease{Key: key, Term: l.Term}) {
		b.Errorf("the lease of a released session is %+v, %v", free, err)
	}
	next, err := b.Other.Leases.Acquire(b.ctx, key, replicaB)
	b.checkError(err)
	if next.Term != l.Term+1 {
		b.Errorf("the next term is %d, want %d", next.Term, l.Term+1)
	}
}

func testResign(b *suite) {
	l := b.leaseWithMessages(1)
	for i := range 3 {
		_, err := b.Store.Inbox.Accept(b.ctx, replicaA, sessions.NewKey("robot", sessions.ConversationID(fmt.Sprint(i)), ""), newMessage(i))
		b.checkError(err)
	}
	b.sendBeat(replicaB)
	if n, err := b.Store.Leases.Resign(b.ctx, replicaA); n != 4 || err != nil {
		b.Errorf("resigned %d leases (%v), want 4", n, err)
	}
	if n, err := b.Store.Leases.Resign(b.ctx, replicaA); n != 0 || err != nil {
		b.Errorf("resigned %d leases (%v) the second time, want 0", n, err)
	}
	_, err := b.Store.Turns.Commit(b.ctx, l, sessions.TurnResult{})
	b.wantError(err, sessions.ErrLeaseLost, "committing after resigning")
	got, err := b.Other.Inbox.Waiting(b.ctx, replicaB, 10)
	b.checkError(err)
	if len(got) != 4 {
		b.Errorf("%d sessions wait for B after A resigned, want 4", len(got))
	}
	next, err := b.Other.Leases.Acquire(b.ctx, key, replicaB)
	b.checkError(err)
	if next.Term != l.Term+1 {
		b.Errorf("the next term is %d, want %d", next.Term, l.Term+1)
	}
}

func testRest(b *suite) {
	keys := []sessions.Key{key, "robot/elsewhere"}
	rest := func(owner sessions.ReplicaID, rest, unflushed time.Duration) int {
		b.Helper()
		gone, err := b.Store.Leases.Rest(b.ctx, owner, keys, rest, unflushed)
		b.checkError(err)
		if !slices.Contains(gone, keys[1]) {
			b.Errorf("%v are not leased any more, want the session that does not exist among them", gone)
		}
		return len(gone) - 1
	}
	l := b.leaseWithMessages(1)
	if n := rest(replicaA, 0, 0); n != 0 {
		b.Error("the lease of a session with a waiting message was given up")
	}
	done := b.runTurn(l, 1)
	if n := rest(replicaA, 0, 0); n != 0 {
		b.Error("the lease of a session with an unsent reply was given up")
	}
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: done.Replies[0].ID, Sent: true}))
	job := sessions.Job{Through: 2}
	_, err := b.Store.Jobs.OpenJob(b.ctx, l, job)
	b.checkError(err)
	if n := rest(replicaA, 0, 0); n != 0 {
		b.Error("the lease of a session with a compaction under way was given up")
	}
	b.compactSession(l, newCompaction(0, 2))
	if n := rest(replicaB, 0, 0); n != 1 {
		b.Error("a replica does not learn that another one has the lease")
	}
	for name, n := range map[string]int{
		"an active session's": rest(replicaA, time.Hour, 0),
		"an unflushed one's":  rest(replicaA, 0, time.Hour),
	} {
		if n != 0 {
			b.Errorf("%s lease was given up", name)
		}
	}
	if n := rest(replicaA, 0, 0); n != 1 {
		b.Errorf("%d leases were released, want that of the idle session", n)
	}
	_, err = b.Store.Turns.Begin(b.ctx, l, 0)
	b.wantError(err, sessions.ErrLeaseLost, "going on with a lease that was given up")
	if a := b.acceptMessage(replicaB, 2); a.Lease.Owner != replicaB {
		b.Errorf("the next message found the lease %+v, want it taken by the replica that accepted it", a.Lease)
	}
}

// A running turn's messages are pending too. A long text is cut, and an answered message is not listed.
func testPending(b *suite) {
	if list, err := b.Store.Inbox.Pending(b.ctx, key, 10); err != nil || len(list) != 0 {
		b.Errorf("without a session pending are %v, error %v", list, err)
	}
	l := b.leaseWithMessages(1)
	b.runTurn(l, 1)
	b.acceptMessage(replicaA, 2)
	b.beginTurn(l, 10)
	long := newMessage(3)
	long.Text = strings.Repeat("问", sessions.MaxPeek+1)
	long.Quote = &sessions.Quote{Text: "答复", FromBot: true}
	_, err := b.Other.Inbox.Accept(b.ctx, replicaB, key, long)
	b.checkError(err)
	list, err := b.Other.Inbox.Pending(b.ctx, key, 10)
	b.checkError(err)
	if len(list) != 2 || list[0].MsgID != "msg-3" || list[1].Content != "问题 2" || list[1].SenderNick != "张三" || list[1].CreatedAt.IsZero() {
		b.Fatalf("pending are %v, want the two messages, the newest first", eventContents(list))
	}
	m := list[0].Message
	if want := long.Text[:len("问")*sessions.MaxPeek]; list[0].Content != want || m == nil || m.Text != "" || m.Quote == nil || m.SenderID != "staff-1" {
		b.Errorf("a long message is listed with %d characters and as %+v", len([]rune(list[0].Content)), m)
	}
	if list, err = b.Store.Inbox.Pending(b.ctx, key, 1); err != nil || len(list) != 1 || list[0].MsgID != "msg-3" {
		b.Errorf("the newest is %v, error %v", eventContents(list), err)
	}
}
