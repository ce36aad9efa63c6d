package bot

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
		w := start(t, setup{wire: sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
			if strings.Contains(o.Reply.Text, "bad") {
				return chat.Sent{}, errUnknownCode
			}
			return arrived, nil
		})})
		w.say("m0", "alice", "bad")
		for i := range maxQueued - 2 {
			w.say(fmt.Sprint("n", i), "bob", fmt.Sprintf("question %d.", i))
		}
		after(10 * time.Second)
		for i := range maxQueued - 2 {
			want(t, fmt.Sprint("tries of answer ", i), strings.Count(strings.Join(w.wire.texts(), "\n"), fmt.Sprintf("question %d.", i)), 1)
		}
		after(5 * time.Minute)
		posts := strings.Count(strings.Join(w.wire.texts(), "\n"), "bad")
		want(t, "tries of the refused one", posts, maxRefusals)
		want(t, "unsent", len(w.unsent()), 0)
		lines := slices.DeleteFunc(w.log.lines(t, "Reply did not arrive"), func(l map[string]any) bool { return l["given_up"] != true })
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
	return arrived, nil
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
			w := start(t, setup{wire: &wire{send: r.send}})
			for i, gap := range r.gaps {
				after(time.Duration(gap) * time.Second)
				asked[i] = time.Now()
				w.say(fmt.Sprint("m", i), "alice", fmt.Sprintf("q%d.", i))
			}
			after(6 * time.Minute)
			open = len(w.unsent())
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
			case refused == never && r.posts[i] > maxRefusals+1:
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
				w := start(t, setup{wire: sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
					if strings.Contains(o.Reply.Text, "bad") && !healed.Load() {
						return chat.Sent{}, c.err
					}
					return arrived, nil
				})})
				w.say("m0", "alice", "bad")
				w.say("m1", "bob", "first.")
				after(4 * time.Minute)
				w.say("m2", "carol", "second.")
				after(3 * time.Second)
				for _, words := range []string{"first.", "second."} {
					if all := w.wire.texts(); !slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, words) && !strings.Contains(s, "bad") }) {
						t.Errorf("%q did not arrive without the bad one: %q", words, all)
					}
				}
				want(t, "unsent", len(w.unsent()), 1)
				healed.Store(true)
				after(2 * time.Minute)
				want(t, "unsent once it passes", len(w.unsent()), 0)
				want(t, "counted as perhaps doubled", w.bot.restarts.doubled.Load(), c.doubled)
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
		barred := func() *wire {
			return sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
				if strings.Contains(o.Reply.Text, "tea") && !strings.Contains(o.Reply.Text, "question") && !permitted.Load() {
					return chat.Sent{}, &chat.SendError{After: time.Hour, Aside: true, Err: errors.New("no calls are left")}
				}
				return arrived, nil
			})
		}
		a := start(t, setup{name: "a", wire: barred()})
		for i := range maxQueued + 2 {
			a.post(reminding(fmt.Sprint("r", i), "alice", fmt.Sprintf("tea %d.", i)))
			after(3 * time.Second)
		}
		a.say("m1", "bob", "question 1.")
		after(2 * time.Second)
		want(t, "times that the answer arrived", strings.Count(strings.Join(a.wire.texts(), "\n"), "question 1."), 1)
		a.stop()
		b := start(t, setup{name: "b", shelf: a.store.shelf, wire: barred()})
		b.say("m2", "bob", "question 2.")
		after(2 * time.Second)
		want(t, "times that the next owner's answer arrived", strings.Count(strings.Join(b.wire.texts(), "\n"), "question 2."), 1)
		want(t, "reminders that wait", len(b.unsent()), maxQueued+2)
		permitted.Store(true)
		after(70 * time.Minute)
		want(t, "unsent once calls are permitted", len(b.unsent()), 0)
	})
}

// In an outage every reply steps aside in its turn: the queue stays short, and each reply arrives once when it is over.
func TestOutageKeepsQueueShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		away.Store(true)
		w := start(t, setup{wire: sender(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) {
			if away.Load() {
				return chat.Sent{}, errors.New("502")
			}
			return arrived, nil
		})})
		const questions = 2 * maxQueued
		for i := range questions {
			w.say(fmt.Sprint("m", i), "alice", fmt.Sprintf("q%d.", i))
			after(time.Minute)
		}
		want(t, "replies in the queue", w.bot.outbox.Waiting(), maxQueued)
		tried := len(w.wire.texts())
		away.Store(false)
		after(3 * time.Minute)
		all := strings.Join(w.wire.texts()[tried:], "\n")
		for i := range maxQueued { // later questions have one answer for all
			want(t, fmt.Sprintf("times that q%d. arrived", i), strings.Count(all, fmt.Sprintf("q%d.", i)), 1)
		}
		want(t, "times that the last answer arrived", strings.Count(all, fmt.Sprintf("q%d.", questions-1)), 1)
		want(t, "unsent", len(w.unsent()), 0)
	})
}
