package dingtalk

import (
	"context"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/card"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/bot/dingtalk/request"
	"ebb/sessions"
)

// shows reports whether a turn of a conversation gets a card.
func (w *cardWorld) shows(c sessions.ConversationID) bool {
	w.Helper()
	to := asked(w.T, w.s, w.g, inGroup, "x").Reply.Target
	to.ConversationID = c
	event := int64(crc32.ChecksumIEEE([]byte(c))) + 1000 // another turn in each conversation
	live := w.g.Display().Show(testContext(w.T), chat.Shown{
		Lease: w.lease, Asked: []sessions.Event{{ID: event}}, Target: to, Tracks: []string{"next in " + string(c)}, Lang: "zh", Look: func() {}, Sent: allSent,
	})
	if live == nil {
		return false
	}
	live.Stop()
	return true
}

// A refusal is its conversation's, whatever the code. Only a template that is not there, a missing permission and a refused
// application end cards for everybody.
func TestRefusedCardIsItsConversations(t *testing.T) {
	t.Parallel()
	bad := func(code string) dingtalktest.Action { return dingtalktest.APIError(400, code, code) }
	for name, tt := range map[string]struct {
		action     dingtalktest.Action
		everybodys bool
	}{
		"undelivered":      {dingtalktest.Do("card-undelivered"), false},
		"person left":      {bad("param.userIdNotExist"), false},
		"unsafe":           {dingtalktest.Do("content-unsafe"), false},
		"delivery model":   {bad("param.openDeliverModelError"), false},
		"robot not there":  {bad("bot.stopped"), false},
		"unknown code":     {bad("some.thing.new"), false},
		"too fast":         {dingtalktest.Do("send-too-fast"), false},
		"unpublished":      {dingtalktest.Do("template-closed"), true},
		"no such template": {bad("param.templateNotExist"), true},
		"permission":       {dingtalktest.Do("permission"), true},
		"address":          {dingtalktest.Do("ip-ban"), true},
	} {
		for _, mode := range []card.Mode{card.Auto, card.Never} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				t.Parallel()
				w := onCards(t, mode)
				w.s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardSend, Count: 9, Action: tt.action})
				live, o := w.turn()
				o = w.commit(o, live.Stop())
				for range 4 { // a rate is no reason to leave the card at once
					if sent, err := w.g.Send(testContext(t), o); err == nil {
						if sent.Via != chat.ViaWebhook {
							t.Errorf("the answer went by %s", sent.Via)
						}
						break
					}
					o = w.claim(o)
				}
				w.s.ClearFaults()
				if got := w.shows("another"); got == tt.everybodys {
					t.Errorf("another conversation has a card: %t", got)
				}
			})
		}
	}
}

// The answer for a variable that the template lacks is one for other faults, too: after a text was taken it is its conversation's.
func TestUnknownErrorOfAProvenTemplate(t *testing.T) {
	t.Parallel()
	for name, proven := range map[string]bool{"proven": true, "new": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := onCards(t, card.Auto)
			if proven {
				live, o := w.turn()
				mustSend(t, w.g, w.commit(o, live.Stop()))
			}
			w.s.AddFault(dingtalktest.Fault{Route: dingtalktest.RouteCardStream, Count: 9, Action: dingtalktest.Do("unknown-error")})
			live, o := w.turn()
			o = w.commit(o, live.Stop())
			_, _ = w.g.Send(testContext(t), o)
			w.s.ClearFaults()
			if got := w.shows("another"); got != proven {
				t.Errorf("another conversation has a card: %t", got)
			}
		})
	}
}

// An API that does not answer costs a conversation one call, and its answer goes by the webhook at once. While a second conversation has
// no answer either, none pays again; the cards are closed when DingTalk answers.
func TestSilentCards(t *testing.T) {
	t.Parallel()
	for _, mode := range []card.Mode{card.Auto, card.Never} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := onCards(t, mode)
			hang := dingtalktest.Fault{Count: dingtalktest.Unlimited, Action: dingtalktest.Do("hang")}
			hang.Route = dingtalktest.RouteCardSend
			w.s.AddFault(hang)
			hang.Route = dingtalktest.RouteCardStream
			w.s.AddFault(hang)
			live, o := w.turn()
			live.Text("whole", false)
			o = w.commit(o, live.Stop())
			began := time.Now()
			for range 3 {
				sent, err := w.g.Send(testContext(t), o)
				if err == nil {
					if sent.Via != chat.ViaWebhook {
						t.Errorf("the answer went by %s", sent.Via)
					}
					break
				}
				if failed := request.AsSendError(err); failed.After > 100*time.Millisecond {
					t.Fatalf("the next attempt comes after %s: %v", failed.After, err)
				}
				maybe := o.Maybe || request.AsSendError(err).Maybe
				o = w.claim(o)
				o.Maybe = maybe
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("the answer took %s", took)
			}
			if n := len(w.s.Replies("")); n != 1 {
				t.Fatalf("the answer is shown %d times", n)
			}
			made := w.governor.Status().Calls
			if w.shows(o.Reply.Target.ConversationID) || made > 2 {
				t.Errorf("%d calls are counted, and the conversation gets a card", made)
			}
			if err := w.g.Background()[0].Do(context.Background()); err != nil {
				t.Error(err)
			}
			if n := w.governor.Status().Calls; n != made {
				t.Errorf("closing it took %d calls", n-made)
			}
			for c, want := range map[sessions.ConversationID]bool{"second": true} {
				if got := w.shows(c); got != want {
					t.Errorf("the conversation %s gets a card: %t", c, got)
				}
			}
			if mode == card.Auto && w.shows("third") {
				t.Error("a third conversation pays for the silence")
			}
		})
	}
}

// Cards are closed, and replies end theirs, after cards were switched off and the variable of their text was changed.
func TestCardsEndWithoutTheirSettings(t *testing.T) {
	t.Parallel()
	w := onCards(t, card.Auto)
	abandoned, o := w.turn()
	abandoned.Text("half", false)
	w.commit(o, "")
	_ = abandoned.Stop()
	live, o := w.turn()
	live.Text("half", false)
	o = w.commit(o, live.Stop())
	unstreamed, other := w.turn()
	other = w.commit(other, "never-created")
	_ = unstreamed.Stop()

	w.g = run(t, w.s, newTransport(t, w.s.URL, func(c *Config) {
		c.Calls = w.governor
		c.Cards = &Cards{
			Store: w.cards, Key: "another", Stream: card.Auto, Interval: time.Millisecond, Language: func(sessions.ConversationID) string { return "zh" },
		}
	}), nil)
	if w.g.Display() != (chat.NoDisplay{}) {
		t.Error("turns are shown")
	}
	if sent := mustSend(t, w.g, o); sent.Via != chat.ViaCard {
		t.Errorf("the answer went by %s", sent.Via)
	}
	if sent := mustSend(t, w.g, other); sent.Via != chat.ViaWebhook {
		t.Errorf("the answer without a card went by %s", sent.Via)
	}
	task := w.g.Background()[0]
	await(t, "the end of the cards", func() bool {
		if err := task.Do(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range w.s.Cards("") {
			if c.State != dingtalktest.CardFinished && c.State != dingtalktest.CardFailed {
				return false
			}
		}
		return true
	})
	if c := w.s.Cards("")[0]; c.State != dingtalktest.CardFailed || !strings.Contains(c.Content, "停止更新") {
		t.Errorf("the abandoned card is %s: %s", c.State, c.Content)
	}
}
