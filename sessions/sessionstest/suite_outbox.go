package sessionstest

import (
	"fmt"
	"slices"
	"time"

	"ebb/sessions"
)

func (b *suite) unsentReplies(l sessions.Lease) []sessions.Outgoing {
	b.Helper()
	list, err := b.Store.Outbox.Unsent(b.ctx, l)
	b.checkError(err)
	return list
}

func (b *suite) claimReply(l sessions.Lease, joint string, ids ...int64) []sessions.Outgoing {
	b.Helper()
	list, err := b.Store.Outbox.Claim(b.ctx, l, sessions.SendAttempt{IDs: ids, Joint: joint})
	b.checkError(err)
	return list
}

func testOutbox(b *suite) {
	l := b.leaseWithMessages(1)
	out := b.runTurn(l, 1).Replies[0]
	list := b.unsentReplies(l)
	if len(list) != 1 || list[0].ID != out.ID || list[0].Maybe || !list[0].NextAt.IsZero() || out.Attempts != 1 {
		b.Fatalf("unsent are %+v, want the commit's reply, due and not resumed", list)
	}
	if r := list[0].Reply; r.Text != "" || r.Nonce != "nonce" || r.Target.ConversationID != "cidGroup==" {
		b.Errorf("the list has %+v, want the place and the key, and no words", r)
	}
	next := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: out.ID, Attempt: 1, Part: 2, Via: "openapi", Error: "no calls", NextAt: next}))
	list = b.unsentReplies(l)
	if len(list) != 1 || list[0].Part != 2 || list[0].Via != "openapi" || !list[0].NextAt.Equal(next) {
		b.Errorf("after a failed try unsent are %+v, want two parts, next at %v, for lack of calls", list, next)
	}
	due := []bool{list[0].Due}
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: out.ID, Attempt: 1, Part: 2, Error: "busy", NextAt: time.Now().Add(-time.Second)}))
	for range 2 { // the first answer may get lost
		due = append(due, b.unsentReplies(l)[0].Due)
	}
	b.claimReply(l, "", out.ID)
	if due = append(due, b.unsentReplies(l)[0].Due); !slices.Equal(due, []bool{false, true, true, false}) {
		b.Errorf("the pause is over: %v, want that from its end to the next try", due)
	}
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: out.ID, Sent: true, Via: "webhook"}))
	if list = b.unsentReplies(l); len(list) != 0 {
		b.Errorf("after it was sent unsent are %+v", list)
	}
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: out.ID, Attempt: 2, NextAt: next}))
	if list = b.unsentReplies(l); len(list) != 0 {
		b.Errorf("a late word brought a sent reply back: %+v", list)
	}
	b.wantError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: out.ID + 1000}), sessions.ErrNotFound, "settling a reply that does not exist")
	b.acceptMessage(replicaA, 2)
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: b.runTurn(l, 1).Replies[0].ID, Failed: true, Error: "gone"}))
	if list = b.unsentReplies(l); len(list) != 0 {
		b.Errorf("a reply given up is still listed: %+v", list)
	}
}

// A notice is claimed before its first try.
func testOutboxNotify(b *suite) {
	l := b.leaseWithMessages(1)
	notice := sessions.Reply{Target: sessions.Target{ConversationID: "cidGroup=="}, Text: "busy", Nonce: "notice"}
	notify := func(l sessions.Lease) []sessions.Outgoing {
		b.Helper()
		outs, err := b.Store.Outbox.Announce(b.ctx, l, notice)
		b.checkError(err)
		return outs
	}
	if outs := notify(sessions.Lease{Key: key, Owner: replicaB, Term: l.Term}); len(outs) != 0 {
		b.Errorf("a replica without the lease stored %+v", outs)
	}
	outs := notify(l)
	open := b.unsentReplies(l)
	if len(outs) != 1 || outs[0].Attempts != 0 || outs[0].Key != key || outs[0].Created.IsZero() || len(open) != 1 || open[0].ID != outs[0].ID {
		b.Fatalf("stored is %+v, and unsent are %+v", outs, open)
	}
	if claimed := b.claimReply(l, "", open[0].ID); len(claimed) != 1 || claimed[0].Reply.Text != "busy" || claimed[0].Attempts != 1 {
		b.Errorf("claimed is %+v", claimed)
	}
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: outs[0].ID, Attempt: 1, Sent: true}))
	if again := notify(l); len(again) != 0 {
		b.Errorf("the same notice was stored again: %+v", again)
	}
}

// A claim returns the open parts as they are now, and counts the attempt. Marks of earlier attempts change nothing.
func testOutboxClaim(b *suite) {
	l := b.leaseWithMessages(3)
	var ids []int64
	for range 3 {
		ids = append(ids, b.runTurn(l, 1).Replies[0].ID)
	}
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: ids[1], Sent: true}))
	for try := 2; try <= 3; try++ {
		list := b.claimReply(l, "together", ids...)
		if len(list) != 2 || list[0].ID != ids[0] || list[1].ID != ids[2] {
			b.Fatalf("claimed are %+v, want the first and the third", list)
		}
		for _, o := range list {
			if o.Attempts != try || o.Joint != "together" || o.Maybe || o.Created.IsZero() {
				b.Errorf("claimed is %+v, want try %d, in no doubt", o, try)
			}
			if r := o.Reply; r.Text != "答复" || r.Nonce != "nonce" || r.Target.Webhook != "https://example.com/hook" {
				b.Errorf("the reply lost something: %+v", r)
			}
		}
	}
	soon := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	b.wantError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: ids[0], Attempt: 2, NextAt: soon}), sessions.ErrNotFound, "a late mark")
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: ids[0], Attempt: 3, Maybe: true, NextAt: soon}))
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: ids[2], Attempt: 3, Refused: true, NextAt: soon}))
	list := b.unsentReplies(l)
	if len(list) != 2 || !list[0].Maybe || list[0].Joint != "together" || list[0].Refusals != 0 {
		b.Errorf("unsent are %+v, want the first in doubt, as a part of its message", list)
	}
	if list[1].Maybe || list[1].Joint != "" || list[1].Refusals != 1 {
		b.Errorf("the refused reply is %+v, want it in no doubt, in no message, refused once", list[1])
	}
	if list := b.claimReply(l, "", ids[0]); len(list) != 1 || !list[0].Maybe || list[0].Joint != "" {
		b.Errorf("claimed alone is %+v, want it still in doubt", list)
	}
	if list := b.claimReply(l, "", ids[1], 1<<40); len(list) != 0 {
		b.Errorf("claimed are %+v, want none", list)
	}
}

// A claim for a later part keeps the number of arrived parts. Later claims with fewer, or with parts of another text,
// change nothing.
func testOutboxParts(b *suite) {
	l := b.leaseWithMessages(1)
	reply := b.runTurn(l, 1).Replies[0]
	for _, c := range []struct {
		known int
		nonce string
		want  int
	}{{2, reply.Reply.Nonce, 2}, {0, reply.Reply.Nonce, 2}, {3, reply.Reply.Nonce, 3}, {4, "another", 3}} {
		list, err := b.Store.Outbox.Claim(b.ctx, l, sessions.SendAttempt{IDs: []int64{reply.ID}, Part: c.known, Nonce: c.nonce})
		b.checkError(err)
		if len(list) != 1 || list[0].Part != c.want {
			b.Errorf("claimed with %d parts is %+v, want %d", c.known, list, c.want)
		}
	}
	if list := b.unsentReplies(l); len(list) != 1 || list[0].Part != 3 {
		b.Errorf("unsent is %+v, want three parts that arrived", list)
	}
}

// A reply whose try was in flight when its replica died may have arrived. One that was not tried, or whose last try
// surely failed, has not.
func testOutboxResumed(b *suite) {
	l := b.leaseWithMessages(4)
	first, second := b.runTurn(l, 1).Replies[0], b.runTurn(l, 1).Replies[0]
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: second.ID, Attempt: 1, NextAt: time.Now().Add(time.Hour)}))
	third := b.runTurn(l, 1).Replies[0]
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: third.ID, Attempt: 1, NextAt: time.Now().Add(time.Hour)}))
	b.claimReply(l, "", third.ID)
	behind := b.commitTurn(l, sessions.TurnResult{
		Taken: []int64{b.beginTurn(l, 1).Pending[0].ID}, TakenTokens: []int{1}, ReplyWaits: true,
		Reply: &sessions.Reply{Text: "more", Nonce: "nonce-2", Target: sessions.Target{ConversationID: "cidGroup=="}},
	}).Replies[0]
	if behind.Attempts != 0 {
		b.Errorf("a reply that waits was committed as %+v", behind)
	}
	b.Expire(b.T, replicaA)
	b.sendBeat(replicaB)
	for _, owner := range []sessions.ReplicaID{replicaB, "replica-c"} {
		l := b.acquireLease(owner)
		list := b.unsentReplies(l)
		if len(list) != 4 || list[0].ID != first.ID || list[1].ID != second.ID || list[2].ID != third.ID || list[3].ID != behind.ID {
			b.Fatalf("%s sees replies %+v, want all, oldest first", owner, list)
		}
		if !list[0].Maybe || !list[0].NextAt.IsZero() {
			b.Errorf("%s: the reply in the dead replica's hand is %+v, want resumed and due", owner, list[0])
		}
		if list[1].Maybe || list[1].NextAt.IsZero() {
			b.Errorf("%s: the reply that was waiting is %+v, want it in no doubt, and not due", owner, list[1])
		}
		if !list[2].Maybe || !list[2].NextAt.IsZero() {
			b.Errorf("%s: the reply that was claimed is %+v, want resumed and due", owner, list[2])
		}
		if list[3].Maybe || !list[3].NextAt.IsZero() {
			b.Errorf("%s: the reply that waited behind the others is %+v, want it in no doubt, and due", owner, list[3])
		}
		if slices.ContainsFunc(list, func(o sessions.Outgoing) bool { return !o.Took }) {
			b.Errorf("%s: the replies are %+v, want all taken over", owner, list)
		}
		if list = b.unsentReplies(l); len(list) != 4 || list[0].Took || !list[0].Maybe {
			b.Errorf("%s: read again the replies are %+v, want its own, and still in doubt", owner, list)
		}
		b.Expire(b.T, owner)
	}
}

// A reply that another replica had may be under way, unless its sender released it and no earlier try is in doubt.
func testOutboxPutDown(b *suite) {
	l := b.leaseWithMessages(4)
	past := time.Now().Add(-time.Hour)
	var ids []int64
	for i := range 4 {
		ids = append(ids, b.runTurn(l, 1).Replies[0].ID)
		if i < 3 { // the fourth was not tried
			b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: ids[i], Attempt: 1, Maybe: i == 1, NextAt: past}))
		}
	}
	b.checkError(b.Store.Outbox.PutDown(b.ctx, replicaB))
	b.checkError(b.Store.Outbox.PutDown(b.ctx, replicaA))
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: ids[2], Sent: true}))
	b.Expire(b.T, replicaA)
	b.sendBeat(replicaB)
	var got []bool
	for _, o := range b.unsentReplies(b.acquireLease(replicaB)) {
		got = append(got, o.Maybe)
		if !o.Took || !o.NextAt.IsZero() {
			b.Errorf("reply %+v, want it taken over and due", o)
		}
	}
	if !slices.Equal(got, []bool{false, true, false}) {
		b.Errorf("in doubt are %v, want the one with a lost answer alone", got)
	}
}

// abandoned lists the tracks of abandoned cards, which come back at once.
func (b *suite) abandoned() []string {
	b.Helper()
	list, err := b.Store.Cards.AbandonedCards(b.ctx, sessions.ReplyCard, 0, 10)
	b.checkError(err)
	var tracks []string
	for _, c := range list {
		if c.Key == key {
			tracks = append(tracks, c.Track)
		}
	}
	return tracks
}

// A card is abandoned once neither a waiting message nor an unsent reply can finish it.
func testCards(b *suite) {
	l := b.leaseWithMessages(1)
	v := b.beginTurn(l, 1)
	card := sessions.Card{Kind: sessions.ReplyCard, Track: "track-1", EventID: v.Pending[0].ID}
	for i, want := range []bool{false, true} {
		state, known, err := b.Store.Cards.OpenCard(b.ctx, l, card, 0)
		if b.checkError(err); state != sessions.CardOpen || known != want {
			b.Errorf("opened %d times the card is %s, known %t", i+1, state, known)
		}
	}
	if got := b.abandoned(); len(got) != 0 {
		b.Errorf("abandoned beside a waiting message: %v", got)
	}
	if c, err := b.Store.Cards.OpenCardOf(b.ctx, key, []string{"another", card.Track}, nil); err != nil || c.Track != card.Track || c.EventID != card.EventID || !c.Prepaid {
		b.Errorf("the open card is %+v, %v", c, err)
	}
	stale := l
	stale.Term--
	_, _, err := b.Store.Cards.OpenCard(b.ctx, stale, card, 0)
	b.wantError(err, sessions.ErrLeaseLost, "a card under a former lease")

	turn := newAnswer(v)
	turn.Reply.Target.Card = card.Track
	done := b.commitTurn(l, turn)
	if got := b.abandoned(); len(got) != 0 {
		b.Errorf("abandoned beside its unsent reply: %v", got)
	}
	if list := b.unsentReplies(l); len(list) != 1 || list[0].Reply.Target.Card != card.Track {
		b.Errorf("unsent are %+v, want the reply with its card", list)
	}
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: done.Replies[0].ID, Sent: true, Via: "webhook"}))
	if got := b.abandoned(); len(got) != 1 || got[0] != card.Track {
		b.Errorf("abandoned after the reply took another way: %v", got)
	}
	list, err := b.Store.Cards.AbandonedCards(b.ctx, sessions.ReplyCard, time.Hour, 10)
	if b.checkError(err); len(list) != 1 || list[0].EventID != card.EventID || list[0].CreatedAt.IsZero() || !list[0].Prepaid {
		b.Errorf("claimed is %+v, want the card with its prepaid end", list)
	}
	if got := b.abandoned(); len(got) != 0 {
		b.Errorf("claimed twice: %v", got)
	}
	for i, want := range []bool{true, false} {
		if first, err := b.Store.Cards.RateCard(b.ctx, key, card.Track, []sessions.Rating{sessions.Good, sessions.Bad}[i]); first != want || err != nil {
			b.Errorf("rating %d is the first: %t, %v", i+1, first, err)
		}
	}
	b.checkError(b.Store.Cards.SettleCard(b.ctx, key, card.Track, sessions.CardFailed))
	state, known, err := b.Store.Cards.OpenCard(b.ctx, l, card, 0)
	if b.checkError(err); state != sessions.CardFailed || !known {
		b.Errorf("a settled card is %s, known %t", state, known)
	}
	_, err = b.Store.Cards.OpenCardOf(b.ctx, key, []string{card.Track}, nil)
	b.wantError(err, sessions.ErrNotFound, "a settled card that is open")
}

// A reply that is settled on its card settles the card, also one that the commit recorded.
func testCardsOfReplies(b *suite) {
	l := b.leaseWithMessages(2)
	for i, want := range []sessions.CardState{sessions.CardFinished, sessions.CardFailed} {
		v := b.beginTurn(l, 1)
		turn, track := newAnswer(v), "unstreamed-"+string(want)
		turn.Reply.Target.Card = track
		done := b.commitTurn(l, turn)
		b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: done.Replies[0].ID, Sent: i == 0, Failed: i == 1, Via: "card", Card: want, Carrier: "key of " + track}))
		quoted, err := b.Store.Turns.Quoted(b.ctx, key, sessions.Quote{FromBot: true, Card: "key of " + track})
		if b.checkError(err); quoted.Role != sessions.RoleAssistant || quoted.Content != turn.Events[0].Content {
			b.Errorf("the quoted card is %+v, want the answer %q", quoted, turn.Events[0].Content)
		}
		_, err = b.Store.Turns.Quoted(b.ctx, key, sessions.Quote{FromBot: true, Card: "key of another card"})
		b.wantError(err, sessions.ErrNotFound, "a card with another key")
		state, known, err := b.Store.Cards.OpenCard(b.ctx, l, sessions.Card{Kind: sessions.ReplyCard, Track: track, EventID: v.Pending[0].ID}, 0)
		if b.checkError(err); state != want || !known {
			b.Errorf("the card of a settled reply is %s, known %t, want %s", state, known, want)
		}
	}
	if got := b.abandoned(); len(got) != 0 {
		b.Errorf("settled cards are abandoned: %v", got)
	}
}

// A click is of a person who asked, or not, during the turn and after it. A turn of several messages has several such
// people.
func testClickedCards(b *suite) {
	accept := func(n int) {
		b.Helper()
		m := newMessage(n)
		m.SenderID, m.SentAt = sessions.UserID(fmt.Sprint("person ", n)), time.Now().Add(time.Duration(-n)*time.Minute)
		if n < 6 { // the later ones are those of an older release: the robot's organization is that of the others
			m.Organization = "corp"
		}
		_, err := b.Store.Inbox.Accept(b.ctx, replicaA, key, m)
		b.checkError(err)
	}
	others := []sessions.UserID{"stranger", "person 1", "person 4"}
	accept(1)
	l := b.leaseWithMessages(0)
	b.runTurn(l, 1)
	accept(2) // arrives first, and was sent last
	accept(3)
	v := b.beginTurn(l, 2)
	asked := v.Pending[0].SenderID
	card := sessions.Card{Kind: sessions.ReplyCard, Track: "clicked", EventID: v.Pending[1].ID}
	_, _, err := b.Store.Cards.OpenCard(b.ctx, l, card, 0)
	b.checkError(err)
	look := func(by sessions.UserID) sessions.Clicked {
		b.Helper()
		c, err := b.Store.Cards.ClickedCard(b.ctx, card.Track, by)
		b.checkError(err)
		return c
	}
	if c := look(asked); !c.Running || !c.Asked || !c.Shared || c.Key != key || c.EventID != card.EventID || c.Message.ConversationID != "cidGroup==" || c.Message.Organization != "corp" || c.Words != v.Pending[0].Content {
		b.Errorf("a click of one who asked, while the turn runs: %+v", c)
	}
	if c := look(others[0]); c.Asked || c.Words != "" {
		b.Errorf("a click of a stranger: %+v", c)
	}
	turn := newAnswer(v)
	turn.Reply.Target.Card = card.Track
	b.commitTurn(l, turn)
	accept(4)
	b.runTurn(l, 1)
	for _, e := range v.Pending {
		if c := look(e.SenderID); c.Running || !c.Asked || c.Shared || c.State != sessions.CardOpen {
			b.Errorf("a click of one who asked, after the commit: %+v", c)
		}
	}
	for _, other := range others {
		if c := look(other); c.Asked {
			b.Errorf("a click of %s, after the commit: %+v", other, c)
		}
	}
	_, err = b.Store.Cards.ClickedCard(b.ctx, "none", asked)
	b.wantError(err, sessions.ErrNotFound, "a click on an unknown card")

	accept(5)
	turn = newAnswer(b.beginTurn(l, 1)) // stopped, without an answer
	turn.Events, turn.Reply = nil, nil
	b.commitTurn(l, turn)
	accept(6)
	v = b.beginTurn(l, 1)
	card = sessions.Card{Kind: sessions.ReplyCard, Track: "clicked alone", EventID: v.Pending[0].ID}
	_, _, err = b.Store.Cards.OpenCard(b.ctx, l, card, 0)
	b.checkError(err)
	if c := look("person 6"); !c.Asked || c.Shared || c.Message.Organization != "corp" {
		b.Errorf("a click of the only one who asked: %+v", c)
	}
	turn = newAnswer(v)
	turn.Reply.Target.Card = card.Track
	b.commitTurn(l, turn)
	if c := look("person 6"); !c.Asked {
		b.Errorf("a click of the only one who asked, after the commit: %+v", c)
	}
	if c := look("person 5"); c.Asked {
		b.Errorf("a click of a person whose turn before had no answer: %+v", c)
	}
}

// A reply leaves its card permanently, and only by its last claim. The card is then abandoned.
func testLeftCards(b *suite) {
	l := b.leaseWithMessages(1)
	turn := newAnswer(b.beginTurn(l, 1))
	turn.Reply.Target.Card = "left"
	first := b.commitTurn(l, turn).Replies[0]
	second := b.claimReply(l, "", first.ID)[0]
	b.wantError(b.Store.Cards.LeaveCard(b.ctx, first), sessions.ErrConflict, "leaving a card after a later claim")
	if got := b.abandoned(); len(got) != 0 {
		b.Errorf("the card of an unsent reply is abandoned: %v", got)
	}
	b.checkError(b.Store.Cards.LeaveCard(b.ctx, second))
	if got := b.abandoned(); !slices.Equal(got, []string{"left"}) {
		b.Errorf("abandoned are %v", got)
	}
	if third := b.claimReply(l, "", first.ID)[0]; third.Reply.Target.Card != "" {
		b.Errorf("the reply is on card %s again", third.Reply.Target.Card)
	}
	b.checkError(b.Store.Outbox.Settle(b.ctx, sessions.SendOutcome{Key: key, ID: first.ID, Sent: true, Via: "webhook"}))
	b.wantError(b.Store.Cards.LeaveCard(b.ctx, second), sessions.ErrConflict, "leaving the card of a sent reply")
}

// The end of a card is prepaid from its opening, through the commit and each claim, until a call that ends it failed.
func testPrepaidCards(b *suite) {
	l := b.leaseWithMessages(2)
	v := b.beginTurn(l, 1)
	card := sessions.Card{Kind: sessions.ReplyCard, Track: "prepaid", EventID: v.Pending[0].ID}
	_, _, err := b.Store.Cards.OpenCard(b.ctx, l, card, 0)
	b.checkError(err)
	turn := newAnswer(v)
	turn.Reply.Target.Card = card.Track
	done := b.commitTurn(l, turn)
	check := func(track, when string, want bool) {
		b.Helper()
		c, err := b.Store.Cards.ClickedCard(b.ctx, track, "")
		if b.checkError(err); c.Prepaid != want || c.Kind != sessions.ReplyCard {
			b.Errorf("%s card %s is %+v, want a prepaid end: %t", when, track, c.Card, want)
		}
	}
	check("prepaid", "after the commit", true)
	b.checkError(b.Store.Cards.LeaveCard(b.ctx, done.Replies[0]))
	for i, want := range []bool{true, true, false} {
		if i == 2 {
			b.checkError(b.Store.Cards.SetPrepaid(b.ctx, sessions.Card{Key: key, Track: card.Track}))
		}
		list, err := b.Store.Cards.AbandonedCards(b.ctx, sessions.ReplyCard, 0, 10)
		if b.checkError(err); len(list) != 1 || list[0].Prepaid != want {
			b.Errorf("claim %d has %+v, want a prepaid call: %t", i+1, list, want)
		}
	}
	turn = newAnswer(b.beginTurn(l, 1))
	turn.Reply.Target.Card = "unstreamed"
	b.commitTurn(l, turn)
	check("unstreamed", "after the commit", false)
	b.checkError(b.Store.Cards.SetPrepaid(b.ctx, sessions.Card{Key: key, Track: "unstreamed", Prepaid: true}))
	check("unstreamed", "before the delivery", true)
}

// Reactions and reply cards are claimed apart. A reaction is abandoned when its message is answered, and not before
// its hold ends.
func testReactions(b *suite) {
	l := b.leaseWithMessages(1)
	v := b.beginTurn(l, 1)
	reaction := sessions.Card{Kind: sessions.ReactionCard, Track: "m1", EventID: v.Pending[0].ID}
	_, _, err := b.Store.Cards.OpenCard(b.ctx, l, reaction, time.Hour)
	b.checkError(err)
	claimed := func() []sessions.Card {
		b.Helper()
		list, err := b.Store.Cards.AbandonedCards(b.ctx, sessions.ReactionCard, time.Hour, 10)
		b.checkError(err)
		return list
	}
	b.commitTurn(l, newAnswer(v))
	if list := claimed(); len(list) != 0 {
		b.Errorf("claimed within the hold: %+v", list)
	}
	b.checkError(b.Store.Cards.SettleCard(b.ctx, key, reaction.Track, sessions.CardOpen))
	if tracks := b.abandoned(); len(tracks) != 0 {
		b.Errorf("claimed as cards of replies: %v", tracks)
	}
	if list := claimed(); len(list) != 1 || list[0].Track != "m1" || list[0].Kind != sessions.ReactionCard || list[0].EventID != reaction.EventID || !list[0].Prepaid {
		b.Errorf("claimed are %+v, want the reaction", list)
	}
	b.checkError(b.Store.Cards.SettleCard(b.ctx, key, reaction.Track, sessions.CardFinished))
	if state, known, err := b.Store.Cards.OpenCard(b.ctx, l, reaction, 0); err != nil || state != sessions.CardFinished || !known {
		b.Errorf("a removed reaction is %s, known %t, %v", state, known, err)
	}
	b.checkError(b.Store.Cards.SettleCard(b.ctx, key, reaction.Track, sessions.CardOpen))
	if list := claimed(); len(list) != 1 || list[0].Track != "m1" || list[0].Tries != 1 || list[0].Prepaid {
		b.Errorf("claimed are %+v, want the reaction again, whose call came after its removal, and whose removal is counted again", list)
	}
}
