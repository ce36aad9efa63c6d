package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
)

// cardOf shows the question that holds the word on a card.
type cardOf string

func (c cardOf) Show(_ context.Context, s chat.Shown) chat.Live {
	if strings.Contains(s.Asked[0].Content, string(c)) {
		return carded(s.Tracks[0])
	}
	return carded("")
}

// carded is the display of a turn on a card; empty for none.
type carded string

func (carded) Text(string, bool) {}
func (carded) Thought(string)    {}
func (carded) Tool(string)       {}
func (c carded) Visible() bool   { return c != "" }
func (c carded) Stop() string    { return string(c) }

// pausedCards is a network whose cards end after a pause alone, while messages arrive at once.
func pausedCards() *wire {
	began := time.Now()
	return &wire{send: func(_ context.Context, o sessions.Outgoing) (chat.Sent, error) {
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
		w := start(t, setup{wire: pausedCards(), config: func(c *Config) { c.Display = cardOf("first") }})
		w.say("m1", "alice", "first.")
		w.say("m2", "bob", "second.")
		w.say("m3", "bob", "third.")
		want(t, "answers that were tried", len(w.wire.sends()), 1)
		after(time.Minute)
		want(t, "unsent", len(w.unsent()), 0)
		want(t, "the answers", arrivedOrder(w.wire.sends(), "first", "second", "third"), "in order")
	})
}

// The next owner of a session sends its own answers after the unfinished card of the former owner.
func TestAnswersFollowAnUnfinishedCardOfAnotherReplica(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := start(t, setup{name: "a", wire: pausedCards(), config: func(c *Config) { c.Display = cardOf("first") }})
		a.say("m1", "alice", "first.")
		a.kill()
		b := start(t, setup{name: "b", shelf: a.store.shelf, wire: pausedCards()})
		after(8 * time.Second)
		b.say("m2", "bob", "second.")
		after(time.Minute)
		want(t, "unsent", len(b.unsent()), 0)
		want(t, "the answers", arrivedOrder(b.wire.sends(), "first", "second"), "in order")
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
				w := start(t, setup{config: func(c *Config) { c.Display = &said }, wire: sender(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) {
					<-time.After(took) // on the clock of the bubble
					return arrived, nil
				})})
				w.say("m1", "alice", "first.")
				w.say("m2", "bob", "second.")
				after(3 * time.Minute)
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
		w := start(t, setup{config: rooted})
		w.say("m1", "root", "/status")
		if strings.Contains(w.last().Reply.Text, "cards without an end") {
			t.Errorf("without such a card /status says %s", w.last().Reply.Text)
		}
		l, err := w.store.mem.Acquire(t.Context(), group, "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.store.mem.OpenCard(t.Context(), l, sessions.Card{Kind: sessions.ReplyCard, Track: "stuck"}, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := w.store.mem.SettleCard(t.Context(), group, "stuck", sessions.CardGivenUp); err != nil {
			t.Fatal(err)
		}
		for who, want := range map[string]bool{"root": true, "alice": false} {
			w.say("of "+who, who, "/status")
			if got := w.last().Reply.Text; strings.Contains(got, "- cards without an end: 1") != want {
				t.Errorf("%s reads %s", who, got)
			}
		}
	})
}
