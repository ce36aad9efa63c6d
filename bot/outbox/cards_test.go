package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/sessions"
)

// pausedCards is a network whose cards end after a pause alone, while messages arrive at once.
func pausedCards() *bottest.Wire {
	began := time.Now()
	return &bottest.Wire{Deliver: func(_ context.Context, o sessions.Outgoing) (chat.Sent, error) {
		if o.Reply.Target.Card != "" && time.Since(began) < 20*time.Second {
			return chat.Sent{}, &chat.SendError{After: 2 * time.Second, Err: errors.New("the rate of card updates is used up")}
		}
		return chat.Sent{Via: "webhook", Part: 1}, nil
	}}
}

// arrivedOrder is the order in which the answers to some words arrived.
func arrivedOrder(all []sessions.Outgoing, words ...string) string {
	last := map[string]int{}
	for i, o := range all {
		for _, word := range words {
			if strings.Contains(o.Reply.Text, word) {
				last[word] = i
			}
		}
	}
	for i := 1; i < len(words); i++ {
		if last[words[i-1]] > last[words[i]] {
			return words[i] + " before " + words[i-1]
		}
	}
	return "in order"
}

// A card whose end DingTalk pauses holds back the later answers of its session.
func TestAnswersFollowAnUnfinishedCard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Wire: pausedCards(), Config: func(c *bot.Config) { c.Display = bottest.CardOf("first") }})
		w.Say("m1", "alice", "first.")
		w.Say("m2", "bob", "second.")
		w.Say("m3", "bob", "third.")
		bottest.Want(t, "answers that were tried", len(w.Wire.Sends()), 1)
		bottest.After(time.Minute)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
		bottest.Want(t, "the answers", arrivedOrder(w.Wire.Sends(), "first", "second", "third"), "in order")
	})
}

// The next owner of a session sends its own answers after the unfinished card of the former owner.
func TestAnswersFollowAnUnfinishedCardOfAnotherReplica(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := bottest.Start(t, bottest.Setup{Name: "a", Wire: pausedCards(), Config: func(c *bot.Config) { c.Display = bottest.CardOf("first") }})
		a.Say("m1", "alice", "first.")
		a.Kill()
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Wire: pausedCards()})
		bottest.After(8 * time.Second)
		b.Say("m2", "bob", "second.")
		bottest.After(time.Minute)
		bottest.Want(t, "unsent", len(b.Unsent()), 0)
		bottest.Want(t, "the answers", arrivedOrder(b.Wire.Sends(), "first", "second"), "in order")
	})
}

// asker asks each turn at its begin whether the earlier answers are sent.
type asker []string

func (a *asker) Show(ctx context.Context, s chat.Shown) chat.Live {
	began := time.Now()
	*a = append(*a, fmt.Sprint(s.Sent(ctx), " after ", time.Since(began)))
	return nil
}

// A turn learns whether the earlier answers of its session are sent before it is shown on a card.
func TestTurnIsShownAfterEarlierAnswers(t *testing.T) {
	t.Parallel()
	for want, took := range map[string]time.Duration{"[true after 0s true after 900ms]": 900 * time.Millisecond, "[true after 0s false after 1s]": time.Minute} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var said asker
				w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Display = &said }, Wire: bottest.Sender(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) {
					<-time.After(took) // on the clock of the bubble
					return bottest.Arrived, nil
				})})
				w.Say("m1", "alice", "first.")
				w.Say("m2", "bob", "second.")
				bottest.After(3 * time.Minute)
				if got := fmt.Sprint(said); got != want {
					t.Errorf("the turns heard %s, want %s", got, want)
				}
			})
		})
	}
}

// Administrators read in /status how many cards DingTalk did not end. Others don't.
func TestGivenUpCardsInStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: bottest.WithRoot})
		w.Say("m1", "root", "/status")
		if strings.Contains(w.Last().Reply.Text, "cards without an end") {
			t.Errorf("without such a card /status says %s", w.Last().Reply.Text)
		}
		l, err := w.Store.Mem.Leases.Acquire(t.Context(), bottest.Group, "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Store.Mem.Cards.OpenCard(t.Context(), l, sessions.Card{Kind: sessions.ReplyCard, Track: "stuck"}, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := w.Store.Mem.Cards.SettleCard(t.Context(), bottest.Group, "stuck", sessions.CardGivenUp); err != nil {
			t.Fatal(err)
		}
		for who, want := range map[string]bool{"root": true, "alice": false} {
			w.Say("of "+who, who, "/status")
			if got := w.Last().Reply.Text; strings.Contains(got, "- cards without an end: 1") != want {
				t.Errorf("%s reads %s", who, got)
			}
		}
	})
}
