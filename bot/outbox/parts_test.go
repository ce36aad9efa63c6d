package outbox_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/sessions"
)

// threeParts has each message arrive in three parts. It waits at a gate before the second part.
func threeParts(g *bottest.Gate) *bottest.Wire {
	return bottest.Sender(func(ctx context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
		if g != nil && o.Part == 1 {
			if err := g.Pass(ctx); err != nil {
				return chat.Sent{Part: 1}, err
			}
		}
		return chat.Sent{Via: "webhook", Part: o.Part + 1, More: o.Part < 2}, nil
	})
}

// limitedSecond has each message arrive in three parts. The rate delays the second try for a minute.
func limitedSecond() *bottest.Wire {
	return bottest.Sender(func(_ context.Context, try int, o sessions.Outgoing) (chat.Sent, error) {
		if try == 2 {
			return chat.Sent{Part: 1}, &chat.SendError{After: time.Minute, Err: errors.New("130101")}
		}
		return chat.Sent{Via: "webhook", Part: o.Part + 1, More: o.Part < 2}, nil
	})
}

// partsSent lists the parts that a replica sent of each reply: the first letter of its text, and the part.
func partsSent(w *bottest.World) string {
	var all []string
	for _, o := range w.Wire.Sends() {
		all = append(all, strings.TrimPrefix(o.Reply.Text, "re: ")[:1]+strconv.Itoa(o.Part+1))
	}
	return strings.Join(all, " ")
}

// Words are erased while the rate delays the second part of their reply: neither it nor the third part is sent, and the
// conversation goes on.
func TestErasedBetweenParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Wire: limitedSecond()})
		w.Say("m0", "alice", "a.")
		synctest.Wait()
		if _, err := w.Store.Mem.Erasure.Erase(t.Context(), bottest.Group, []int64{2}); err != nil { // the answer
			t.Fatal(err)
		}
		bottest.After(2 * time.Minute)
		bottest.Want(t, "parts", partsSent(w), "a1 a2")
		w.Say("m1", "bob", "b.")
		bottest.After(time.Second)
		bottest.Want(t, "parts with the next reply", partsSent(w), "a1 a2 b1 b2 b3")
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
	})
}

// P93: an erasure during the second part of a reply ends after the outcome of that part. One that DingTalk never answers
// ends by itself.
func TestErasureAwaitsThePartUnderWay(t *testing.T) {
	t.Parallel()
	for name, stuck := range map[string]bool{"answered": false, "without an answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := bottest.NewGate()
				w := bottest.Start(t, bottest.Setup{Wire: threeParts(&g)})
				w.Say("m0", "alice", "a.")
				<-g.In
				began, ended := time.Now(), make(chan error, 1)
				go func() {
					_, err := w.Store.Mem.Erasure.Erase(t.Context(), bottest.Group, []int64{2}) // the answer
					ended <- err
				}()
				bottest.After(time.Second)
				select {
				case err := <-ended:
					t.Fatalf("the erasure ended during a try: %v", err)
				default:
				}
				if !stuck {
					g.Out <- struct{}{}
				}
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				bottest.Want(t, "the wait of a try without an answer", time.Since(began) >= sessions.SendTime, stuck)
				bottest.Want(t, "the wait is over", time.Since(began) < sessions.SendTime+time.Second, true)
				sent := len(w.Wire.Sends())
				bottest.After(time.Minute)
				bottest.Want(t, "tries after the erasure", len(w.Wire.Sends())-sent, 0)
				bottest.Want(t, "unsent", len(w.Unsent()), 0)
			})
		})
	}
}

// A process is killed between two parts: the next owner sends the part that was on its way and the later ones, and counts
// the reply as perhaps doubled.
func TestKilledBetweenParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		a := bottest.Start(t, bottest.Setup{Name: "a", Wire: threeParts(&g)})
		a.Say("m0", "alice", "a.")
		<-g.In
		a.Kill()
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Wire: threeParts(nil)})
		bottest.After(time.Minute)
		bottest.Want(t, "parts of both", partsSent(a)+", "+partsSent(b), "a1 a2, a2 a3")
		bottest.Want(t, "counted as perhaps doubled", b.Figure("doubled"), 1)
		bottest.Want(t, "unsent", len(b.Unsent()), 0)
	})
}

// A process stops between two parts: the next owner goes on with the next part, and nothing is in doubt.
func TestStoppedBetweenParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := bottest.Start(t, bottest.Setup{Name: "a", Wire: bottest.Sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
			if o.Part == 1 {
				return chat.Sent{Part: 1}, &chat.SendError{After: time.Hour, Err: errors.New("130101")}
			}
			return chat.Sent{Via: "webhook", Part: o.Part + 1, More: true}, nil
		})})
		a.Say("m0", "alice", "a.")
		a.Stop()
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Wire: threeParts(nil)})
		bottest.After(2 * time.Hour)
		bottest.Want(t, "parts of both", partsSent(a)+", "+partsSent(b), "a1 a2, a2 a3")
		bottest.Want(t, "counted as perhaps doubled", b.Figure("doubled"), 0)
		bottest.Want(t, "unsent", len(b.Unsent()), 0)
	})
}

// A replica is cut off from the storage while its second part is on its way, and another takes the session over: the first
// one sends no third part. The parts that the row knows of are not sent again.
func TestTakenOverBetweenParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		a := bottest.Start(t, bottest.Setup{Name: "a", Wire: threeParts(&g)})
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Wire: threeParts(nil)})
		a.Say("m0", "alice", "a.")
		<-g.In
		a.Store.Fail(func(string) error { return bottest.ErrAway })
		bottest.After(8 * time.Second)
		b.Say("m1", "bob", "b.")
		bottest.After(8 * time.Second) // its try has ended by itself
		a.Store.Fail(nil)
		bottest.After(time.Minute)
		bottest.Want(t, "parts of the first", partsSent(a), "a1 a2")
		bottest.Want(t, "parts of the second", partsSent(b), "a2 a3 b1 b2 b3")
		bottest.Want(t, "counted as perhaps doubled", a.Figure("doubled")+b.Figure("doubled"), 1)
		bottest.Want(t, "unsent", len(b.Unsent()), 0)
	})
}

// An erasure of other words frees the session's lease between two parts. The row keeps the parts that arrived, and the
// next owner of the lease goes on with the next one.
func TestLeaseLostBetweenParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Wire: limitedSecond()})
		w.Say("m0", "alice", "a.")
		synctest.Wait()
		if _, err := w.Store.Mem.Erasure.Erase(t.Context(), bottest.Group, []int64{1}); err != nil { // the question
			t.Fatal(err)
		}
		bottest.After(2 * time.Minute)
		bottest.Want(t, "parts", partsSent(w), "a1 a2 a2 a3")
		bottest.Want(t, "counted as perhaps doubled", w.Figure("doubled"), 0)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
	})
}

// One of the replies of a joined message is erased between two parts of it: the message ends there, and the others go out
// alone, counted as sent twice perhaps.
func TestErasedBetweenPartsOfJoinedMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Wire: busyOnce(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
			return chat.Sent{Via: "webhook", Part: o.Part + 1, More: len(o.Joined) > 0 && o.Part < 2}, nil
		})})
		var once sync.Once
		w.Store.Fail(func(op string) error {
			if op == "claim" && len(w.Wire.Sends()) == 2 { // for the second part
				once.Do(func() {
					if _, err := w.Store.Mem.Erasure.Erase(t.Context(), bottest.Group, []int64{4}); err != nil { // the answer to the second
						t.Error(err)
					}
				})
			}
			return nil
		})
		waits(w)
		bottest.After(time.Minute)
		sent := w.Wire.Sends()
		bottest.Want(t, "requests", len(sent), 4)
		bottest.Want(t, "requests of the last two that hold the first and the third", strings.Count(strings.Join(w.Wire.Texts()[2:], "\n"), "re: "), 2)
		bottest.Want(t, "counted as perhaps doubled", w.Figure("doubled"), 2)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
	})
}

// An erasure takes words out of a reply of which two parts arrived. The rest has other parts, so all of them are sent
// under another key. The reply is counted as perhaps doubled.
func TestTrimmedBetweenParts(t *testing.T) {
	t.Parallel()
	for name, joined := range map[string]bool{"alone": false, "joined": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				three := func(_ context.Context, try int, o sessions.Outgoing) (chat.Sent, error) {
					if try > 9 {
						return chat.Sent{}, &chat.SendError{Permanent: true, Err: errors.New("a part is sent without end")}
					}
					return chat.Sent{Via: "webhook", Part: o.Part + 1, More: o.Part < 2}, nil
				}
				w, before := bottest.Start(t, bottest.Setup{Wire: bottest.Sender(three)}), 2
				if joined {
					w, before = bottest.Start(t, bottest.Setup{Wire: busyOnce(three)}), 3
				}
				var once sync.Once
				w.Store.Fail(func(op string) error {
					if op == "claim" && len(w.Wire.Sends()) == before { // for the third part
						once.Do(func() { w.Store.Mem.Trim(bottest.Group, w.Wire.Sends()[before-1].ID, "re: short.") })
					}
					return nil
				})
				if joined {
					waits(w)
				} else {
					w.Say("m0", "alice", "a.")
				}
				bottest.After(time.Minute)
				sent := w.Wire.Sends()
				parts := ""
				for _, o := range sent[before:] {
					parts += strconv.Itoa(o.Part + 1)
					if !strings.Contains(o.Reply.Text, "short.") || o.Reply.Nonce == sent[before-1].Reply.Nonce {
						t.Errorf("sent is %q under %q, want the new text under another key", o.Reply.Text, o.Reply.Nonce)
					}
				}
				bottest.Want(t, "parts after the erasure", parts, "123")
				bottest.Want(t, "counted as perhaps doubled", w.Figure("doubled") > 0, true)
				bottest.Want(t, "unsent", len(w.Unsent()), 0)
			})
		})
	}
}
