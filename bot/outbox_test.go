package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
)

// sender makes a wire's send function from one that sees the number of the try, from 1.
func sender(f func(ctx context.Context, try int, o sessions.Outgoing) (chat.Sent, error)) *wire {
	var n atomic.Int32
	return &wire{send: func(ctx context.Context, o sessions.Outgoing) (chat.Sent, error) { return f(ctx, int(n.Add(1)), o) }}
}

var arrived = chat.Sent{Via: "webhook", Part: 1}

// unsent lists what the storage still has to send of the group.
func (w *world) unsent() []sessions.Outgoing {
	w.t.Helper()
	outs, err := w.store.mem.Unsent(w.t.Context(), w.view().Session.Lease)
	if err != nil {
		w.t.Fatal(err)
	}
	return outs
}

// A reply is not sent by a webhook that ends within a minute, or that ended while the reply waited for its next try.
func TestWebhooksAreNotUsedTowardsTheirEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var used []bool
		w := start(t, setup{wire: sender(func(_ context.Context, try int, o sessions.Outgoing) (chat.Sent, error) {
			mu.Lock()
			defer mu.Unlock()
			used = append(used, o.Reply.Target.Webhook != "")
			if try == 1 {
				return chat.Sent{}, &chat.SendError{After: 2 * time.Minute, Err: errors.New("busy")}
			}
			return arrived, nil
		})})
		for i, left := range []time.Duration{2 * time.Minute, 30 * time.Second} {
			m := said(fmt.Sprint("m", i), "alice", "hello")
			m.Webhook, m.WebhookExpires = "https://oapi.example.com/hook", time.Now().Add(left)
			w.post(m)
			after(5 * time.Minute)
		}
		mu.Lock()
		defer mu.Unlock()
		want(t, "tries by the webhook", fmt.Sprint(used), "[true false false]")
	})
}

// Replies of one conversation arrive in the order of their turns, however long each send takes; another conversation
// does not wait for them.
func TestRepliesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		w := start(t, setup{wire: sender(func(_ context.Context, try int, o sessions.Outgoing) (chat.Sent, error) {
			if o.Reply.Target.ConversationID == "c1" {
				<-time.After(time.Duration(10-try) * time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			got = append(got, o.Reply.Text)
			return arrived, nil
		})})
		for i := range 5 {
			w.say(fmt.Sprint("m", i), "alice", fmt.Sprint("q", i))
		}
		other := said("o", "bob", "elsewhere")
		other.ConversationID = "c2"
		w.post(other)
		after(2 * time.Minute)
		want(t, "order", strings.ReplaceAll(strings.Join(got, " "), "(u-alice)", ""),
			"re: bob(u-bob): elsewhere re: alice: q0 re: alice: q1 re: alice: q2 re: alice: q3 re: alice: q4")
	})
}

// A reply that did not arrive is tried again, later each time, under one key; what piled up meanwhile goes out as one
// message that mentions everybody once.
func TestFailedReplyIsRetriedAndJoined(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Duration
		began := time.Now()
		w := start(t, setup{wire: sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			tries = append(tries, time.Since(began))
			if try <= 4 {
				return chat.Sent{}, errors.New("502")
			}
			return arrived, nil
		})})
		w.say("m0", "alice", "q0")
		for i, who := range []string{"bob", "alice", "carol"} {
			w.say(fmt.Sprint("n", i), who, fmt.Sprint("more ", i))
		}
		after(5 * time.Minute)
		sent := w.wire.sends()
		if len(sent) != 5 {
			t.Fatalf("%d tries, want 5", len(sent))
		}
		for i := 2; i < len(tries); i++ {
			if tries[i]-tries[i-1] <= tries[i-1]-tries[i-2] {
				t.Errorf("pauses do not grow: tries at %v", tries)
			}
		}
		last := sent[4]
		want(t, "mentions", last.Reply.Target.Mentions, []sessions.Mention{{StaffID: "u-alice", Nick: "alice"}, {StaffID: "u-bob", Nick: "bob"}, {StaffID: "u-carol", Nick: "carol"}})
		for _, words := range []string{"q0", "more 0", "more 1", "more 2"} {
			want(t, "times that "+words+" is in it", strings.Count(last.Reply.Text, words), 1)
		}
		if last.Reply.Nonce == sent[0].Reply.Nonce {
			t.Error("the joined message goes under the key of one of its replies: DingTalk may take it for that one")
		}
		want(t, "keys of the same message", last.Reply.Nonce, sent[3].Reply.Nonce)
		want(t, "unsent", len(w.unsent()), 0)
	})
}

// A reply whose answer was lost may have arrived: it is sent again as it was, under its key, and what waits behind it
// goes out apart. DingTalk knows the first by its key, and shows the second.
func TestWhatMayHaveArrivedIsRepeatedAsItWas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{wire: sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			if try == 1 {
				return chat.Sent{}, &chat.SendError{Maybe: true, Err: errors.New("timeout")}
			}
			return arrived, nil
		})})
		w.say("m0", "alice", "q0")
		w.say("m1", "bob", "q1")
		after(time.Minute)
		sent := w.wire.sends()
		want(t, "tries", len(sent), 3)
		want(t, "second try", sent[1].Reply, sent[0].Reply)
		if strings.Contains(sent[2].Reply.Text, "q0") || !strings.Contains(sent[2].Reply.Text, "q1") {
			t.Errorf("third try: %q", sent[2].Reply.Text)
		}
	})
}

// DingTalk refuses a joined message for the words of one reply in it: the others arrive all the same.
func TestOneRefusedReplyTakesNoOtherAlong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var shown []string
		w := start(t, setup{wire: sender(func(_ context.Context, try int, o sessions.Outgoing) (chat.Sent, error) {
			switch {
			case try == 1:
				return chat.Sent{}, &chat.SendError{After: 10 * time.Second, Err: errors.New("130101")}
			case strings.Contains(o.Reply.Text, "bad"):
				return chat.Sent{}, &chat.SendError{Permanent: true, Err: errors.New("430102")}
			}
			shown = append(shown, o.Reply.Text)
			return arrived, nil
		})})
		w.say("m0", "alice", "fine")
		w.say("m1", "bob", "bad")
		w.say("m2", "carol", "good")
		after(time.Minute)
		if all := strings.Join(shown, " "); strings.Count(all, "fine") != 1 || strings.Count(all, "good") != 1 {
			t.Errorf("shown: %q", shown)
		}
		want(t, "unsent", len(w.unsent()), 0)
	})
}

// The transport knows when there is room again: its word counts, not the outbox's own pauses.
func TestRetryAfterIsHeeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var second time.Time
		w := start(t, setup{wire: sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			if try == 1 {
				return chat.Sent{}, &chat.SendError{After: 40 * time.Second, Err: errors.New("130101")}
			}
			second = time.Now()
			return arrived, nil
		})})
		began := time.Now()
		w.say("m0", "alice", "q0")
		after(2 * time.Minute)
		if d := second.Sub(began); d < 40*time.Second || d > 45*time.Second {
			t.Errorf("tried again after %s, want about 40 s", d)
		}
	})
}

// A reply that can never arrive is given up at once, and so is one that did not arrive for a day; the next reply goes
// out.
func TestGivingUp(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		within time.Duration
	}{
		"refused for good": {&chat.SendError{Permanent: true, Err: errors.New("group disbanded")}, time.Second},
		"away for days":    {errors.New("502"), 25 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := start(t, setup{wire: sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
					if strings.Contains(o.Reply.Text, "lost") {
						return chat.Sent{}, c.err
					}
					return arrived, nil
				})})
				w.say("m0", "alice", "lost")
				after(c.within)
				w.say("m1", "alice", "next")
				sent := w.wire.sends()
				if last := sent[len(sent)-1].Reply.Text; strings.Contains(last, "lost") || !strings.Contains(last, "next") {
					t.Errorf("last try: %q", last)
				}
				want(t, "unsent", len(w.unsent()), 0)
			})
		})
	}
}

// A reply of several parts goes on where it broke off, alone, in this process and in the next.
func TestPartsGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{wire: sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			switch try {
			case 1, 2:
				return chat.Sent{Via: "webhook", Part: try, More: true}, nil
			case 3, 4:
				return chat.Sent{Part: 2}, errors.New("502")
			}
			return chat.Sent{Via: "webhook", Part: 3}, nil
		})})
		w.say("m0", "alice", "long")
		w.say("m1", "bob", "short")
		after(time.Minute)
		var got []string
		for _, o := range w.wire.sends() {
			got = append(got, fmt.Sprintf("%d:%d", o.Part, strings.Count(o.Reply.Text, "re: ")))
		}
		want(t, "part and replies of each try", strings.Join(got, " "), "0:1 1:1 2:1 2:1 2:1 0:1")
	})
}

// Parts of a joined message that arrived are not taken for parts of each reply in it: after a crash the later ones
// are sent whole.
func TestPartsOfJoinedReplies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := start(t, setup{name: "a", wire: sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			switch try {
			case 1:
				return chat.Sent{}, errors.New("502")
			case 2:
				return chat.Sent{Via: "webhook", Part: 1, More: true}, nil
			}
			return chat.Sent{Part: 1}, errors.New("502 in the second part")
		})})
		a.say("m0", "alice", "first")
		a.say("m1", "bob", "second")
		after(1500 * time.Millisecond)
		if n := len(a.wire.sends()); n != 3 || !strings.Contains(a.wire.texts()[1], "second") {
			t.Fatalf("%d tries: %q", n, a.wire.texts())
		}
		a.kill()
		b := start(t, setup{name: "b", shelf: a.store.shelf})
		after(time.Minute)
		for _, o := range b.wire.sends() {
			if strings.Contains(o.Reply.Text, "second") && !strings.Contains(o.Reply.Text, "first") && o.Part != 0 {
				t.Errorf("of the second reply the first %d parts are left out", o.Part)
			}
		}
	})
}

// A mark that could not be stored is stored when the storage is back; nothing is sent again for that.
func TestMarksOutlastAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		w.store.fail(times(6, "settle", errAway))
		w.say("m0", "alice", "q0")
		after(30 * time.Second)
		want(t, "sends", len(w.wire.sends()), 1)
		want(t, "unsent", len(w.unsent()), 0)
	})
}

// The list of unsent replies may be read just before one of them is marked: it is not sent again.
func TestUnsentReadWhileSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, sending := newGate(), newGate()
		w := start(t, setup{wire: sender(func(ctx context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			if try == 1 {
				return arrived, sending.pass(ctx)
			}
			return arrived, nil
		})})
		w.post(said("m0", "alice", "q0"))
		<-sending.in
		w.bot.outbox.Invalidate(group)
		var once sync.Once
		w.store.lose(func(op string) error {
			if op == "unsent" {
				once.Do(func() { _ = g.pass(t.Context()) }) // the list is read and not taken up yet
			}
			return nil
		})
		w.post(said("m1", "bob", "q1"))
		<-g.in
		sending.out <- struct{}{}
		synctest.Wait()
		g.out <- struct{}{}
		after(5 * time.Second)
		want(t, "sends", len(w.wire.sends()), 2)
	})
}

// At a stop a reply that waits for its next try stays in the storage; the next process sends it.
func TestStopDuringBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := start(t, setup{name: "a", wire: sender(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) {
			return chat.Sent{}, &chat.SendError{After: time.Hour, Err: errors.New("130101")}
		})})
		a.say("m0", "alice", "q0")
		began := time.Now()
		a.stop()
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("the stop took %s", d)
		}
		if lines := a.log.lines(t, "Drained"); len(lines) != 1 || lines[0]["replies_left"] != 1.0 {
			t.Errorf("the log says %v, want one reply left", lines)
		}
		b := start(t, setup{name: "b", shelf: a.store.shelf})
		after(2 * time.Second)
		b.say("m1", "bob", "q1")
		want(t, "sends before its time", len(b.wire.sends()), 0)
		after(time.Hour + 5*time.Minute)
		want(t, "replies", len(b.wire.sends()), 1)
		if got := b.wire.texts()[0]; !strings.Contains(got, "q0") || !strings.Contains(got, "q1") {
			t.Errorf("sent %q", got)
		}
	})
}

// A reminder goes by the conversation's last webhook while that is valid, and mentions its creator, whom its text names. Later it has
// none, and takes a call.
func TestReminderTakesTheLastWebhook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []sessions.Target
		w := start(t, setup{wire: sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, o.Reply.Target)
			return arrived, nil
		})})
		m := said("m1", "alice", "hello")
		m.Webhook, m.WebhookExpires = "https://oapi.example.com/hook", time.Now().Add(time.Hour)
		w.post(m)
		for i := range 2 {
			after(29*time.Minute + 30*time.Second)
			w.post(reminding(fmt.Sprint("r", i), "alice", "tea"))
			after(time.Minute)
		}
		mu.Lock()
		defer mu.Unlock()
		want(t, "messages", len(sent), 3)
		for i, hook := range []string{m.Webhook, m.Webhook, ""} {
			want(t, fmt.Sprint("webhook of message ", i), sent[i].Webhook, hook)
			want(t, fmt.Sprint("mentions of message ", i), fmt.Sprint(sent[i].Mentions), fmt.Sprint([]sessions.Mention{{StaffID: m.StaffID, Nick: m.SenderNick, Named: i > 0}}))
		}
	})
}

// A reminder without calls for days comes by the next message's webhook, and says that it is late. The newest of many wait.
func TestReminderWithoutCallsComesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Int32
		w := start(t, setup{wire: sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
			if o.Reply.Target.Webhook == "" {
				return chat.Sent{}, &chat.SendError{After: time.Hour, Aside: true, Err: errors.New("no calls are left")}
			}
			if strings.Contains(o.Reply.Text, "tea") && strings.Contains(o.Reply.Text, "could not be sent then") {
				late.Add(1)
			}
			return arrived, nil
		})})
		w.post(reminding("r", "alice", "tea"))
		after(50 * time.Hour)
		want(t, "reminders that wait", len(w.unsent()), 1)
		m := said("m1", "bob", "hello")
		m.Webhook, m.WebhookExpires = "https://oapi.example.com/hook", time.Now().Add(2*time.Hour)
		w.post(m)
		after(time.Minute)
		want(t, "reminders that wait after a message", len(w.unsent()), 0)
		want(t, "times that it came late", late.Load(), int32(1))
		for i := range 15 {
			after(2 * time.Hour)
			w.post(reminding(fmt.Sprint("r", i), "alice", fmt.Sprint("tea ", i)))
		}
		after(60 * time.Hour)
		want(t, "reminders that wait out of fifteen", len(w.unsent()), 10)
	})
}
