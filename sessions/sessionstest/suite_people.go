package sessionstest

import (
	"slices"
	"sync"

	"ebb/sessions"
)

const encrypted sessions.UserID = "$:LWCP_v1:$one"

func withStaff(n int, staff sessions.UserID) sessions.Message {
	m := newMessage(n)
	m.SenderID, m.StaffID, m.EncryptedID = staff, staff, encrypted
	return m
}

func (b *suite) wantStaff(robot sessions.RobotCode, id sessions.UserID, why string, want ...sessions.UserID) {
	b.Helper()
	for _, store := range []Storage{b.Store, b.Other} {
		got, err := store.Inbox.LinkedIDs(b.ctx, robot, id)
		b.checkError(err)
		if !slices.Equal(got, want) {
			b.Errorf("sender id %s of robot %s has the staff ids %q, want %q: %s", id, robot, got, want, why)
		}
	}
}

func (b *suite) acceptAs(m sessions.Message) sessions.Accepted {
	b.Helper()
	a, err := b.Store.Inbox.Accept(b.ctx, replicaA, sessions.NewKey(m.RobotCode, m.ConversationID, ""), m)
	b.checkError(err)
	return a
}

func testStaffIDs(b *suite) {
	b.sendBeat(replicaA)
	b.wantStaff("robot", encrypted, "no frame had both ids")
	alone := newMessage(1)
	alone.SenderID, alone.EncryptedID = encrypted, encrypted
	b.acceptAs(alone)
	b.wantStaff("robot", encrypted, "the frame had no staff id")
	again := withStaff(1, "staff-9")
	if a := b.acceptAs(again); a.New {
		b.Fatal("a redelivered message was stored twice")
	}
	b.wantStaff("robot", encrypted, "a redelivered message changes nothing")

	var wg sync.WaitGroup
	for n, store := range []Storage{b.Store, b.Other} { // at once, on two replicas
		wg.Go(func() {
			if a, err := store.Inbox.Accept(b.ctx, replicaA, key, withStaff(10+n, "staff-1")); err != nil || a.Clash {
				b.Errorf("accepting a message with both ids: %+v, %v", a, err)
			}
		})
	}
	wg.Wait()
	b.wantStaff("robot", encrypted, "two frames had both ids", "staff-1")
	b.wantStaff("robot", "$:LWCP_v1:$two", "this is another id")
	b.wantStaff("robot-2", encrypted, "another robot may know another person by it")

	other := withStaff(20, "staff-7")
	other.RobotCode = "robot-2"
	if a := b.acceptAs(other); a.Clash {
		b.Error("the same sender id of another robot is a clash")
	}
	b.wantStaff("robot-2", encrypted, "each robot has its own people", "staff-7")
	b.wantStaff("robot", encrypted, "each robot has its own people", "staff-1")
}

func testLearnIDs(b *suite) {
	linked := func(robot sessions.RobotCode, id sessions.UserID, want ...sessions.UserID) {
		b.Helper()
		for _, store := range []Storage{b.Store, b.Other} {
			got, err := store.Inbox.LinkedIDs(b.ctx, robot, id)
			b.checkError(err)
			if !slices.Equal(got, want) {
				b.Errorf("id %s of robot %s has the other ids %q, want %q", id, robot, got, want)
			}
		}
	}
	one := withStaff(1, "staff-1")
	one.EncryptedID = ""
	b.checkError(b.Store.Inbox.LearnIDs(b.ctx, one))
	linked("robot", "staff-1")
	for range 2 { // a second time changes nothing
		b.checkError(b.Store.Inbox.LearnIDs(b.ctx, withStaff(2, "staff-1")))
	}
	b.wantStaff("robot", encrypted, "a refused frame had both ids", "staff-1")
	linked("robot", "staff-1", encrypted)
	linked("robot", encrypted, "staff-1")
	linked("robot-2", "staff-1")
	if a := b.acceptAs(withStaff(3, "staff-2")); !a.Clash {
		b.Error("a second staff id is no clash after a refused frame")
	}
	linked("robot", encrypted, "staff-1", "staff-2")
	linked("robot", "staff-2", encrypted)
}

func testStaffClash(b *suite) {
	b.sendBeat(replicaA)
	for n, want := range []bool{false, false, true, false, false} {
		m := withStaff(n+1, "staff-1")
		if n == 2 || n == 4 {
			m = withStaff(n+1, "staff-2")
		}
		if a := b.acceptAs(m); a.Clash != want || !a.New {
			b.Errorf("message %d of %s was accepted as %+v, want a new one and clash %v", n+1, m.StaffID, a, want)
		}
	}
	b.wantStaff("robot", encrypted, "it may be either's", "staff-1", "staff-2")
	for _, e := range b.Log(b.T, key) {
		want := sessions.UserID("staff-1")
		if e.MsgID == "msg-3" || e.MsgID == "msg-5" {
			want = "staff-2"
		}
		if e.SenderID != want {
			b.Errorf("message %s was stored under %s, want its frame's own staff id %s", e.MsgID, e.SenderID, want)
		}
	}
}

func testKnownUnderOtherID(b *suite) {
	b.sendBeat(replicaA)
	b.checkEarlier()
	m := withStaff(1, "staff-1")
	accept := func(robot sessions.RobotCode, conversation sessions.ConversationID, sender sessions.UserID) sessions.Accepted {
		b.Helper()
		m.RobotCode, m.ConversationID, m.SenderID = robot, conversation, sender
		a, err := b.Store.Inbox.Accept(b.ctx, replicaA, sessions.NewKey(robot, conversation, sender), m)
		b.checkError(err)
		return a
	}
	first := accept("robot", "cid/1", "staff-1")
	_, err := b.Store.Erasure.Delete(b.ctx, first.Lease.Key)
	b.checkError(err)
	for _, sender := range []sessions.UserID{"staff-1", encrypted, "staff-2", ""} {
		other := sessions.NewKey("robot", "cid/1", sender)
		known, err := b.Other.Scopes.PlaceOf(b.ctx, m, []sessions.Key{other})
		b.checkError(err)
		if a := accept("robot", "cid/1", sender); a.New || a.EventID != 0 || known.Earlier != other {
			b.Errorf("the deleted message under id %q was accepted as %+v, known under %q", sender, a, known.Earlier)
		}
	}
	if !accept("robot", "cid/2", encrypted).New || !accept("robot-2", "cid/1", encrypted).New {
		b.Error("a deletion in one conversation refuses a message of another")
	}
}

func (b *suite) checkEarlier() {
	b.Helper()
	of := func(conversation sessions.ConversationID, sender sessions.UserID) sessions.Key {
		return sessions.NewKey("robot", conversation, sender)
	}
	m := withStaff(1, "staff-1")
	_, err := b.Store.Inbox.Accept(b.ctx, replicaA, of("cid", "staff-1"), m)
	b.checkError(err)
	for _, c := range []struct {
		id   sessions.MessageID
		keys []sessions.Key
		want sessions.Key
	}{
		{m.ID, []sessions.Key{of("cid", encrypted), of("cid", "staff-2"), of("cid", "staff-1")}, of("cid", "staff-1")},
		{m.ID, []sessions.Key{of("cid", encrypted), of("cid", "staff-2"), of("cid", "")}, ""},
		{m.ID, []sessions.Key{of("cid-2", "staff-1")}, ""},
		{newMessage(2).ID, []sessions.Key{of("cid", "staff-1")}, ""},
		{m.ID, nil, ""},
	} {
		for _, store := range []Storage{b.Store, b.Other} {
			got, err := store.Scopes.PlaceOf(b.ctx, sessions.Message{ID: c.id}, c.keys)
			b.checkError(err)
			if got.Earlier != c.want {
				b.Errorf("among %q message %s was accepted under %q, want %q", c.keys, c.id, got.Earlier, c.want)
			}
		}
	}
}

func (b *suite) placeOf(m sessions.Message, among ...sessions.Key) sessions.Place {
	b.Helper()
	place, err := b.Store.Scopes.PlaceOf(b.ctx, m, among)
	b.checkError(err)
	other, err := b.Other.Scopes.PlaceOf(b.ctx, m, among)
	b.checkError(err)
	if place != other {
		b.Errorf("replicas place a message as %+v and %+v", place, other)
	}
	return place
}

// A chosen scope belongs to the group, under the lease of any of its sessions.
func testScopes(b *suite) {
	l := b.leaseWithMessages(1)
	member := sessions.NewKey("robot", "cidGroup==", "staff-1")
	_, err := b.Store.Inbox.Accept(b.ctx, replicaB, member, newMessage(2))
	b.checkError(err)
	b.sendBeat(replicaB)
	ofMember, err := b.Other.Leases.Acquire(b.ctx, member, replicaB)
	b.checkError(err)
	wantScope := func(group sessions.Key, want sessions.Scope) {
		b.Helper()
		got, err := b.Other.Scopes.ScopeOf(b.ctx, group)
		b.checkError(err)
		robot, id := group.Conversation()
		if placed := b.placeOf(sessions.Message{RobotCode: robot, ConversationID: id}).Chosen; got != want || placed != want {
			b.Errorf("group %s has the scope %q, and places messages by %q, want %q", group, got, placed, want)
		}
	}
	wantScope(key, "")
	b.checkError(b.Store.Scopes.ChooseScope(b.ctx, l, sessions.ScopeMember))
	wantScope(key, sessions.ScopeMember)
	wantScope(sessions.NewKey("robot", "cidgroup==", ""), "")
	wantScope(sessions.NewKey("robot-2", "cidGroup==", ""), "")
	b.checkError(b.Other.Scopes.ChooseScope(b.ctx, ofMember, sessions.ScopeGroup))
	wantScope(key, sessions.ScopeGroup)

	var wg sync.WaitGroup // the same change at once, by two replicas
	for _, one := range []struct {
		store Storage
		lease sessions.Lease
	}{{b.Store, l}, {b.Other, ofMember}} {
		wg.Go(func() {
			if err := one.store.Scopes.ChooseScope(b.ctx, one.lease, sessions.ScopeMember); err != nil {
				b.Errorf("choosing a scope at the same moment: %v", err)
			}
		})
	}
	wg.Wait()
	wantScope(key, sessions.ScopeMember)
	stale := l
	stale.Term--
	b.wantError(b.Store.Scopes.ChooseScope(b.ctx, stale, sessions.ScopeGroup), sessions.ErrLeaseLost, "a choice at an old term")
	wantScope(key, sessions.ScopeMember)
	b.checkError(b.Store.Scopes.ChooseScope(b.ctx, l, ""))
	wantScope(key, "")
	b.checkError(b.Store.Scopes.ChooseScope(b.ctx, l, ""))
}

// A sender's newest unanswered message is found in its session.
func testWaitingPlace(b *suite) {
	l := b.leaseWithMessages(1)
	member := sessions.NewKey("robot", "cidGroup==", "staff-1")
	by := func(sender, other sessions.UserID) sessions.Message {
		m := newMessage(9)
		m.SenderID, m.EncryptedID = sender, other
		return m
	}
	query := func(sender, other sessions.UserID) sessions.Key {
		b.Helper()
		return b.placeOf(by(sender, other), key, member).Waiting
	}
	if got := query("staff-1", ""); got != key {
		b.Errorf("the sender waits in %q, want %q", got, key)
	}
	if got := query("staff-2", ""); got != "" {
		b.Errorf("another person waits in %q", got)
	}
	_, err := b.Store.Inbox.Accept(b.ctx, replicaA, member, newMessage(2))
	b.checkError(err)
	if got := query("staff-2", "staff-1"); got != member {
		b.Errorf("the sender's newest message waits in %q, want %q", got, member)
	}
	v := b.beginTurn(l, 1)
	if got := b.placeOf(by("staff-1", ""), key).Waiting; got != key {
		b.Errorf("a message in a turn waits in %q, want %q", got, key)
	}
	b.commitTurn(l, sessions.TurnResult{Taken: []int64{v.Pending[0].ID}, TakenTokens: []int{1}})
	if got := b.placeOf(by("staff-1", ""), key).Waiting; got != "" {
		b.Errorf("an answered message waits in %q", got)
	}
}

// A look at the other places of a message is part of its storing. The place of the message itself is no other one.
func testAcceptHere(b *suite) {
	b.sendBeat(replicaA)
	next := 10
	try := func(conversation sessions.ConversationID, m sessions.Message) sessions.Accepted {
		b.Helper()
		group, member := sessions.NewKey("robot", conversation, ""), sessions.NewKey("robot", conversation, "staff-1")
		m.ConversationID = conversation
		a, err := b.Other.Inbox.AcceptHere(b.ctx, replicaA, group, m, []sessions.Key{group, member})
		b.checkError(err)
		events, err := b.Store.Inbox.Pending(b.ctx, group, 100)
		b.checkError(err)
		isStored := slices.ContainsFunc(events, func(e sessions.Event) bool { return e.MsgID == m.ID })
		if a.Elsewhere == isStored || a.Elsewhere && a.New {
			b.Errorf("message %s was accepted as %+v, stored: %v", m.ID, a, isStored)
		}
		return a
	}
	fresh := func() sessions.Message { next++; return newMessage(next) }
	store := func(k sessions.Key, m sessions.Message) sessions.Accepted {
		b.Helper()
		a, err := b.Store.Inbox.Accept(b.ctx, replicaA, k, m)
		b.checkError(err)
		return a
	}
	wantElsewhere := func(conversation sessions.ConversationID, m sessions.Message, want bool, why string) {
		b.Helper()
		if try(conversation, m).Elsewhere != want {
			b.Errorf("%s: elsewhere is %v", why, !want)
		}
	}
	first := fresh()
	wantElsewhere("c1", first, false, "a new message")
	if a := try("c1", first); a.New || a.EventID == 0 {
		b.Errorf("the second delivery was accepted as %+v", a)
	}
	wantElsewhere("c1", fresh(), false, "a message after one that waits in the same session")

	earlier := fresh()
	l := store(sessions.NewKey("robot", "c2", "staff-1"), earlier).Lease
	wantElsewhere("c2", earlier, true, "a message that the member's session has")
	wantElsewhere("c2", fresh(), true, "a message of a sender who waits in the member's session")
	v := b.beginTurn(l, 1)
	b.commitTurn(l, sessions.TurnResult{Taken: []int64{v.Pending[0].ID}, TakenTokens: []int{1}})
	wantElsewhere("c2", earlier, true, "an answered message of the member's session")
	wantElsewhere("c2", fresh(), false, "a message after the answered one")

	group := store(sessions.NewKey("robot", "c3", ""), fresh()).Lease
	b.checkError(b.Store.Scopes.ChooseScope(b.ctx, group, sessions.ScopeMember))
	wantElsewhere("c3", fresh(), true, "a message in a group with a session for each member")
	b.checkError(b.Store.Scopes.ChooseScope(b.ctx, group, sessions.ScopeGroup))
	wantElsewhere("c3", fresh(), false, "a message in a group that chose one session for all")
}
