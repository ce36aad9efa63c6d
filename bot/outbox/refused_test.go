package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/sessions"
)

// errUnknownCode is a refusal that names no cause.
var errUnknownCode = &chat.SendError{Refused: true, Err: errors.New("errcode 999999")}

// H6: a reply that is refused under an unknown code holds up the others for a few tries, and is given up within
// minutes. Admins can see it in the log, in the figures and in its row.
func TestRefusedReplyIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
			if strings.Contains(o.Reply.Text, "bad") {
				return chat.Sent{}, errUnknownCode
			}
			return bottest.Arrived, nil
		})})
		w.Say("m0", "alice", "bad")
		for i := range bottest.MaxQueued - 2 {
			w.Say(fmt.Sprint("n", i), "bob", fmt.Sprintf("question %d.", i))
		}
		bottest.After(10 * time.Second)
		for i := range bottest.MaxQueued - 2 {
			bottest.Want(t, fmt.Sprint("tries of answer ", i), strings.Count(strings.Join(w.Wire.Texts(), "\n"), fmt.Sprintf("question %d.", i)), 1)
		}
		bottest.After(5 * time.Minute)
		posts := strings.Count(strings.Join(w.Wire.Texts(), "\n"), "bad")
		bottest.Want(t, "tries of the refused one", posts, bottest.MaxRefusals)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
		lines := slices.DeleteFunc(w.Log.Lines(t, "Reply did not arrive"), func(l map[string]any) bool { return l["given_up"] != true })
		if len(lines) != 1 || lines[0]["level"] != "error" {
			t.Errorf("the log says %v, want one error", lines)
		}
	})
}

// refusals is a plan of what DingTalk refuses under an unknown code: some replies always, some at first.
type refusals struct {
	left  []int // attempts left for each reply; never: none
	gaps  []int // seconds before each question
	sent  map[int]time.Time
	order []int
	posts []int
}

const never = 1 << 20

var numbered = regexp.MustCompile(`q(\d+)\.`)

func (r *refusals) send(_ context.Context, o sessions.Outgoing) (chat.Sent, error) {
	var held []int
	for _, m := range numbered.FindAllStringSubmatch(o.Reply.Text, -1) {
		var n int
		_, _ = fmt.Sscan(m[1], &n)
		held = append(held, n)
		r.posts[n]++
	}
	for _, n := range held {
		if r.left[n] > 0 {
			r.left[n]--
			return chat.Sent{}, errUnknownCode
		}
	}
	for _, n := range held {
		if _, known := r.sent[n]; known {
			return chat.Sent{}, fmt.Errorf("answer %d was sent before", n)
		}
		r.sent[n] = time.Now()
	}
	r.order = append(r.order, held...)
	return bottest.Arrived, nil
}

// Refusals for the words of a reply, of any kind: every other reply arrives once, in order, soon. The refused one is
// not sent over and over.
func TestRefusalsHarmNoOtherReply(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 14).Draw(rt, "replies")
		r := &refusals{sent: map[int]time.Time{}, posts: make([]int, n)}
		for range n {
			r.left = append(r.left, rapid.SampledFrom([]int{0, 0, 0, 1, 2, never}).Draw(rt, "refused"))
			r.gaps = append(r.gaps, rapid.IntRange(0, 4).Draw(rt, "gap"))
		}
		plan := slices.Clone(r.left)
		asked := make([]time.Time, n)
		open := 0
		synctest.Test(t, func(t *testing.T) {
			w := bottest.Start(t, bottest.Setup{Wire: &bottest.Wire{Deliver: r.send}})
			for i, gap := range r.gaps {
				bottest.After(time.Duration(gap) * time.Second)
				asked[i] = time.Now()
				w.Say(fmt.Sprint("m", i), "alice", fmt.Sprintf("q%d.", i))
			}
			bottest.After(6 * time.Minute)
			open = len(w.Unsent())
		})
		if open > 0 {
			rt.Fatalf("%d replies are open after 6 minutes", open)
		}
		if !slices.IsSorted(r.order) {
			rt.Fatalf("the order was %v", r.order)
		}
		troubled := 0
		for i, refused := range plan {
			if refused > 0 {
				troubled++
			}
			at, ok := r.sent[i]
			switch late := at.Sub(asked[i]); {
			case refused == never && r.posts[i] > bottest.MaxRefusals+1:
				rt.Fatalf("reply %d was posted %d times", i, r.posts[i])
			case refused < never && !ok:
				rt.Fatalf("reply %d did not arrive", i)
			case refused < never && late > time.Duration(troubled)*4*time.Second:
				rt.Fatalf("reply %d arrived after %s, with %d in trouble up to it", i, late, troubled)
			}
		}
	})
}

// A text makes DingTalk fail each time: the conversation's other replies pass it after some minutes, and it is tried until
// it arrives or a day is over.
func TestFailingReplyDelaysNoOther(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		doubled int64
	}{
		"surely":   {errors.New("-1"), 0},
		"in doubt": {&chat.SendError{Maybe: true, Err: errors.New("502")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var healed atomic.Bool
				w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
					if strings.Contains(o.Reply.Text, "bad") && !healed.Load() {
						return chat.Sent{}, c.err
					}
					return bottest.Arrived, nil
				})})
				w.Say("m0", "alice", "bad")
				w.Say("m1", "bob", "first.")
				bottest.After(4 * time.Minute)
				w.Say("m2", "carol", "second.")
				bottest.After(3 * time.Second)
				for _, words := range []string{"first.", "second."} {
					if all := w.Wire.Texts(); !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, words) && !strings.Contains(s, "bad") }) {
						t.Errorf("%q did not arrive without the bad one: %q", words, all)
					}
				}
				bottest.Want(t, "unsent", len(w.Unsent()), 1)
				healed.Store(true)
				bottest.After(2 * time.Minute)
				bottest.Want(t, "unsent once it passes", len(w.Unsent()), 0)
				bottest.Want(t, "counted as perhaps doubled", w.Figure("doubled"), int(c.doubled))
			})
		})
	}
}

// Reminders that the application may not send for an hour, more than a queue has room for, delay no answer to a question.
// They stay aside after a hand-over, and arrive when calls are permitted again.
func TestBarredReminderDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var permitted atomic.Bool
		barred := func() *bottest.Wire {
			return bottest.Sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
				if strings.Contains(o.Reply.Text, "tea") && !strings.Contains(o.Reply.Text, "question") && !permitted.Load() {
					return chat.Sent{}, &chat.SendError{After: time.Hour, Aside: true, Err: errors.New("no calls are left")}
				}
				return bottest.Arrived, nil
			})
		}
		a := bottest.Start(t, bottest.Setup{Name: "a", Wire: barred()})
		for i := range bottest.MaxQueued + 2 {
			a.Post(bottest.Reminding(fmt.Sprint("r", i), "alice", fmt.Sprintf("tea %d.", i)))
			bottest.After(3 * time.Second)
		}
		a.Say("m1", "bob", "question 1.")
		bottest.After(2 * time.Second)
		bottest.Want(t, "times that the answer arrived", strings.Count(strings.Join(a.Wire.Texts(), "\n"), "question 1."), 1)
		a.Stop()
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Wire: barred()})
		b.Say("m2", "bob", "question 2.")
		bottest.After(2 * time.Second)
		bottest.Want(t, "times that the next owner's answer arrived", strings.Count(strings.Join(b.Wire.Texts(), "\n"), "question 2."), 1)
		bottest.Want(t, "reminders that wait", len(b.Unsent()), bottest.MaxQueued+2)
		permitted.Store(true)
		bottest.After(70 * time.Minute)
		bottest.Want(t, "unsent once calls are permitted", len(b.Unsent()), 0)
	})
}

// In an outage every reply steps aside in its turn: the queue stays short, and each reply arrives once when it is over.
func TestOutageKeepsQueueShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) {
			if away.Load() {
				return chat.Sent{}, errors.New("502")
			}
			return bottest.Arrived, nil
		})})
		const questions = 2 * bottest.MaxQueued
		for i := range questions {
			w.Say(fmt.Sprint("m", i), "alice", fmt.Sprintf("q%d.", i))
			bottest.After(time.Minute)
		}
		bottest.Want(t, "replies in the queue", w.Gauge("ebb_outbox_waiting"), bottest.MaxQueued)
		tried := len(w.Wire.Texts())
		away.Store(false)
		bottest.After(3 * time.Minute)
		all := strings.Join(w.Wire.Texts()[tried:], "\n")
		for i := range bottest.MaxQueued { // later questions have one answer for all
			bottest.Want(t, fmt.Sprintf("times that q%d. arrived", i), strings.Count(all, fmt.Sprintf("q%d.", i)), 1)
		}
		bottest.Want(t, "times that the last answer arrived", strings.Count(all, fmt.Sprintf("q%d.", questions-1)), 1)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
	})
}

// A reply whose words DingTalk refuses is given up, and its asker reads so, once, at its place among the replies. The words of the model go nowhere.
func TestAskerLearnsOfRefusedWords(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   *chat.SendError
		posts int
	}{
		"content":      {&chat.SendError{Permanent: true, Content: true, Err: errors.New("errcode 430104")}, 1},
		"unknown code": {errUnknownCode, bottest.MaxRefusals},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
					if strings.Contains(o.Reply.Text, "bad") {
						return chat.Sent{}, c.err
					}
					return bottest.Arrived, nil
				})})
				w.Say("m0", "alice", "bad")
				bottest.After(10 * time.Minute)
				texts := w.Wire.Texts()
				if len(texts) != c.posts+1 || !strings.Contains(texts[len(texts)-1], "钉钉没有接收") && !strings.Contains(texts[len(texts)-1], "DingTalk did not accept") {
					t.Errorf("posted %q, want the reply %d times and one sentence", texts, c.posts)
				}
				bottest.Want(t, "unsent", len(w.Unsent()), 0)
			})
		})
	}
}

// The sentence is a message of its own: a card shows the parts that arrived, or was left before, and takes no frame more.
func TestRefusedWordsOfACard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) { c.Display = bottest.CardOf("bad") },
			Wire: bottest.Sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
				if strings.Contains(o.Reply.Text, "bad") {
					return chat.Sent{}, &chat.SendError{Permanent: true, Content: true, Err: errors.New("errcode 430104")}
				}
				return bottest.Arrived, nil
			}),
		})
		w.Say("m0", "alice", "bad")
		bottest.After(time.Minute)
		sends := w.Wire.Sends()
		if len(sends) != 2 || sends[0].Reply.Target.Card == "" || sends[1].Reply.Target.Card != "" || sends[1].Reply.Nonce == sends[0].Reply.Nonce {
			t.Errorf("sent %+v, want the card and then a message", sends)
		}
	})
}

// No sentence follows where it would not arrive either, where it would be wrong, and where it would take a counted call.
func TestNoSentenceBehindOtherReplies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		send      func() error
		noWebhook bool
		posts     int
	}{
		"a conversation that is gone": {func() error { return &chat.SendError{Permanent: true, Gone: true, Err: errors.New("errcode 400013")} }, false, 1},
		"a sender that panics":        {func() error { panic("send") }, false, bottest.MaxRefusals},
		"no webhook": {func() error {
			return &chat.SendError{Permanent: true, Content: true, Err: errors.New("errcode 430104")}
		}, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) {
					return chat.Sent{}, c.send()
				})})
				m := bottest.Said("m0", "alice", "hello")
				if c.noWebhook {
					m.Webhook = ""
				}
				w.Post(m)
				bottest.After(15 * time.Minute)
				bottest.Want(t, "posts", len(w.Wire.Texts()), c.posts)
			})
		})
	}
}
