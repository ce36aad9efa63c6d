package dingtalk

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/card"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
)

// waits shows that a turn of a new message waits, and returns the turn.
func (w *cardWorld) waits(key sessions.Key) (leave func(), s chat.Shown, o sessions.Outgoing) {
	w.Helper()
	ctx := testContext(w.T)
	o = asked(w.T, w.s, w.g, inGroup, "whole answer")
	accepted, err := w.store.Inbox.Accept(ctx, "a", key, sessions.Message{ID: sessions.MessageID(o.Reply.Nonce), Text: "hi"})
	if err != nil {
		w.Fatal(err)
	}
	w.lease = accepted.Lease
	s = chat.Shown{
		Lease: accepted.Lease, Asked: []sessions.Event{{ID: accepted.EventID}}, Target: o.Reply.Target, Tracks: []string{o.Reply.Nonce}, Lang: "zh",
		Look: func() {}, Sent: w.sent,
	}
	return w.queuer().Queue(ctx, s), s, o
}

func (w *cardWorld) queuer() chat.Queuer {
	w.Helper()
	q, ok := w.g.Display().(chat.Queuer)
	if !ok {
		w.Fatal("the display shows no waiting turns")
	}
	return q
}

// A turn that waits has its card, and goes on with it, also as one of several messages and in another process. It costs one
// call more: the frame after the wait.
func TestCardOfAWaitingTurn(t *testing.T) {
	t.Parallel()
	for _, other := range []bool{false, true} {
		t.Run(fmt.Sprint("another process ", other), func(t *testing.T) {
			t.Parallel()
			w := onCards(t, card.Auto)
			leave, s, o := w.waits(cardKey)
			await(t, "the card of the waiting turn", func() bool {
				cards := w.s.Cards("")
				return len(cards) == 1 && cards[0].State == dingtalktest.CardProcessing && strings.Contains(cards[0].Content, "排队中")
			})
			leave()
			g := w.g
			if other {
				g = run(t, w.s, w.process(card.Auto), nil)
			}
			s.Tracks = []string{"of an earlier message", o.Reply.Nonce}
			live := g.Display().Show(t.Context(), s)
			await(t, "the frame of the running turn", func() bool { return strings.Contains(w.s.Cards("")[0].Content, "正在思考") })
			o = w.commit(o, live.Stop())
			if sent := mustSend(t, g, o); sent.Via != chat.ViaCard {
				t.Errorf("the answer went by %s", sent.Via)
			}
			cards := w.s.Cards("")
			if len(cards) != 1 || cards[0].State != dingtalktest.CardFinished || !strings.Contains(cards[0].Content, "whole answer") {
				t.Errorf("the cards are %+v", cards)
			}
			if n := w.governor.Status().Calls; n != 4 { // the card, a frame, its end, its buttons
				t.Errorf("%d calls are counted", n)
			}
		})
	}
}

// A turn that goes on with a card shows no words there before the earlier answers are sent. Its answer ends the card all the same.
func TestNoWordsOnACardBeforeEarlierAnswers(t *testing.T) {
	t.Parallel()
	w := onCards(t, card.Auto)
	leave, s, o := w.waits(cardKey)
	await(t, "the card of the waiting turn", func() bool { return len(w.s.Cards("")) == 1 })
	leave()
	var asked atomic.Bool
	late := make(chan struct{})
	s.Sent = func(context.Context) bool { asked.Store(true); <-late; return false }
	live := w.g.Display().Show(t.Context(), s)
	await(t, "the question whether earlier answers are sent", asked.Load)
	live.Text("whole", false)
	close(late)
	o = w.commit(o, live.Stop())
	if c := w.s.Cards("")[0]; strings.Contains(c.Content, "whole") || !live.Visible() {
		t.Errorf("before the earlier answers the card shows %q", c.Content)
	}
	if sent := mustSend(t, w.g, o); sent.Via != chat.ViaCard {
		t.Errorf("the answer went by %s", sent.Via)
	}
}

// A waiting turn gets no card, and no call is counted, where cards are not streamed, calls are scarce, earlier answers are not
// sent, or the lease is lost.
func TestWaitingTurnWithoutACard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode    card.Mode
		prepare func(*cardWorld)
	}{
		"never streamed": {card.Never, func(*cardWorld) {}},
		"scarce":         {card.Auto, func(w *cardWorld) { w.useUp() }},
		"last quarter":   {card.Always, func(w *cardWorld) { w.use(760) }},
		"earlier unsent": {card.Auto, func(w *cardWorld) { w.sent = func(context.Context) bool { return false } }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := onCards(t, c.mode)
			c.prepare(w)
			made := w.governor.Status().Calls
			leave, _, _ := w.waits(cardKey)
			leave()
			if cards, n := w.s.Cards(""), w.governor.Status().Calls; len(cards) != 0 || n != made {
				t.Errorf("there are %d cards, and %d calls are counted, before %d", len(cards), n, made)
			}
		})
	}
	t.Run("lease lost", func(t *testing.T) {
		t.Parallel()
		w := onCards(t, card.Auto)
		_, s, _ := w.waits(cardKey)
		await(t, "the first card", func() bool { return len(w.s.Cards("")) == 1 })
		made := w.governor.Status().Calls
		s.Tracks = []string{"next"}
		s.Lease.Term-- // as after a takeover
		leave := w.queuer().Queue(t.Context(), s)
		await(t, "the return of the calls", func() bool { return w.governor.Made()[calls.CardCreate] == 1 && w.governor.Status().Calls == made })
		leave()
		if n := len(w.s.Cards("")); n != 1 {
			t.Errorf("there are %d cards", n)
		}
	})
}

// A turn of scheduled messages alone gets no card, waiting or running: its answer is a message, and no call is counted.
func TestScheduledTurnTakesNoCard(t *testing.T) {
	t.Parallel()
	for _, mode := range []card.Mode{card.Auto, card.Always, card.Never} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := onCards(t, mode)
			o := asked(t, w.s, w.g, inGroup, "whole answer")
			accepted, err := w.store.Inbox.Accept(t.Context(), "a", cardKey, sessions.Message{ID: "schedule:1:1", Text: "hi"})
			if err != nil {
				t.Fatal(err)
			}
			w.lease, o.Reply.Target.Scheduled = accepted.Lease, true
			s := chat.Shown{
				Lease: accepted.Lease, Asked: []sessions.Event{{ID: accepted.EventID}}, Target: o.Reply.Target, Tracks: []string{o.Reply.Nonce}, Lang: "zh",
				Look: func() {}, Sent: allSent,
			}
			w.queuer().Queue(testContext(t), s)()
			track := ""
			if live := w.g.Display().Show(testContext(t), s); live != nil {
				live.Text("words so far", false)
				track = live.Stop()
			}
			if sent := mustSend(t, w.g, w.commit(o, track)); sent.Via != chat.ViaWebhook {
				t.Errorf("the answer went by %s", sent.Via)
			}
			if cards, n := w.s.Cards(""), w.governor.Status().Calls; len(cards) != 0 || n != 0 {
				t.Errorf("there are %d cards, and %d calls are counted", len(cards), n)
			}
		})
	}
}

// A card that could not be delivered during the wait is opened by the turn, which streams on it. Another process, which does not
// know of the failure, creates it with the answer.
func TestCardNotDeliveredDuringTheWait(t *testing.T) {
	t.Parallel()
	for _, other := range []bool{false, true} {
		t.Run(fmt.Sprint("another process ", other), func(t *testing.T) {
			t.Parallel()
			w := onCards(t, card.Auto)
			fault := w.s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardSend, Count: 2, Action: dingtalktest.Do("card-system-busy")})
			leave, s, o := w.waits(cardKey)
			await(t, "the refused deliveries", func() bool { return w.s.FaultFired(fault) == 2 })
			leave()
			g := w.g
			if other {
				g = run(t, w.s, w.process(card.Auto), nil)
			}
			live := g.Display().Show(t.Context(), s)
			if !other {
				await(t, "the card of the running turn", func() bool { return len(w.s.Cards("")) == 1 })
				live.Text("words so far", false)
				await(t, "a frame", func() bool { return strings.Contains(w.s.Cards("")[0].Content, "words so far") })
			}
			o = w.commit(o, live.Stop())
			if sent := mustSend(t, g, o); sent.Via != chat.ViaCard {
				t.Errorf("the answer went by %s", sent.Via)
			}
			cards := w.s.Cards("")
			if len(cards) != 1 || cards[0].State != dingtalktest.CardFinished || !strings.Contains(cards[0].Content, "whole answer") {
				t.Errorf("the cards are %+v", cards)
			}
			if made, counted := w.s.State().Apps[0].APICalls, w.governor.Status().Calls; int64(made) != counted {
				t.Errorf("DingTalk counts %d calls, the governor %d", made, counted)
			}
		})
	}
}

// use takes calls of the month.
func (w *cardWorld) use(n int) {
	w.Helper()
	for range n {
		if _, err := w.governor.Reserve(w.Context(), calls.Finish, calls.GroupSend); err != nil {
			w.Fatal(err)
		}
	}
}

// However many turns wait, few of their cards are at the rate of the API at once. A turn that begins before its card is opened
// waits for nothing, and opens it itself.
func TestCardsOfWaitingTurnsAreBounded(t *testing.T) {
	t.Parallel()
	const many, atOnce = 300, 4
	w := onCards(t, card.Auto)
	var opening, most atomic.Int64
	w.sent = func(ctx context.Context) bool {
		n := opening.Add(1)
		defer opening.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-ctx.Done()
		return true
	}
	leave, s, _ := w.waits(cardKey)
	leaves := []func(){leave}
	for i := range many {
		s.Tracks = []string{fmt.Sprint("track", i)}
		leaves = append(leaves, w.queuer().Queue(t.Context(), s))
	}
	await(t, "the first cards", func() bool { return opening.Load() == atOnce })
	for _, leave := range leaves {
		leave()
	}
	if n := most.Load(); n != atOnce {
		t.Errorf("%d cards were opened at once, want %d", n, atOnce)
	}
	if cards, n := w.s.Cards(""), w.governor.Status().Calls; len(cards) != 0 || n != 0 {
		t.Errorf("turns that began have %d cards already, and %d calls are counted", len(cards), n)
	}
	s.Sent = allSent
	live := w.g.Display().Show(t.Context(), s)
	await(t, "the card of the running turn", live.Visible)
	live.Stop()
}

// An answer to several people on a card names them, since the card mentions those who had asked when it was opened. The names
// leave room for the text.
func TestCardNamesItsAskers(t *testing.T) {
	t.Parallel()
	var people []sessions.Mention
	for i := range 40 {
		people = append(people, sessions.Mention{StaffID: sessions.UserID(fmt.Sprint("staff", i)), Nick: fmt.Sprintf("欧阳@小明%02d", i)})
	}
	for n, want := range map[int]string{0: "text", 1: "text", 2: "欧阳小明00、欧阳小明01 \n\ntext"} {
		r := sessions.Reply{Text: "text", Target: sessions.Target{ConversationType: sessions.Group, Card: "track", Mentions: people[:n]}}
		if got := compose(r)[0].onCard(); got != want {
			t.Errorf("for %d people the card shows %q, want %q", n, got, want)
		}
	}
	r := sessions.Reply{Text: "text", Target: sessions.Target{ConversationType: sessions.Group, Card: "track", Mentions: people}}
	if got := compose(r)[0].onCard(); utf8.RuneCountInString(got) > 200 || !strings.Contains(got, "、… \n\ntext") {
		t.Errorf("for many people the card shows %q", got)
	}
}
