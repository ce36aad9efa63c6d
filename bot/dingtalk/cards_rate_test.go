package dingtalk

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ebb/bot/chat"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/dingtalk/card"
	"ebb/bot/dingtalk/dingtalktest"
	"ebb/sessions"
	"ebb/sessions/memstore"
)

// threeReplicas is a store of calls of three running replicas.
type threeReplicas struct{ *calls.Memory }

func (threeReplicas) Replicas(context.Context) (int, error) { return 3, nil }

// fleet is three replicas of one application, which DingTalk permits 20 calls of an API in a second.
type fleet struct {
	*testing.T
	s        *dingtalktest.Server
	store    *memstore.Store
	replicas []*gateway
	refused  atomic.Int64 // ends that DingTalk refused for the rate
	left     atomic.Int64 // answers that left their cards
}

func newFleet(t *testing.T) *fleet {
	t.Helper()
	o := dingtalktest.Fast()
	o.CardTemplates, o.APIQPS = []dingtalktest.CardTemplate{{ID: cardTemplate}}, 20
	f := &fleet{T: t, s: dingtalktest.NewServer(t, o), store: memstore.New(time.Minute)}
	months := threeReplicas{calls.NewMemory()}
	for range 3 {
		governor := calls.New(calls.Options{Store: months})
		ctx, stop := context.WithCancel(context.Background())
		watched := make(chan struct{})
		go func() { defer close(watched); governor.Watch(ctx) }()
		t.Cleanup(func() { stop(); <-watched })
		await(t, "the number of replicas", func() bool { return governor.Share() < 1 })
		f.replicas = append(f.replicas, run(t, f.s, newTransport(t, f.s.URL, func(c *Config) {
			c.Calls = governor
			c.Cards = &Cards{
				Store: f.store.Cards, Template: cardTemplate, Key: "content", Stream: card.Auto, Interval: 100 * time.Millisecond,
				Language: func(sessions.ConversationID) string { return "zh" },
			}
		}), nil))
	}
	return f
}

// answer streams one answer for a time and ends its card, with the pauses of the outbox.
func (f *fleet) answer(g *gateway, to sessions.Target, n int, d time.Duration) {
	ctx, key, nonce := testContext(f.T), sessions.Key(fmt.Sprint("robot/room", n)), fmt.Sprint("nonce", n)
	accepted, err := f.store.Inbox.Accept(ctx, "a", key, sessions.Message{ID: sessions.MessageID(nonce), Text: "hi"})
	if err != nil {
		f.Error(err)
		return
	}
	live := g.Display().Show(ctx, chat.Shown{
		Lease: accepted.Lease, Asked: []sessions.Event{{ID: accepted.EventID}}, Target: to, Tracks: []string{nonce}, Lang: "zh", Look: func() {}, Sent: allSent,
	})
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		live.Text("some words ", false)
	}
	w := &cardWorld{T: f.T, store: f.store, lease: accepted.Lease}
	o := w.commit(sessions.Outgoing{Reply: sessions.Reply{Text: "whole answer", Nonce: nonce, Target: to}}, live.Stop())
	for {
		sent, err := g.Send(ctx, o)
		if err == nil {
			if sent.Via != chat.ViaCard {
				f.left.Add(1)
			}
			return
		}
		failed, ok := errors.AsType[*chat.SendError](err)
		if !ok {
			f.Error(err)
			return
		}
		if strings.Contains(err.Error(), "QpsLimit") {
			f.refused.Add(1)
		}
		time.Sleep(max(failed.After, 100*time.Millisecond))
		o = w.claim(o)
	}
}

// Three replicas that stream many answers at once share the application's rate: DingTalk refuses no end of a card, and no answer
// leaves its card.
func TestReplicasShareTheRateOfCards(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.s.Say(inGroup)
	var in sessions.Message
	await(t, "the message", func() bool {
		for _, g := range f.replicas {
			select {
			case in = <-g.Got:
				return true
			default:
			}
		}
		return false
	})
	to := sessions.Target{
		RobotCode: in.RobotCode, ConversationID: in.ConversationID, ConversationType: in.ConversationType, Webhook: in.Webhook, WebhookExpires: in.WebhookExpires,
	}
	var answers sync.WaitGroup
	for i := range 90 {
		answers.Go(func() { f.answer(f.replicas[i%3], to, i, 6*time.Second) })
	}
	answers.Wait()
	if f.refused.Load() > 0 || f.left.Load() > 0 {
		t.Errorf("%d ends were refused, %d answers left their cards", f.refused.Load(), f.left.Load())
	}
}

// An answer that is there before its card is opened takes two calls, and one that is there before the first update three.
func TestFastAnswersTakeFewCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opened bool // before the answer is whole
		calls  int
	}{"at once": {false, 2}, "soon": {true, 3}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := onCardsEvery(t, card.Auto, time.Hour) // the times of the package decide
			live, o := w.turn()
			live.Text("whole answer", false)
			if c.opened {
				await(t, "the card", live.Visible)
			}
			o = w.commit(o, live.Stop())
			if sent := mustSend(t, w.g, o); sent.Via != chat.ViaCard {
				t.Fatalf("sent %+v", sent)
			}
			shown := w.s.Cards("")
			if len(shown) != 1 || shown[0].State != dingtalktest.CardFinished || shown[0].Content != "whole answer" || shown[0].Params["feedback"] != "true" || shown[0].Params["stop"] != "false" {
				t.Fatalf("the cards are %+v", shown)
			}
			if shown[0].Calls != c.calls {
				t.Errorf("%d calls, want %d", shown[0].Calls, c.calls)
			}
		})
	}
}
