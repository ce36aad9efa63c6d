package dingtalk

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/card"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
)

// eager is a storage in which no time passes between two attempts to end a card. It keeps the pauses that were asked for.
type eager struct {
	sessions.Cards
	pauses []time.Duration
}

func (s *eager) AbandonedCards(ctx context.Context, kind sessions.CardKind, _ time.Duration, limit int) ([]sessions.Card, error) {
	return s.Cards.AbandonedCards(ctx, kind, 0, limit)
}

func (s *eager) PostponeCard(ctx context.Context, c sessions.Card, pause time.Duration, made bool) error {
	s.pauses = append(s.pauses, pause)
	return s.Cards.PostponeCard(ctx, c, 0, made)
}

// dying is a storage of a process that is killed while it ends a card: it claims one card, and stores nothing after that.
type dying struct {
	sessions.Cards
	dead bool
}

var errKilled = errors.New("killed")

func (s *dying) AbandonedCards(ctx context.Context, kind sessions.CardKind, _ time.Duration, limit int) ([]sessions.Card, error) {
	if s.dead {
		return nil, errKilled
	}
	s.dead = true
	return s.Cards.AbandonedCards(ctx, kind, 0, limit)
}

func (*dying) PostponeCard(context.Context, sessions.Card, time.Duration, bool) error {
	return errKilled
}

func (*dying) SettleCard(context.Context, sessions.Key, string, sessions.CardState) error {
	return errKilled
}

// closeWith makes attempts to close abandoned cards, as a process with this storage.
func (w *cardWorld) closeWith(ctx context.Context, store sessions.Cards) error {
	w.Helper()
	own := w.cards
	w.cards = store
	p := w.process(card.Auto)
	w.cards = own
	return p.Background()[0].Do(ctx)
}

// abandon leaves a card whose reply took another way.
func (w *cardWorld) abandon() (track string) {
	w.Helper()
	live, o := w.turn()
	track = live.Stop()
	mustSend(w.T, w.g, w.commit(o, ""))
	return track
}

func (w *cardWorld) stateOf(track string) sessions.CardState {
	w.Helper()
	c, err := w.store.Cards.ClickedCard(w.Context(), track, "")
	if err != nil {
		w.Fatal(err)
	}
	return c.State
}

// A process that has a session again counts the end of its card, if another process made the prepaid call meanwhile. The month has as
// many calls as DingTalk saw.
func TestEndSpentElsewhereIsCounted(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"in a turn that begins again": true, "in a later attempt of the reply": false} {
		for _, spent := range []bool{false, true} {
			w := onCards(t, card.Auto)
			live, o := w.turn()
			live.Text("one", false)
			await(t, "a frame", func() bool { return len(w.s.Cards("")) == 1 && strings.Contains(w.s.Cards("")[0].Content, "one") })
			track, elsewhere := live.Stop(), 0
			spend := func() {
				if !spent {
					return
				}
				if elsewhere++; w.store.Cards.SetPrepaid(t.Context(), sessions.Card{Key: cardKey, Track: track}) != nil {
					t.Error("the prepaid call is not spent")
				}
			}
			if again {
				spend()
				pending, err := w.store.Inbox.Pending(t.Context(), cardKey, 1)
				if err != nil || len(pending) != 1 {
					t.Fatal(pending, err)
				}
				next := w.g.Display().Show(t.Context(), chat.Shown{
					Lease: w.lease, Asked: pending, Target: o.Reply.Target, Tracks: []string{track}, Lang: "zh", Sent: w.sent, Look: func() {},
				})
				if next.Stop() != track {
					t.Error("the turn has another card")
				}
			}
			o = w.commit(o, track)
			if !again {
				spend()
				o = w.claim(o)
			}
			if sent := mustSend(t, w.g, o); sent.Via != chat.ViaCard {
				t.Errorf("%s: the answer went by %s", name, sent.Via)
			}
			if counted, made := int(w.governor.Status().Calls), w.s.State().Apps[0].APICalls+elsewhere; counted != made {
				t.Errorf("%s, spent elsewhere %t: %d calls are counted, and %d were made", name, spent, counted, made)
			}
		}
	}
}

// A call that ends an abandoned card is counted before it is made, also that of a process that is killed during the call. In a
// month that is used up the card ends all the same.
func TestClosesOfKilledProcessesAreCounted(t *testing.T) {
	t.Parallel()
	for _, spent := range []bool{false, true} {
		w := onCards(t, card.Auto)
		track := w.abandon()
		w.s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardStream, Action: dingtalktest.Do("reset-after")})
		if err := w.closeWith(t.Context(), &dying{Cards: w.store.Cards}); !errors.Is(err, errKilled) {
			t.Fatalf("the killed process ended with %v", err)
		}
		want := w.governor.Status().Calls + 1
		if spent {
			w.useUp()
			want = w.governor.Status().Calls
		}
		if err := w.closeWith(t.Context(), &eager{Cards: w.store.Cards}); err != nil {
			t.Errorf("closing the card again: %v", err)
		}
		if s := w.stateOf(track); s != sessions.CardFailed {
			t.Errorf("the card is %s", s)
		}
		if n, made := w.governor.Status().Calls, w.governor.Made()[calls.CardStream]; n != want || made != 2 {
			t.Errorf("month spent %t: %d updates were made, and %d calls are counted, want %d", spent, made, n, want)
		}
	}
}

// A card that DingTalk does not end costs a bounded number of calls, after growing pauses. Then it is given up, with one
// warning, and counted for administrators.
func TestCardIsGivenUp(t *testing.T) {
	t.Parallel()
	const attempts = 12
	w := onCards(t, card.Auto)
	track := w.abandon()
	fault := w.s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardStream, Count: dingtalktest.Unlimited, Action: dingtalktest.Do("card-system-busy")})
	before := w.governor.Status().Calls
	var log bytes.Buffer
	store := &eager{Cards: w.store.Cards}
	if err := w.closeWith(zerolog.New(&log).WithContext(t.Context()), store); err == nil {
		t.Error("no attempt failed")
	}
	if n, made := w.s.FaultFired(fault), w.governor.Status().Calls-before; n != attempts || made != attempts-1 { // the first is prepaid
		t.Errorf("%d attempts, %d calls are counted, want %d attempts", n, made, attempts)
	}
	total := time.Duration(0)
	for i, pause := range store.pauses {
		if total += pause; i > 0 && pause < store.pauses[i-1] {
			t.Errorf("the pauses are %v", store.pauses)
		}
	}
	if store.pauses[0] > 5*time.Second || total < time.Hour || total > 3*time.Hour {
		t.Errorf("the attempts take %s: %v", total, store.pauses)
	}
	if s := w.stateOf(track); s != sessions.CardGivenUp {
		t.Errorf("the card is %s", s)
	}
	if n, err := w.store.Cards.GivenUpCards(t.Context()); n != 1 || err != nil {
		t.Errorf("%d cards are given up, %v", n, err)
	}
	if n := strings.Count(log.String(), "Card given up"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, &log)
	}
}

// A refusal that would meet any card gives none up, however long it lasts: the card ends when DingTalk permits the call.
func TestCardWaitsForTheAccount(t *testing.T) {
	t.Parallel()
	const refusals = 20
	for _, fault := range []string{"quota", "permission"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			w := onCards(t, card.Auto)
			track := w.abandon()
			id := w.s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardStream, Count: refusals, Action: dingtalktest.Do(fault)})
			for range refusals {
				w.governor = calls.New(calls.Options{Store: calls.NewMemory(), Quota: 1000}) // the pause of the refusal has passed
				_ = w.closeWith(t.Context(), &eager{Cards: w.store.Cards})
			}
			if n, s := w.s.FaultFired(id), w.stateOf(track); n != refusals || s != sessions.CardOpen {
				t.Errorf("the card is %s after %d refusals, want %d", s, n, refusals)
			}
			w.governor = calls.New(calls.Options{Store: calls.NewMemory(), Quota: 1000})
			if err := w.closeWith(t.Context(), &eager{Cards: w.store.Cards}); err != nil || w.stateOf(track) != sessions.CardFailed {
				t.Errorf("after the refusals the card is %s, %v", w.stateOf(track), err)
			}
		})
	}
}

// A claim without a call that the month permits is no attempt and no failure: the card ends in a later month.
func TestCardWaitsForTheNextMonth(t *testing.T) {
	t.Parallel()
	w := onCards(t, card.Auto)
	track := w.abandon()
	if err := w.store.Cards.SetPrepaid(t.Context(), sessions.Card{Key: cardKey, Track: track}); err != nil {
		t.Fatal(err)
	}
	w.useUp()
	store := &eager{Cards: w.store.Cards}
	for range 2 { // 20 claims each
		if err := w.closeWith(t.Context(), store); err != nil {
			t.Fatalf("closing a card without calls: %v", err)
		}
	}
	if s := w.stateOf(track); s != sessions.CardOpen || store.pauses[0] > time.Minute {
		t.Errorf("the card is %s, with the pause %s", s, store.pauses[0])
	}
	w.governor = calls.New(calls.Options{Store: calls.NewMemory(), Quota: 1000}) // as after the change of the month
	if err := w.closeWith(t.Context(), store); err != nil || w.stateOf(track) != sessions.CardFailed {
		t.Errorf("in the next month the card is %s, %v", w.stateOf(track), err)
	}
}
