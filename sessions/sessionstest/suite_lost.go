package sessionstest

import (
	"slices"

	"ebb/sessions"
)

// reviveSession returns the sessions that are left to their turns.
func (b *suite) reviveSession(under ...sessions.Lease) []sessions.Key {
	b.Helper()
	turns, err := b.Store.Inbox.Revive(b.ctx, under)
	b.checkError(err)
	return turns
}

// checkPlaces fails unless the places of the log are those from 1 to n.
func (b *suite) checkPlaces(n int64) {
	b.Helper()
	var places []int64
	for _, e := range b.Log(b.T, key) {
		if e.Seq > 0 {
			places = append(places, e.Seq)
		}
	}
	slices.Sort(places)
	if len(places) != int(n) || len(places) > 0 && (places[0] != 1 || places[n-1] != n) || len(slices.Compact(places)) != int(n) {
		b.Errorf("the places of the log are %v, want 1 to %d", places, n)
	}
	if s, err := b.Store.Sessions.Session(b.ctx, key); err != nil || s.LastSeq != n {
		b.Errorf("the last place of the session is %d (%v), want %d", s.LastSeq, err, n)
	}
}

func testLostRow(b *suite) {
	old := b.leaseWithMessages(1)
	b.runTurn(old, 1)
	b.acceptMessage(replicaA, 2)
	b.runTurn(old, 1)
	b.compactSession(old, newCompaction(0, 2))
	before := b.beginTurn(old, 0)
	if len(before.Summaries) != 1 || len(before.Tail) != 2 {
		b.Fatalf("before the deletion the view is\n%s", checkShown(before))
	}
	for round := range int64(2) { // with and without replies of the new row
		b.DeleteRow(b.T, key)
		_, err := b.Store.Turns.Begin(b.ctx, old, 1)
		b.wantError(err, sessions.ErrLeaseLost, "going on without a row")
		a := b.acceptMessage(replicaB, 3+int(round))
		if !a.New || a.Lease.Owner != replicaB || a.Lease == old {
			b.Errorf("without its row a session accepts %+v", a)
		}
		v := b.beginTurn(a.Lease, 10)
		if s := v.Session; len(v.Pending) != 1 || len(v.Tail) != 0 || len(v.Summaries) != 0 || len(before.Summaries) > 0 && s.Gen == before.Session.Gen || s.LastSeq != 4+2*round ||
			s.CompactedSeq != s.LastSeq || s.BaseSeq != s.LastSeq || s.TotalTokens != 0 || s.CompactionCount != 0 || !s.PinnedDue {
			b.Errorf("after the deletion the session is %+v with %d pending messages and the view\n%s", s, len(v.Pending), checkShown(v))
		}
		_, err = b.Store.Compactions.Undo(b.ctx, a.Lease, 0, 0)
		b.wantError(err, sessions.ErrNotFound, "undoing a compaction of before the deletion")
		b.commitTurn(a.Lease, newAnswer(v))
		b.checkPlaces(6 + 2*round)
		if v = b.beginTurn(a.Lease, 0); len(v.Tail) != 2 {
			b.Errorf("then the view is\n%s", checkShown(v))
		}
		old, before = a.Lease, v
	}
}

func testLostRowOfTurn(b *suite) {
	l := b.leaseWithMessages(1)
	b.runTurn(l, 1)
	for what, meanwhile := range map[string]func(){
		"nothing": func() {},
		"a look of another replica": func() {
			if turns := b.reviveSession(); !slices.Equal(turns, []sessions.Key{key}) {
				b.Errorf("left to their turns are %v, want the session", turns)
			}
			_, err := b.Other.Leases.Acquire(b.ctx, key, replicaB)
			b.wantError(err, sessions.ErrNotFound, "taking the session from its turn")
		},
		"a look of its own replica": func() {
			if turns := b.reviveSession(l); len(turns) != 0 {
				b.Errorf("left to their turns are %v after the owner's look", turns)
			}
		},
		"a message": func() {
			if a := b.acceptMessage(replicaA, 90); !a.New || a.Lease.Owner != "" {
				b.Errorf("without its row a session with a turn accepts %+v, want no owner", a)
			}
		},
		"a message at another replica": func() {
			b.sendBeat(replicaB)
			if a := b.acceptMessage(replicaB, 91); !a.New || a.Lease.Owner != "" {
				b.Errorf("without its row a session with a turn accepts %+v, want no owner", a)
			}
		},
		"a call of a tool": func() {
			b.checkError(b.Store.Turns.RecordRun(b.ctx, l, sessions.ToolRun{EventID: b.Log(b.T, key)[0].ID, Call: sessions.ToolCall{ID: "c", Name: "n"}}))
		},
	} {
		before, err := b.Store.Sessions.Session(b.ctx, key)
		b.checkError(err)
		if n := len(b.beginTurn(l, 10).Pending); n == 0 {
			b.acceptMessage(replicaA, 10+int(before.LastSeq))
		}
		v := b.beginTurn(l, 10)
		t, last := newAnswer(v), before.LastSeq+int64(len(v.Pending))+1
		b.DeleteRow(b.T, key)
		meanwhile()
		c := b.commitTurn(l, t)
		s, err := b.Store.Sessions.Session(b.ctx, key)
		b.checkError(err)
		if s.Lease != l || c.LastSeq != last || s.BaseSeq != before.LastSeq || s.TotalTokens != t.Appended || len(c.Replies) != 1 {
			b.Errorf("with %s between deletion and commit the session is %+v, committed %+v", what, s, c)
		}
		b.checkPlaces(last)
		_, err = b.Store.Turns.Commit(b.ctx, l, t)
		b.wantError(err, sessions.ErrConflict, "committing it again after "+what)
		b.DeleteRow(b.T, key)
		_, err = b.Store.Turns.Commit(b.ctx, l, t)
		b.wantError(err, sessions.ErrLeaseLost, "committing it again without a row after "+what)
		l = b.acceptMessage(replicaA, 50+int(before.LastSeq)).Lease
	}
}

func testLostRowOfTwoTurns(b *suite) {
	first := b.leaseWithMessages(1)
	b.sendBeat(replicaB)
	late := newAnswer(b.beginTurn(first, 10))
	b.DeleteRow(b.T, key)
	if turns := b.reviveSession(sessions.Lease{Key: key}); len(turns) != 0 {
		b.Errorf("left to their turns are %v, though that one is presumed dead", turns)
	}
	second := b.acquireLease(replicaB)
	v := b.beginTurn(second, 10)
	_, err := b.Store.Turns.Commit(b.ctx, first, late)
	b.wantError(err, sessions.ErrLeaseLost, "committing under another owner's lease")
	b.DeleteRow(b.T, key)
	_, err = b.Store.Turns.Commit(b.ctx, first, late)
	b.wantError(err, sessions.ErrLeaseLost, "committing after another turn began, without a row")
	b.commitTurn(second, newAnswer(v))
	b.checkPlaces(2)
	b.DeleteRow(b.T, key)
	_, err = b.Store.Turns.Commit(b.ctx, first, late)
	b.wantError(err, sessions.ErrLeaseLost, "committing after another turn, without a row")
	b.acceptMessage(replicaA, 2)
	b.checkPlaces(2)
}

func testLostRowOfErasedTurn(b *suite) {
	l := b.leaseWithMessages(1)
	b.runTurn(l, 1)
	b.endTries()
	b.acceptMessage(replicaA, 2)
	read := newAnswer(b.beginTurn(l, 10))
	b.eraseEvent(1)
	b.DeleteRow(b.T, key)
	_, err := b.Store.Turns.Commit(b.ctx, l, read)
	b.wantError(err, sessions.ErrLeaseLost, "committing what was read before an erasure")
	if turns := b.reviveSession(l); len(turns) != 0 {
		b.Errorf("left to their turns are %v, though an erasure ended that one", turns)
	}
	l = b.acquireLease(replicaA)
	b.commitTurn(l, newAnswer(b.beginTurn(l, 10)))
	b.checkPlaces(4)
}

func testLostRowOfReply(b *suite) {
	l := b.leaseWithMessages(1)
	b.runTurn(l, 1)
	b.DeleteRow(b.T, key)
	if turns := b.reviveSession(); len(turns) != 0 {
		b.Errorf("left to their turns are %v, want none", turns)
	}
	b.sendBeat(replicaB)
	l = b.acquireLease(replicaB)
	outs, err := b.Other.Outbox.Unsent(b.ctx, l)
	b.checkError(err)
	if len(outs) != 1 || !outs[0].Took {
		b.Errorf("unsent are %+v, want the reply of the turn before the deletion", outs)
	}
	b.checkPlaces(2)
}

func testLostRowIsErased(b *suite) {
	l := b.leaseWithMessages(1)
	b.runTurn(l, 1)
	b.endTries()
	b.DeleteRow(b.T, key)
	done, err := b.Store.Erasure.Erase(b.ctx, key, []int64{1})
	b.checkError(err)
	if done.Events != 1 {
		b.Errorf("the erasure gave %+v, want one event", done)
	}
	b.DeleteRow(b.T, key)
	gone, err := b.Store.Erasure.Delete(b.ctx, key)
	b.checkError(err)
	if gone.Events != 2 || len(b.Log(b.T, key)) != 0 {
		b.Errorf("the deletion gave %+v and left %d events", gone, len(b.Log(b.T, key)))
	}
	_, err = b.Store.Erasure.Delete(b.ctx, key)
	b.wantError(err, sessions.ErrNotFound, "deleting it again")
}
