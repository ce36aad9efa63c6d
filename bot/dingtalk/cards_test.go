package dingtalk

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/card"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
	"ebb/sessions/memstore"
)

const (
	cardTemplate = "card.schema"
	cardKey      = sessions.Key("robot/cidRoom")
)

// cardWorld is a transport that replies on cards.
type cardWorld struct {
	*testing.T
	s        *dingtalktest.Server
	g        *gateway
	months   calls.Store
	governor *calls.Governor
	store    *memstore.Store
	cards    sessions.Cards // as the transport sees them
	lease    sessions.Lease
	interval time.Duration              // 0: a card is opened at once, and updated as often as its API permits
	sent     func(context.Context) bool // whether earlier replies are sent
	looked   chan struct{}              // a display asks its turn to look; nil: not noted
}

func onCards(t *testing.T, mode card.Mode) *cardWorld {
	t.Helper()
	return onCardsEvery(t, mode, 0)
}

func onCardsEvery(t *testing.T, mode card.Mode, interval time.Duration) *cardWorld {
	t.Helper()
	o := dingtalktest.Fast()
	o.CardTemplates = []dingtalktest.CardTemplate{{ID: cardTemplate}}
	months := calls.NewMemory()
	w := &cardWorld{T: t, s: dingtalktest.NewServer(t, o), months: months, governor: calls.New(calls.Options{Store: months, Quota: 1000}), store: memstore.New(time.Minute), interval: interval, sent: allSent}
	w.cards = w.store.Cards
	w.g = run(t, w.s, w.process(mode), nil)
	return w
}

// lossy loses the answers of the storage to new cards.
type lossy struct{ sessions.Cards }

func (s lossy) OpenCard(ctx context.Context, l sessions.Lease, c sessions.Card, hold time.Duration) (sessions.CardState, bool, error) {
	if _, _, err := s.Cards.OpenCard(ctx, l, c, hold); err != nil {
		return "", false, err
	}
	return "", false, errors.New("the answer was lost")
}

// process is a transport as of another process over the same storage.
func (w *cardWorld) process(mode card.Mode) *Transport {
	w.Helper()
	return newTransport(w.T, w.s.URL, func(c *Config) {
		c.Calls = w.governor
		c.Cards = &Cards{
			Store: w.cards, Template: cardTemplate, Key: "content", Stream: mode, Interval: w.interval,
			Language: func(sessions.ConversationID) string { return "zh" },
		}
	})
}

// useUp takes all calls of the month.
func (w *cardWorld) useUp() {
	w.Helper()
	for {
		if _, err := w.governor.Reserve(w.Context(), calls.Finish, calls.GroupSend); calls.IsRefused(err) {
			return
		} else if err != nil {
			w.Fatal(err)
		}
	}
}

// turn begins a turn of a new message.
func (w *cardWorld) turn() (chat.Live, sessions.Outgoing) {
	w.Helper()
	ctx := testContext(w.T)
	o := asked(w.T, w.s, w.g, inGroup, "whole answer")
	accepted, err := w.store.Inbox.Accept(ctx, "a", cardKey, sessions.Message{ID: sessions.MessageID(o.Reply.Nonce), Text: "hi"})
	if err != nil {
		w.Fatal(err)
	}
	w.lease = accepted.Lease
	live := w.g.Display().Show(ctx, chat.Shown{
		Lease: accepted.Lease, Asked: []sessions.Event{{ID: accepted.EventID}}, Target: o.Reply.Target, Tracks: []string{o.Reply.Nonce}, Lang: "zh", Sent: w.sent,
		Look: func() {
			select {
			case w.looked <- struct{}{}:
			default:
			}
		},
	})
	if live == nil {
		w.Fatal("no card")
	}
	return live, o
}

// commit commits a turn whose reply goes on a card, and returns the reply as it is claimed.
func (w *cardWorld) commit(o sessions.Outgoing, track string) sessions.Outgoing {
	w.Helper()
	v, err := w.store.Turns.Begin(w.Context(), w.lease, 1)
	if err != nil {
		w.Fatal(err)
	}
	o.Reply.Target.Card = track
	done, err := w.store.Turns.Commit(w.Context(), w.lease, sessions.TurnResult{Taken: []int64{v.Pending[0].ID}, TakenTokens: []int{1}, Reply: &o.Reply})
	if err != nil {
		w.Fatal(err)
	}
	return done.Replies[0]
}

// claim claims a reply once more.
func (w *cardWorld) claim(o sessions.Outgoing) sessions.Outgoing {
	w.Helper()
	list, err := w.store.Outbox.Claim(w.Context(), w.lease, sessions.SendAttempt{IDs: []int64{o.ID}})
	if err != nil || len(list) != 1 {
		w.Fatal(list, err)
	}
	return list[0]
}

func allSent(context.Context) bool { return true }

// A refusal that lasts longer than an answer can wait sends the answer as Markdown at once, and opens no further cards. The
// card is closed when calls are possible.
func TestLongRefusalOfACardIsMarkdown(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"permission", "quota", "ip-ban"} {
		for _, route := range []string{dingtalktest.RouteCardSend, dingtalktest.RouteCardStream} {
			t.Run(action+" "+route, func(t *testing.T) {
				t.Parallel()
				w := onCards(t, card.Auto)
				w.s.AddFault(dingtalktest.Fault{Route: route, Count: dingtalktest.Unlimited, Action: dingtalktest.Do(action)})
				live, o := w.turn()
				live.Text("whole", false)
				o = w.commit(o, live.Stop())
				if sent := mustSend(t, w.g, o); sent.Via != chat.ViaWebhook {
					t.Errorf("the answer went by %s", sent.Via)
				}
				made := w.governor.Status().Calls
				if again := w.g.Display().Show(t.Context(), chat.Shown{Tracks: []string{"next"}, Look: func() {}, Sent: allSent}); again != nil {
					t.Error("the next turn has a card")
				}
				if n := w.governor.Status().Calls; n != made {
					t.Errorf("%d calls are counted, before the next turn %d", n, made)
				}
			})
		}
	}
}

// A turn opens no card before the earlier answers of its session are sent: its answer would stand above them. The answer is
// Markdown, which waits for its turn, and no call is counted.
func TestNoCardBeforeEarlierAnswers(t *testing.T) {
	t.Parallel()
	for _, mode := range []card.Mode{card.Auto, card.Always, card.Never} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := onCards(t, mode)
			w.sent = func(context.Context) bool { return false }
			live, o := w.turn()
			live.Text("whole", false)
			o = w.commit(o, live.Stop())
			if sent := mustSend(t, w.g, o); sent.Via != chat.ViaWebhook {
				t.Errorf("the answer went by %s", sent.Via)
			}
			if cards, n := w.s.Cards(""), w.governor.Status().Calls; len(cards) != 0 || n != 0 {
				t.Errorf("there are %d cards, and %d calls are counted", len(cards), n)
			}
		})
	}
}

// Without an access token no call is made, and none is counted.
func TestCallsWithoutATokenAreReturned(t *testing.T) {
	t.Parallel()
	for _, mode := range []card.Mode{card.Auto, card.Never} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := onCards(t, mode)
			w.s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteToken, Count: dingtalktest.Unlimited, Action: dingtalktest.Do("503")})
			live, o := w.turn()
			live.Text("whole", false)
			o = w.commit(o, live.Stop())
			for o.Reply.Target.Card != "" {
				if _, err := w.g.Send(testContext(t), o); err == nil {
					break
				}
				o = w.claim(o)
			}
			if n := w.governor.Status().Calls; n != 0 {
				t.Errorf("%d calls are counted", n)
			}
		})
	}
}

// A display asks the storage before each frame. After the end of its term it changes its card no more: the next owner may have ended it.
// The turn learns that it has to look.
func TestLostSessionStreamsNoMore(t *testing.T) {
	t.Parallel()
	w := onCards(t, card.Auto)
	w.looked = make(chan struct{}, 100)
	live, o := w.turn()
	live.Text("one", false)
	await(t, "a frame", func() bool { return len(w.s.Cards("")) == 1 && strings.Contains(w.s.Cards("")[0].Content, "one") })
	if err := w.store.Leases.Release(t.Context(), w.lease); err != nil {
		t.Fatal(err)
	}
	live.Text("two", false)
	select {
	case <-w.looked:
	case <-time.After(10 * time.Second):
		t.Fatal("the turn is not asked to look at its lease")
	}
	if track := live.Stop(); track != o.Reply.Nonce {
		t.Errorf("the card is %q", track)
	}
	if c := w.s.Cards("")[0]; strings.Contains(c.Content, "two") {
		t.Errorf("the card shows %q", c.Content)
	}
}

// A reply that left its card does not come back to it: the lost answer to its Markdown message may have arrived.
func TestReplyLeavesItsCardForGood(t *testing.T) {
	t.Parallel()
	w := onCards(t, card.Auto)
	live, o := w.turn()
	o = w.commit(o, live.Stop())
	w.s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardStream, Final: true, Count: 3, Action: dingtalktest.Do("card-system-busy")})
	w.s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteWebhook, Action: dingtalktest.Do("reset-after")})
	for range 3 {
		if o.Reply.Target.Card == "" {
			t.Fatal("the reply left its card early")
		}
		mustFail(t, w.g, o)
		o = w.claim(o)
	}
	if o.Reply.Target.Card != "" {
		t.Fatal("the reply may come back to its card")
	}
	mustSend(t, w.g, o)
	if replies := w.s.Replies(""); len(replies) != 1 {
		t.Errorf("%d replies are shown: %+v", len(replies), replies)
	}
	// The card is abandoned, and is closed in the background.
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := w.g.Background()[0].Do(ctx); err != nil {
		t.Fatal(err)
	}
	if c := w.s.Cards("")[0]; c.State != dingtalktest.CardFailed {
		t.Errorf("the card is %s", c.State)
	}
}

// The end of a card is counted when the card is opened, and stays so through the commit. After a kill the next process ends
// it in a month that is used up, also if no attempt was begun.
func TestEndOfACardIsPrepaidForTheNextProcess(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		mode    card.Mode
		begun   bool // the process is killed after the claim
		sending bool // the process is killed during the call that ends the card
	}{
		{"before an attempt", card.Auto, false, false}, {"before the end", card.Auto, true, false},
		{"during the end", card.Auto, true, true}, {"unstreamed, during the end", card.Never, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := onCards(t, tt.mode)
			live, o := w.turn()
			live.Text("whole", false)
			o = w.commit(o, live.Stop())
			if tt.sending {
				hang := w.s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardStream, Final: true, Action: dingtalktest.Do("hang")})
				held := make(chan struct{})
				ctx, release := context.WithCancel(t.Context())
				go func() { defer close(held); _, _ = w.g.Send(ctx, o) }()
				defer func() { release(); <-held }()
				await(t, "the end of the card", func() bool { return w.s.FaultFired(hang) > 0 })
			}
			w.useUp()
			made := w.governor.Status().Calls
			if tt.begun {
				o = w.claim(o)
			}
			o.Maybe = tt.sending
			sent, err := w.process(tt.mode).Send(testContext(t), o)
			if err != nil || sent.Via != chat.ViaCard {
				t.Errorf("the answer went by %q, %v", sent.Via, err)
			}
			if c := w.s.Cards("")[0]; c.State != dingtalktest.CardFinished || !strings.Contains(c.Content, "whole answer") {
				t.Errorf("the card is %s: %q", c.State, c.Content)
			}
			if n := w.governor.Status().Calls; n != made {
				t.Errorf("%d calls are counted, before %d", n, made)
			}
			if n := len(w.s.Replies("")); n != 1 {
				t.Errorf("the answer is shown %d times", n)
			}
		})
	}
}

// In a month that is used up, an abandoned card without a prepaid end keeps none open whose end is prepaid.
func TestPrepaidCardsAreClosedBesideOthers(t *testing.T) {
	t.Parallel()
	w := onCards(t, card.Auto)
	var tracks []string
	for i := range 4 {
		live, o := w.turn()
		tracks = append(tracks, live.Stop())
		if err := w.store.Cards.SetPrepaid(t.Context(), sessions.Card{Key: cardKey, Track: tracks[i], Prepaid: i%2 == 1}); err != nil {
			t.Fatal(err)
		}
		o = w.commit(o, "") // the replies take another way
		mustSend(t, w.g, o)
	}
	w.useUp()
	if err := w.g.Background()[0].Do(t.Context()); err != nil {
		t.Errorf("closing cards without calls: %v", err)
	}
	for i, track := range tracks {
		c, err := w.store.Cards.ClickedCard(t.Context(), track, "")
		if want := map[bool]sessions.CardState{true: sessions.CardFailed, false: sessions.CardOpen}[i%2 == 1]; err != nil || c.State != want {
			t.Errorf("card %d is %s, want %s; %v", i, c.State, want, err)
		}
	}
}

// A card that may be recorded keeps its counted end. It is closed in the background, by the second attempt: a process that lost
// the session may deliver it after the first one.
func TestLostRecordOfACard(t *testing.T) {
	t.Parallel()
	w := onCards(t, card.Auto)
	w.cards = lossy{w.store.Cards}
	w.g = run(t, w.s, w.process(card.Auto), nil)
	live, o := w.turn()
	track := live.Stop()
	if o = w.commit(o, track); track != "" {
		t.Fatalf("the reply goes on card %s", track)
	}
	if n := w.governor.Status().Calls; n != 1 {
		t.Errorf("%d calls are counted, want the end alone", n)
	}
	if sent := mustSend(t, w.g, o); sent.Via != chat.ViaWebhook {
		t.Errorf("the answer went by %s", sent.Via)
	}
	if err := w.closeWith(t.Context(), &eager{Cards: w.store.Cards}); !errors.Is(err, card.ErrUnknown) {
		t.Errorf("the first attempt ended with %v", err)
	}
	if n := w.governor.Status().Calls; n != 2 {
		t.Errorf("%d calls are counted after the card was closed", n)
	}
	if c, err := w.store.Cards.ClickedCard(t.Context(), o.Reply.Nonce, ""); err != nil || c.State != sessions.CardFailed {
		t.Errorf("the card is %s, %v", c.State, err)
	}
}

// A last frame whose answer got lost may be shown. The reply's row learns that before the reply takes another way, however
// many attempts it had: the number of doubled replies depends on it.
func TestUncertainEndIsReportedFirst(t *testing.T) {
	t.Parallel()
	w := onCards(t, card.Auto)
	live, o := w.turn()
	o = w.commit(o, live.Stop())
	o.Attempts = 20
	w.s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardStream, Final: true, Action: dingtalktest.Do("reset-after")})
	if failed := mustFail(t, w.g, o); !failed.Maybe {
		t.Errorf("a lost answer is reported as %v", failed)
	}
	w.s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardStream, Final: true, Action: dingtalktest.Do("content-unsafe")})
	o = w.claim(o)
	o.Maybe = true
	if sent := mustSend(t, w.g, o); sent.Via != chat.ViaWebhook {
		t.Errorf("after the refusal the answer went by %s", sent.Via)
	}
}

// A call that DingTalk answers with 200 and without success had no effect, and is made again.
func TestAnswerWithoutSuccess(t *testing.T) {
	t.Parallel()
	w := onCards(t, card.Never)
	live, o := w.turn()
	o = w.commit(o, live.Stop())
	for _, route := range []string{dingtalktest.RouteCardSend, dingtalktest.RouteCardStream} {
		w.s.AddFault(dingtalktest.Fault{Route: route, Action: dingtalktest.Do("no-success")})
		if failed := mustFail(t, w.g, o); failed.Maybe || failed.Permanent {
			t.Errorf("%s: %+v", route, failed)
		}
		o = w.claim(o)
	}
	mustSend(t, w.g, o)
	if c := w.s.Cards("")[0]; c.State != dingtalktest.CardFinished {
		t.Errorf("the card is %s", c.State)
	}
}

// A conversation to which DingTalk delivered no card gets none for a while: each would cost a call. Others get theirs.
func TestUndeliveredCardsAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, mode := range []card.Mode{card.Auto, card.Never} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := onCards(t, mode)
			w.s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardSend, Action: dingtalktest.Do("card-undelivered")})
			live, o := w.turn()
			o = w.commit(o, live.Stop())
			if sent := mustSend(t, w.g, o); sent.Via != chat.ViaWebhook {
				t.Errorf("the answer went by %s", sent.Via)
			}
			made := w.governor.Status().Calls
			if again := w.g.Display().Show(t.Context(), chat.Shown{Target: o.Reply.Target, Tracks: []string{"next"}, Look: func() {}, Sent: allSent}); again != nil {
				t.Error("the next turn has a card")
			}
			if n := w.governor.Status().Calls; n != made {
				t.Errorf("%d calls are counted, before the next turn %d", n, made)
			}
			other := o.Reply.Target
			other.ConversationID = "another"
			next := chat.Shown{Lease: w.lease, Asked: []sessions.Event{{ID: 99}}, Target: other, Tracks: []string{"other"}, Lang: "zh", Look: func() {}, Sent: allSent}
			if live := w.g.Display().Show(t.Context(), next); live == nil {
				t.Error("a turn of another conversation has no card")
			} else {
				live.Stop()
			}
		})
	}
}

// A panic in the display of a turn ends neither the process nor the card's turn: the reply ends the card.
func TestPanicOfADisplay(t *testing.T) {
	t.Parallel()
	w := onCards(t, card.Auto)
	broken := make(chan struct{})
	w.cards = breaking{w.store.Cards, broken}
	w.g = run(t, w.s, w.process(card.Auto), nil)
	live, o := w.turn()
	live.Text("whole", false)
	select {
	case <-broken:
	case <-time.After(10 * time.Second):
		t.Fatal("no frame is sent")
	}
	o = w.commit(o, live.Stop())
	if sent := mustSend(t, w.g, o); sent.Via != chat.ViaCard {
		t.Errorf("the answer went by %s", sent.Via)
	}
	if c := w.s.Cards("")[0]; c.State != dingtalktest.CardFinished {
		t.Errorf("the card is %s", c.State)
	}
}

// breaking panics at the first frame.
type breaking struct {
	sessions.Cards
	broken chan struct{}
}

func (s breaking) BeginFrame(context.Context, sessions.Lease, string, string) error {
	close(s.broken)
	panic("broken")
}
