package sessionstest

import (
	"sync"

	"ebb/sessions"
)

const encrypted sessions.UserID = "$:LWCP_v1:$one"

// withStaff is a message whose frame had both ids of its sender.
func withStaff(n int, staff sessions.UserID) sessions.Message {
	m := newMessage(n)
	m.SenderID, m.StaffID, m.EncryptedID = staff, staff, encrypted
	return m
}

// wantStaff checks what both replicas read of a sender id.
func (b *suite) wantStaff(robot sessions.RobotCode, id, want sessions.UserID, why string) {
	b.Helper()
	for _, store := range []Storage{b.Store, b.Other} {
		got, err := store.StaffOf(b.ctx, robot, id)
		b.checkError(err)
		if got != want {
			b.Errorf("sender id %s of robot %s has staff id %q, want %q: %s", id, robot, got, want, why)
		}
	}
}

func (b *suite) acceptAs(m sessions.Message) sessions.Accepted {
	b.Helper()
	a, err := b.Store.Accept(b.ctx, replicaA, sessions.NewKey(m.RobotCode, m.ConversationID, ""), m)
	b.checkError(err)
	return a
}

func testStaffOf(b *suite) {
	b.sendBeat(replicaA)
	b.wantStaff("robot", encrypted, "", "no frame had both ids")
	alone := newMessage(1)
	alone.SenderID, alone.EncryptedID = encrypted, encrypted
	b.acceptAs(alone)
	b.wantStaff("robot", encrypted, "", "the frame had no staff id")
	again := withStaff(1, "staff-9")
	if a := b.acceptAs(again); a.New {
		b.Fatal("a redelivered message was stored twice")
	}
	for id, want := range map[sessions.MessageID]bool{alone.ID: true, newMessage(2).ID: false} {
		for _, store := range []Storage{b.Store, b.Other} {
			got, err := store.IsAccepted(b.ctx, sessions.NewKey(alone.RobotCode, alone.ConversationID, ""), id)
			b.checkError(err)
			if got != want {
				b.Errorf("message %s is accepted: %v, want %v", id, got, want)
			}
		}
	}
	b.wantStaff("robot", encrypted, "", "a redelivered message changes nothing")

	var wg sync.WaitGroup
	for n, store := range []Storage{b.Store, b.Other} { // at once, on two replicas
		wg.Go(func() {
			if a, err := store.Accept(b.ctx, replicaA, key, withStaff(10+n, "staff-1")); err != nil || a.Clash {
				b.Errorf("accepting a message with both ids: %+v, %v", a, err)
			}
		})
	}
	wg.Wait()
	b.wantStaff("robot", encrypted, "staff-1", "two frames had both ids")
	b.wantStaff("robot", "$:LWCP_v1:$two", "", "this is another id")
	b.wantStaff("robot-2", encrypted, "", "another robot may know another person by it")

	other := withStaff(20, "staff-7")
	other.RobotCode = "robot-2"
	if a := b.acceptAs(other); a.Clash {
		b.Error("the same sender id of another robot is a clash")
	}
	b.wantStaff("robot-2", encrypted, "staff-7", "each robot has its own people")
	b.wantStaff("robot", encrypted, "staff-1", "each robot has its own people")
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
	b.wantStaff("robot", encrypted, "", "it may be either's")
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

func testDeletedUnderOtherID(b *suite) {
	b.sendBeat(replicaA)
	m := withStaff(1, "staff-1")
	accept := func(robot sessions.RobotCode, conversation sessions.ConversationID, sender sessions.UserID) sessions.Accepted {
		b.Helper()
		m.RobotCode, m.ConversationID, m.SenderID = robot, conversation, sender
		a, err := b.Store.Accept(b.ctx, replicaA, sessions.NewKey(robot, conversation, sender), m)
		b.checkError(err)
		return a
	}
	first := accept("robot", "cid/1", "staff-1")
	_, err := b.Store.Delete(b.ctx, first.Lease.Key)
	b.checkError(err)
	for _, sender := range []sessions.UserID{"staff-1", encrypted, "staff-2", ""} {
		known, err := b.Other.IsAccepted(b.ctx, sessions.NewKey("robot", "cid/1", sender), m.ID)
		b.checkError(err)
		if a := accept("robot", "cid/1", sender); a.New || a.EventID != 0 || !known {
			b.Errorf("the deleted message under id %q was accepted as %+v, known %v", sender, a, known)
		}
	}
	if !accept("robot", "cid/2", encrypted).New || !accept("robot-2", "cid/1", encrypted).New {
		b.Error("a deletion in one conversation refuses a message of another")
	}
}
