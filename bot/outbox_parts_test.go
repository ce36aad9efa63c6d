package bot

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
)

// threeParts has each message arrive in three parts. It waits at a gate before the second part.
func threeParts(g *gate) *wire {
	return sender(func(ctx context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
		if g != nil && o.Part == 1 {
			if err := g.pass(ctx); err != nil {
				return chat.Sent{Part: 1}, err
			}
		}
		return chat.Sent{Via: "webhook", Part: o.Part + 1, More: o.Part < 2}, nil
	})
}

// limitedSecond has each message arrive in three parts. The rate delays the second try for a minute.
func limitedSecond() *wire {
	return sender(func(_ context.Context, try int, o sessions.Outgoing) (chat.Sent, error) {
		if try == 2 {
			return chat.Sent{Part: 1}, &chat.SendError{After: time.Minute, Err: errors.New("130101")}
		}
		return chat.Sent{Via: "webhook", Part: o.Part + 1, More: o.Part < 2}, nil
	})
}

// partsSent lists the parts that a replica sent of each reply: the first letter of its text, and the part.
func (w *world) partsSent() string {
	var all []string
	for _, o := range w.wire.sends() {
		all = append(all, strings.TrimPrefix(o.Reply.Text, "re: ")[:1]+strconv.Itoa(o.Part+1))
	}
	return strings.Join(all, " ")
}

// Words are erased while the rate delays the second part of their reply: neither it nor the third part is sent, and the
// conversation goes on.
func TestErasedBetweenParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{wire: limitedSecond()})
		w.say("m0", "alice", "a.")
		synctest.Wait()
		if _, err := w.store.mem.Erase(t.Context(), group, []int64{2}); err != nil { // the answer
			t.Fatal(err)
		}
		after(2 * time.Minute)
		want(t, "parts", w.partsSent(), "a1 a2")
		w.say("m1", "bob", "b.")
		after(time.Second)
		want(t, "parts with the next reply", w.partsSent(), "a1 a2 b1 b2 b3")
		want(t, "unsent", len(w.unsent()), 0)
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
				g := newGate()
				w := start(t, setup{wire: threeParts(&g)})
				w.say("m0", "alice", "a.")
				<-g.in
				began, ended := time.Now(), make(chan error, 1)
				go func() {
					_, err := w.store.mem.Erase(t.Context(), group, []int64{2}) // the answer
					ended <- err
				}()
				after(time.Second)
				select {
				case err := <-ended:
					t.Fatalf("the erasure ended during a try: %v", err)
				default:
				}
				if !stuck {
					g.out <- struct{}{}
				}
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				want(t, "the wait of a try without an answer", time.Since(began) >= sessions.SendTime, stuck)
				want(t, "the wait is over", time.Since(began) < sessions.SendTime+time.Second, true)
				sent := len(w.wire.sends())
				after(time.Minute)
				want(t, "tries after the erasure", len(w.wire.sends())-sent, 0)
				want(t, "unsent", len(w.unsent()), 0)
			})
		})
	}
}

// A process is killed between two parts: the next owner sends the part that was on its way and the later ones, and counts
// the reply as perhaps doubled.
func TestKilledBetweenParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		a := start(t, setup{name: "a", wire: threeParts(&g)})
		a.say("m0", "alice", "a.")
		<-g.in
		a.kill()
		b := start(t, setup{name: "b", shelf: a.store.shelf, wire: threeParts(nil)})
		after(time.Minute)
		want(t, "parts of both", a.partsSent()+", "+b.partsSent(), "a1 a2, a2 a3")
		want(t, "counted as perhaps doubled", b.bot.restarts.doubled.Load(), 1)
		want(t, "unsent", len(b.unsent()), 0)
	})
}

// A process stops between two parts: the next owner goes on with the next part, and nothing is in doubt.
func TestStoppedBetweenParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := start(t, setup{name: "a", wire: sender(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
			if o.Part == 1 {
				return chat.Sent{Part: 1}, &chat.SendError{After: time.Hour, Err: errors.New("130101")}
			}
			return chat.Sent{Via: "webhook", Part: o.Part + 1, More: true}, nil
		})})
		a.say("m0", "alice", "a.")
		a.stop()
		b := start(t, setup{name: "b", shelf: a.store.shelf, wire: threeParts(nil)})
		after(2 * time.Hour)
		want(t, "parts of both", a.partsSent()+", "+b.partsSent(), "a1 a2, a2 a3")
		want(t, "counted as perhaps doubled", b.bot.restarts.doubled.Load(), 0)
		want(t, "unsent", len(b.unsent()), 0)
	})
}

// A replica is cut off from the storage while its second part is on its way, and another takes the session over: the first
// one sends no third part. The parts that the row knows of are not sent again.
func TestTakenOverBetweenParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		a := start(t, setup{name: "a", wire: threeParts(&g)})
		b := start(t, setup{name: "b", shelf: a.store.shelf, wire: threeParts(nil)})
		a.say("m0", "alice", "a.")
		<-g.in
		a.store.fail(func(string) error { return errAway })
		after(8 * time.Second)
		b.say("m1", "bob", "b.")
		after(8 * time.Second) // its try has ended by itself
		a.store.fail(nil)
		after(time.Minute)
		want(t, "parts of the first", a.partsSent(), "a1 a2")
		want(t, "parts of the second", b.partsSent(), "a2 a3 b1 b2 b3")
		want(t, "counted as perhaps doubled", a.bot.restarts.doubled.Load()+b.bot.restarts.doubled.Load(), 1)
		want(t, "unsent", len(b.unsent()), 0)
	})
}

// An erasure of other words frees the session's lease between two parts. The row keeps the parts that arrived, and the
// next owner of the lease goes on with the next one.
func TestLeaseLostBetweenParts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{wire: limitedSecond()})
		w.say("m0", "alice", "a.")
		synctest.Wait()
		if _, err := w.store.mem.Erase(t.Context(), group, []int64{1}); err != nil { // the question
			t.Fatal(err)
		}
		after(2 * time.Minute)
		want(t, "parts", w.partsSent(), "a1 a2 a2 a3")
		want(t, "counted as perhaps doubled", w.bot.restarts.doubled.Load(), 0)
		want(t, "unsent", len(w.unsent()), 0)
	})
}

// One of the replies of a joined message is erased between two parts of it: the message ends there, and the others go out
// alone, counted as sent twice perhaps.
func TestErasedBetweenPartsOfJoinedMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{wire: busyOnce(func(_ context.Context, _ int, o sessions.Outgoing) (chat.Sent, error) {
			return chat.Sent{Via: "webhook", Part: o.Part + 1, More: len(o.Joined) > 0 && o.Part < 2}, nil
		})})
		var once sync.Once
		w.store.fail(func(op string) error {
			if op == "claim" && len(w.wire.sends()) == 2 { // for the second part
				once.Do(func() {
					if _, err := w.store.mem.Erase(t.Context(), group, []int64{4}); err != nil { // the answer to the second
						t.Error(err)
					}
				})
			}
			return nil
		})
		w.waits()
		after(time.Minute)
		sent := w.wire.sends()
		want(t, "requests", len(sent), 4)
		want(t, "requests of the last two that hold the first and the third", strings.Count(strings.Join(w.wire.texts()[2:], "\n"), "re: "), 2)
		want(t, "counted as perhaps doubled", w.bot.restarts.doubled.Load(), 2)
		want(t, "unsent", len(w.unsent()), 0)
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
				w, before := start(t, setup{wire: sender(three)}), 2
				if joined {
					w, before = start(t, setup{wire: busyOnce(three)}), 3
				}
				var once sync.Once
				w.store.fail(func(op string) error {
					if op == "claim" && len(w.wire.sends()) == before { // for the third part
						once.Do(func() { w.store.mem.Trim(group, w.wire.sends()[before-1].ID, "re: short.") })
					}
					return nil
				})
				if joined {
					w.waits()
				} else {
					w.say("m0", "alice", "a.")
				}
				after(time.Minute)
				sent := w.wire.sends()
				parts := ""
				for _, o := range sent[before:] {
					parts += strconv.Itoa(o.Part + 1)
					if !strings.Contains(o.Reply.Text, "short.") || o.Reply.Nonce == sent[before-1].Reply.Nonce {
						t.Errorf("sent is %q under %q, want the new text under another key", o.Reply.Text, o.Reply.Nonce)
					}
				}
				want(t, "parts after the erasure", parts, "123")
				want(t, "counted as perhaps doubled", w.bot.restarts.doubled.Load() > 0, true)
				want(t, "unsent", len(w.unsent()), 0)
			})
		})
	}
}
