package sessionstest

import "ebb/sessions"

func testLeader(b *suite) {
	leads := func(want sessions.Leader, when string) {
		b.Helper()
		for _, s := range []Storage{b.Store, b.Other} {
			if got, err := s.Leader(b.ctx); err != nil || got != want {
				b.Errorf("%s the leader is %+v (%v), want %+v", when, got, err, want)
			}
		}
	}
	mark := func(owner sessions.ReplicaID, s sessions.ReplicaStatus) {
		b.Helper()
		b.checkError(b.Store.Mark(b.ctx, owner, s))
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
	_, err := b.Store.Resign(b.ctx, replicaA)
	b.checkError(err)
	leads(sessions.Leader{}, "when it has resigned")
	b.sendBeat(replicaA)
	leads(sessions.Leader{Replica: replicaA}, "after its restart")
}

func testClock(b *suite) {
	first, err := b.Store.Beat(b.ctx, replicaA)
	b.checkError(err)
	a := b.acceptMessage(replicaA, 1)
	second, err := b.Other.Beat(b.ctx, replicaB)
	b.checkError(err)
	at := b.beginTurn(a.Lease, 1).Pending[0].CreatedAt
	if at.Before(first) || at.After(second) {
		b.Errorf("a message between heartbeats of %v and %v is of %v", first, second, at)
	}
}
