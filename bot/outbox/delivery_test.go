package outbox_test

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

	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/sessions"
)

// A reply is not sent by a webhook that ends within a minute, or that ended while the reply waited for its next try.
func TestWebhooksAreNotUsedTowardsTheirEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var used []bool
		w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(_ context.Context, try int, o sessions.Outgoing) (chat.Sent, error) {
			mu.Lock()
			defer mu.Unlock()
			used = append(used, o.Reply.Target.Webhook != "")
			if try == 1 {
				return chat.Sent{}, &chat.SendError{After: 2 * time.Minute, Err: errors.New("busy")}
			}
			return bottest.Arrived, nil
		})})
		for i, left := range []time.Duration{2 * time.Minute, 30 * time.Second} {
			m := bottest.Said(fmt.Sprint("m", i), "alice", "hello")
			m.Webhook, m.WebhookExpires = "https://oapi.example.com/hook", time.Now().Add(left)
			w.Post(m)
			bottest.After(5 * time.Minute)
		}
		mu.Lock()
		defer mu.Unlock()
		bottest.Want(t, "tries by the webhook", fmt.Sprint(used), "[true false false]")
	})
}

// Replies of one conversation arrive in the order of their turns, however long each send takes; another conversation
// does not wait for them.
func TestRepliesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []string
		w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(_ context.Context, try int, o sessions.Outgoing) (chat.Sent, error) {
			if o.Reply.Target.ConversationID == "c1" {
				<-time.After(time.Duration(10-try) * time.Second)
			}
			mu.Lock()
			defer mu.Unlock()
			got = append(got, o.Reply.Text)
			return bottest.Arrived, nil
		})})
		for i := range 5 {
			w.Say(fmt.Sprint("m", i), "alice", fmt.Sprint("q", i))
		}
		other := bottest.Said("o", "bob", "elsewhere")
		other.ConversationID = "c2"
		w.Post(other)
		bottest.After(2 * time.Minute)
		bottest.Want(t, "order", strings.ReplaceAll(strings.Join(got, " "), "(u-alice)", ""),
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
		w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			tries = append(tries, time.Since(began))
			if try <= 4 {
				return chat.Sent{}, errors.New("502")
			}
			return bottest.Arrived, nil
		})})
		w.Say("m0", "alice", "q0")
		for i, who := range []string{"bob", "alice", "carol"} {
			w.Say(fmt.Sprint("n", i), who, fmt.Sprint("more ", i))
		}
		bottest.After(5 * time.Minute)
		sent := w.Wire.Sends()
		if len(sent) != 5 {
			t.Fatalf("%d tries, want 5", len(sent))
		}
		for i := 2; i < len(tries); i++ {
			if tries[i]-tries[i-1] <= tries[i-1]-tries[i-2] {
				t.Errorf("pauses do not grow: tries at %v", tries)
			}
		}
		last := sent[4]
		bottest.Want(t, "mentions", last.Reply.Target.Mentions, []sessions.Mention{{StaffID: "u-alice", Nick: "alice"}, {StaffID: "u-bob", Nick: "bob"}, {StaffID: "u-carol", Nick: "carol"}})
		for _, words := range []string{"q0", "more 0", "more 1", "more 2"} {
			bottest.Want(t, "times that "+words+" is in it", strings.Count(last.Reply.Text, words), 1)
		}
		if last.Reply.Nonce == sent[0].Reply.Nonce {
			t.Error("the joined message goes under the key of one of its replies: DingTalk may take it for that one")
		}
		bottest.Want(t, "keys of the same message", last.Reply.Nonce, sent[3].Reply.Nonce)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
	})
}

// A reply whose answer was lost may have arrived: it is sent again as it was, under its key, and what waits behind it
// goes out apart. DingTalk knows the first by its key, and shows the second.
func TestWhatMayHaveArrivedIsRepeatedAsItWas(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			if try == 1 {
				return chat.Sent{}, &chat.SendError{Maybe: true, Err: errors.New("timeout")}
			}
			return bottest.Arrived, nil
		})})
		w.Say("m0", "alice", "q0")
		w.Say("m1", "bob", "q1")
		bottest.After(time.Minute)
		sent := w.Wire.Sends()
		bottest.Want(t, "tries", len(sent), 3)
		bottest.Want(t, "second try", sent[1].Reply, sent[0].Reply)
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
		w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(_ context.Context, try int, o sessions.Outgoing) (chat.Sent, error) {
			switch {
			case try == 1:
				return chat.Sent{}, &chat.SendError{After: 10 * time.Second, Err: errors.New("130101")}
			case strings.Contains(o.Reply.Text, "bad"):
				return chat.Sent{}, &chat.SendError{Permanent: true, Err: errors.New("430102")}
			}
			shown = append(shown, o.Reply.Text)
			return bottest.Arrived, nil
		})})
		w.Say("m0", "alice", "fine")
		w.Say("m1", "bob", "bad")
		w.Say("m2", "carol", "good")
		bottest.After(time.Minute)
		if all := strings.Join(shown, " "); strings.Count(all, "fine") != 1 || strings.Count(all, "good") != 1 {
			t.Errorf("shown: %q", shown)
		}
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
	})
}

// The transport knows when there is room again: its word counts, not the outbox's own pauses.
func TestRetryAfterIsHeeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var second time.Time
		w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			if try == 1 {
				return chat.Sent{}, &chat.SendError{After: 40 * time.Second, Err: errors.New("130101")}
			}
			second = time.Now()
			return bottest.Arrived, nil
		})})
		began := time.Now()
		w.Say("m0", "alice", "q0")
		bottest.After(2 * time.Minute)
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
				w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
					if strings.Contains(o.Reply.Text, "lost") {
						return chat.Sent{}, c.err
					}
					return bottest.Arrived, nil
				})})
				w.Say("m0", "alice", "lost")
				bottest.After(c.within)
				w.Say("m1", "alice", "next")
				sent := w.Wire.Sends()
				if last := sent[len(sent)-1].Reply.Text; strings.Contains(last, "lost") || !strings.Contains(last, "next") {
					t.Errorf("last try: %q", last)
				}
				bottest.Want(t, "unsent", len(w.Unsent()), 0)
			})
		})
	}
}

// A reply of several parts goes on where it broke off, alone, in this process and in the next.
func TestPartsGoOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			switch try {
			case 1, 2:
				return chat.Sent{Via: "webhook", Part: try, More: true}, nil
			case 3, 4:
				return chat.Sent{Part: 2}, errors.New("502")
			}
			return chat.Sent{Via: "webhook", Part: 3}, nil
		})})
		w.Say("m0", "alice", "long")
		w.Say("m1", "bob", "short")
		bottest.After(time.Minute)
		var got []string
		for _, o := range w.Wire.Sends() {
			got = append(got, fmt.Sprintf("%d:%d", o.Part, strings.Count(o.Reply.Text, "re: ")))
		}
		bottest.Want(t, "part and replies of each try", strings.Join(got, " "), "0:1 1:1 2:1 2:1 2:1 0:1")
	})
}

// Parts of a joined message that arrived are not taken for parts of each reply in it: after a crash the later ones
// are sent whole.
func TestPartsOfJoinedReplies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := bottest.Start(t, bottest.Setup{Name: "a", Wire: bottest.Sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			switch try {
			case 1:
				return chat.Sent{}, errors.New("502")
			case 2:
				return chat.Sent{Via: "webhook", Part: 1, More: true}, nil
			}
			return chat.Sent{Part: 1}, errors.New("502 in the second part")
		})})
		a.Say("m0", "alice", "first")
		a.Say("m1", "bob", "second")
		bottest.After(1500 * time.Millisecond)
		if n := len(a.Wire.Sends()); n != 3 || !strings.Contains(a.Wire.Texts()[1], "second") {
			t.Fatalf("%d tries: %q", n, a.Wire.Texts())
		}
		a.Kill()
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf})
		bottest.After(time.Minute)
		for _, o := range b.Wire.Sends() {
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
		w := bottest.Start(t, bottest.Setup{})
		w.Store.Fail(bottest.Times(6, "settle", bottest.ErrAway))
		w.Say("m0", "alice", "q0")
		bottest.After(30 * time.Second)
		bottest.Want(t, "sends", len(w.Wire.Sends()), 1)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
	})
}

// The list of unsent replies may be read just before one of them is marked: it is not sent again.
func TestUnsentReadWhileSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, sending := bottest.NewGate(), bottest.NewGate()
		w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(ctx context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			if try == 1 {
				return bottest.Arrived, sending.Pass(ctx)
			}
			return bottest.Arrived, nil
		})})
		w.Post(bottest.Said("m0", "alice", "q0"))
		<-sending.In
		var once sync.Once
		lost := bottest.Times(1, "commit", bottest.ErrAway) // such a commit may have stored a reply: the list is read again
		w.Store.Lose(func(op string) error {
			if op == "unsent" {
				once.Do(func() { _ = g.Pass(t.Context()) }) // the list is read and not taken up yet
			}
			return lost(op)
		})
		w.Post(bottest.Said("m1", "bob", "q1"))
		<-g.In
		sending.Out <- struct{}{}
		synctest.Wait()
		g.Out <- struct{}{}
		bottest.After(5 * time.Second)
		bottest.Want(t, "sends", len(w.Wire.Sends()), 2)
	})
}

// At a stop a reply that waits for its next try stays in the storage; the next process sends it.
func TestStopDuringBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := bottest.Start(t, bottest.Setup{Name: "a", Wire: bottest.Sender(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) {
			return chat.Sent{}, &chat.SendError{After: time.Hour, Err: errors.New("130101")}
		})})
		a.Say("m0", "alice", "q0")
		began := time.Now()
		a.Stop()
		if d := time.Since(began); d > 10*time.Second {
			t.Errorf("the stop took %s", d)
		}
		if lines := a.Log.Lines(t, "Drained"); len(lines) != 1 || lines[0]["replies_left"] != 1.0 {
			t.Errorf("the log says %v, want one reply left", lines)
		}
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf})
		bottest.After(2 * time.Second)
		b.Say("m1", "bob", "q1")
		bottest.Want(t, "sends before its time", len(b.Wire.Sends()), 0)
		bottest.After(time.Hour + 5*time.Minute)
		bottest.Want(t, "replies", len(b.Wire.Sends()), 1)
		if got := b.Wire.Texts()[0]; !strings.Contains(got, "q0") || !strings.Contains(got, "q1") {
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
		w := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
			mu.Lock()
			defer mu.Unlock()
			sent = append(sent, o.Reply.Target)
			return bottest.Arrived, nil
		})})
		m := bottest.Said("m1", "alice", "hello")
		m.Webhook, m.WebhookExpires = "https://oapi.example.com/hook", time.Now().Add(time.Hour)
		w.Post(m)
		for i := range 2 {
			bottest.After(29*time.Minute + 30*time.Second)
			w.Post(bottest.Reminding(fmt.Sprint("r", i), "alice", "tea"))
			bottest.After(time.Minute)
		}
		mu.Lock()
		defer mu.Unlock()
		bottest.Want(t, "messages", len(sent), 3)
		for i, hook := range []string{m.Webhook, m.Webhook, ""} {
			bottest.Want(t, fmt.Sprint("webhook of message ", i), sent[i].Webhook, hook)
			bottest.Want(t, fmt.Sprint("mentions of message ", i), fmt.Sprint(sent[i].Mentions), fmt.Sprint([]sessions.Mention{{StaffID: m.StaffID, Nick: m.SenderNick, Named: i > 0}}))
		}
	})
}

// A reminder without calls for days comes by the next message's webhook, and says that it is late. The newest of many wait.
func TestReminderWithoutCallsComesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Int32
		w := bottest.Start(t, bottest.Setup{Shelf: bottest.NewShelfOfDays(), Wire: bottest.Sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
			if o.Reply.Target.Webhook == "" {
				return chat.Sent{}, &chat.SendError{After: time.Hour, Aside: true, Err: errors.New("no calls are left")}
			}
			if strings.Contains(o.Reply.Text, "tea") && strings.Contains(o.Reply.Text, "could not be sent then") {
				late.Add(1)
			}
			return bottest.Arrived, nil
		})})
		w.Post(bottest.Reminding("r", "alice", "tea"))
		bottest.After(50 * time.Hour)
		bottest.Want(t, "reminders that wait", len(w.Unsent()), 1)
		m := bottest.Said("m1", "bob", "hello")
		m.Webhook, m.WebhookExpires = "https://oapi.example.com/hook", time.Now().Add(2*time.Hour)
		w.Post(m)
		bottest.After(time.Minute)
		bottest.Want(t, "reminders that wait after a message", len(w.Unsent()), 0)
		bottest.Want(t, "times that it came late", late.Load(), int32(1))
		for i := range 15 {
			bottest.After(2 * time.Hour)
			w.Post(bottest.Reminding(fmt.Sprint("r", i), "alice", fmt.Sprint("tea ", i)))
		}
		bottest.After(60 * time.Hour)
		bottest.Want(t, "reminders that wait out of fifteen", len(w.Unsent()), 10)
	})
}
