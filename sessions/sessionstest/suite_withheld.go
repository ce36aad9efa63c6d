package sessionstest

import (
	"time"

	"ebb/sessions"
)

const (
	refuser sessions.ModelID = "qwen-plus@host/v1"
	another sessions.ModelID = "deepseek-chat@host/v1"
)

// Marks are kept by model, with their events, and lift nothing of other models.
func testWithheld(b *suite) {
	l := b.leaseWithMessages(2)
	v := b.beginTurn(l, 2)
	turn := newAnswer(v)
	at := time.Now().Truncate(time.Millisecond)
	turn.TakenWithheld = []sessions.Withheld{{refuser: {Parts: []sessions.WithheldPart{sessions.WithheldBody}, Class: "refused", At: at}}}
	turn.Suspicion = &sessions.Suspicion{Model: refuser, Class: "refused", At: at, From: 1, Through: 3}
	b.commitTurn(l, turn)

	v = b.beginTurn(l, 0)
	if w := v.Tail[0].Withheld; !w.From(refuser, sessions.WithheldBody) || w.From(another, sessions.WithheldBody) || w[refuser].Class != "refused" || !w[refuser].At.Equal(at) {
		b.Errorf("the refused question is marked %+v", w)
	}
	if s := v.Session.Suspicion; !s.Concerns(refuser) || !s.At.Equal(at) || !s.Covers(refuser, 2) || s.Covers(another, 2) || s.Covers(refuser, 4) {
		b.Errorf("the suspicion is %+v", s)
	}
	count := func(why string, model sessions.ModelID, want int, newest int64) {
		b.Helper()
		c, err := b.Store.Withheld.CountWithheld(b.ctx, key, model)
		b.checkError(err)
		if c.Events != want || c.Newest.Seq != newest || newest == 1 && c.Newest.SenderID != "staff-1" {
			b.Errorf("%s: %+v", why, c)
		}
	}
	listed := func(why string, want int) {
		b.Helper()
		got, err := b.Store.Compactions.Backlogs(b.ctx, replicaA, 1<<30, "", 10)
		b.checkError(err)
		if len(got) != want || want > 0 && (got[0].Key != key || !got[0].Suspicion.Covers(refuser, 2)) {
			b.Errorf("%s: %+v is due for upkeep", why, got)
		}
	}
	listed("with rows under suspicion", 1)
	count("after the turn", refuser, 1, 1)
	count("of another model", another, 0, 0)

	late := sessions.Suspicion{Model: refuser, At: at.Add(time.Second), From: 3}
	version := v.Session.ViewVersion
	w := sessions.Withholding{Model: another, Class: "malformed", At: at, Settles: &late, Events: map[int64][]sessions.WithheldPart{
		1: {sessions.WithheldBody, sessions.WithheldNick}, 2: {sessions.WithheldQuote}, 99: {sessions.WithheldBody},
	}}
	b.checkError(b.Store.Withheld.Withhold(b.ctx, l, w))
	v = b.beginTurn(l, 0)
	if v.Session.Suspicion == nil {
		b.Error("a suspicion of another time was replaced")
	}
	if v.Session.ViewVersion == version {
		b.Error("the marks change no view")
	}
	if first := v.Tail[0].Withheld; !first.From(refuser, sessions.WithheldBody) || !first.From(another, sessions.WithheldNick) {
		b.Errorf("both models refuse the first message: %+v", first)
	}
	count("a quote, a nick and a title count, too", another, 2, 2)
	other := l
	other.Term--
	b.wantError(b.Store.Withheld.Withhold(b.ctx, other, w), sessions.ErrLeaseLost, "marking under another lease")

	w = sessions.Withholding{Model: refuser, At: at, Settles: v.Session.Suspicion, Events: map[int64][]sessions.WithheldPart{3: {sessions.WithheldBody}}}
	b.checkError(b.Store.Withheld.Withhold(b.ctx, l, w))
	if v = b.beginTurn(l, 0); v.Session.Suspicion != nil || !v.Tail[2].Withheld.From(refuser, sessions.WithheldBody) {
		b.Errorf("after the search: %+v, %+v", v.Session.Suspicion, v.Tail[2].Withheld)
	}

	listed("after the search", 0)

	b.compactSession(l, newCompaction(0, 3))
	sum := b.beginTurn(l, 0).Summaries[0]
	b.checkError(b.Store.Withheld.Withhold(b.ctx, l, sessions.Withholding{Model: refuser, At: at, Summaries: []int64{sum.ID}}))
	if sum = b.beginTurn(l, 0).Summaries[0]; !sum.Withheld.From(refuser, sessions.WithheldBody) {
		b.Errorf("the refused summary is marked %+v", sum.Withheld)
	}
	summaries := func(want int) {
		b.Helper()
		c, err := b.Store.Withheld.CountWithheld(b.ctx, key, refuser)
		b.checkError(err)
		if c.Summaries != want {
			b.Errorf("%d refused summaries, want %d", c.Summaries, want)
		}
	}
	summaries(1)
	b.checkError(b.Store.Compactions.Rewrite(b.ctx, l, sessions.Rewritten{ID: sum.ID, Text: "again", Tokens: 2}))
	if sum = b.beginTurn(l, 0).Summaries[0]; sum.Text != "again" || len(sum.Withheld) > 0 {
		b.Errorf("the summary that was written again: %+v", sum)
	}
	summaries(0)
	b.wantError(b.Store.Compactions.Rewrite(b.ctx, l, sessions.Rewritten{ID: sum.ID, Text: "twice", Tokens: 2}), sessions.ErrConflict, "rewriting a summary that no model refuses")

	b.acceptMessage(replicaA, 3)
	turn = newAnswer(b.beginTurn(l, 1))
	turn.Suspicion = &sessions.Suspicion{Model: refuser, At: at, From: 1, Through: 5}
	b.commitTurn(l, turn)
	b.checkError(b.Store.Sessions.Renew(b.ctx, l))
	if s := b.beginTurn(l, 0).Session.Suspicion; s != nil {
		b.Errorf("a new generation has the suspicion %+v", s)
	}
	count("in a new generation", refuser, 0, 0)
}

// An erasure takes the mark with the text.
func testWithheldErased(b *suite) {
	l := b.leaseWithMessages(1)
	turn := newAnswer(b.beginTurn(l, 1))
	turn.TakenWithheld = []sessions.Withheld{{refuser: {Parts: []sessions.WithheldPart{sessions.WithheldBody}}}}
	b.commitTurn(l, turn)
	_, err := b.Store.Erasure.Erase(b.ctx, key, []int64{1})
	b.checkError(err)
	l, err = b.Store.Leases.Acquire(b.ctx, key, replicaA)
	b.checkError(err)
	if e := b.beginTurn(l, 0).Tail[0]; len(e.Withheld) > 0 {
		b.Errorf("the erased message is marked %+v", e.Withheld)
	}
	b.checkError(b.Store.Withheld.Withhold(b.ctx, l, sessions.Withholding{Model: refuser, Events: map[int64][]sessions.WithheldPart{1: {sessions.WithheldBody}}}))
	if e := b.beginTurn(l, 0).Tail[0]; len(e.Withheld) > 0 {
		b.Errorf("an erased message was marked %+v", e.Withheld)
	}
}
