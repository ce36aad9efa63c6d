package bot

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/chat"
	"ebb/sessions"
)

// busyOnce refuses the first try for a while and passes the others on.
func busyOnce(f func(ctx context.Context, try int, o sessions.Outgoing) (chat.Sent, error)) *wire {
	return sender(func(ctx context.Context, try int, o sessions.Outgoing) (chat.Sent, error) {
		if try == 1 {
			return chat.Sent{}, &chat.SendError{After: 2 * time.Second, Err: errors.New("130101")}
		}
		return f(ctx, try, o)
	})
}

// doubtfulSecond is a busyOnce whose second try may have arrived; lost is called before its outcome.
func doubtfulSecond(lost func()) *wire {
	return busyOnce(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
		if try == 2 {
			lost()
			return chat.Sent{}, &chat.SendError{Maybe: true, After: 20 * time.Second, Err: errors.New("timeout")}
		}
		return arrived, nil
	})
}

// eraseSecond erases the answer to the second message.
func (w *world) eraseSecond() {
	w.t.Helper()
	if _, err := w.store.mem.Erase(w.t.Context(), group, []int64{4}); err != nil {
		w.t.Fatal(err)
	}
}

// waits has a world hold three replies that go out as one message.
func (w *world) waits() {
	w.t.Helper()
	w.say("m0", "alice", "first.")
	w.say("m1", "bob", "second.")
	w.say("m2", "carol", "third.")
}

// A process dies while it sends replies as one message: the next one sends the same message again, under the same key.
func TestJoinedMessageIsRepeatedByTheNextOwner(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, g gate){
		"killed while it sent":       func(w *world, _ gate) { w.kill() },
		"killed after a lost answer": func(w *world, g gate) { g.out <- struct{}{}; synctest.Wait(); w.kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				a := start(t, setup{name: "a", wire: busyOnce(func(ctx context.Context, _ int, _ sessions.Outgoing) (chat.Sent, error) {
					_ = g.pass(ctx)
					return chat.Sent{}, &chat.SendError{Maybe: true, Err: errors.New("timeout")}
				})})
				a.waits()
				<-g.in
				end(a, g)
				b := start(t, setup{name: "b", shelf: a.store.shelf})
				after(2 * time.Minute)
				was, sent := a.wire.sends()[1], b.wire.sends()
				if len(sent) != 1 || sent[0].Reply.Nonce != was.Reply.Nonce || sent[0].Reply.Text != was.Reply.Text {
					t.Fatalf("sent %q, want %q again, under its key", b.wire.texts(), was.Reply.Text)
				}
				want(t, "counted as perhaps doubled", b.bot.restarts.doubled.Load(), 3)
				want(t, "unsent", len(b.unsent()), 0)
			})
		})
	}
}

// A part of a joined message that may have arrived was erased: the others go out, each by itself, and are counted.
func TestErasureTakesReplyOutOfJoinedMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{wire: doubtfulSecond(func() {})})
		w.waits()
		after(5 * time.Second)
		w.eraseSecond()
		after(time.Minute)
		sent := w.wire.sends()
		want(t, "tries", len(sent), 4)
		if all := strings.Join(w.wire.texts()[2:], "\n"); strings.Contains(all, "second.") || !strings.Contains(all, "first.") || !strings.Contains(all, "third.") {
			t.Errorf("sent %q, want the first and the third", all)
		}
		want(t, "counted as perhaps doubled", w.bot.restarts.doubled.Load(), 2)
		want(t, "unsent", len(w.unsent()), 0)
	})
}

// The answer to a claim gets lost: nothing is sent on it, the claim is made again, and nothing is in doubt for that.
func TestLostClaimIsMadeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{wire: busyOnce(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) { return arrived, nil })})
		var once sync.Once
		w.store.lose(func(op string) (err error) {
			if op == "claim" {
				once.Do(func() { err = errAway })
			}
			return err
		})
		w.waits()
		after(10 * time.Second)
		want(t, "tries", len(w.wire.sends()), 2)
		want(t, "counted as perhaps doubled", w.bot.restarts.doubled.Load(), 0)
		want(t, "unsent", len(w.unsent()), 0)
	})
}

// A process is frozen between its claim and the send, until another has sent the reply: it sends it no more.
func TestFrozenBetweenClaimAndSend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		a := start(t, setup{name: "a", wire: busyOnce(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) { return arrived, nil })})
		b := start(t, setup{name: "b", shelf: a.store.shelf})
		a.store.lose(func(op string) error { // when the storage has done it
			if op == "claim" {
				_ = g.pass(t.Context())
			}
			return nil
		})
		a.say("m0", "alice", "first.")
		<-g.in
		a.store.fail(func(op string) error { return errAway }) // no heartbeat succeeds
		after(8 * time.Second)
		b.say("m1", "bob", "second.")
		after(8 * time.Second)
		g.out <- struct{}{}
		synctest.Wait()
		a.store.fail(nil)
		after(time.Minute)
		want(t, "tries of the first owner", len(a.wire.sends()), 1)
		want(t, "first sent by the second", strings.Count(strings.Join(b.wire.texts(), "\n"), "first."), 1)
		want(t, "counted as perhaps doubled", b.bot.restarts.doubled.Load(), 1)
	})
}

// A reply that is committed while an earlier one waits goes behind it, and its row does not say that it is on its way.
func TestFirstTryWaitsInLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := start(t, setup{name: "a", wire: busyOnce(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) { return arrived, nil })})
		a.say("m0", "alice", "first.")
		a.say("m1", "bob", "second.")
		want(t, "tries while the first waits", len(a.wire.sends()), 1)
		a.kill()
		b := start(t, setup{name: "b", shelf: a.store.shelf})
		after(time.Minute)
		want(t, "sent by the next owner", strings.Count(strings.Join(b.wire.texts(), "\n"), "re: "), 2)
		want(t, "counted as perhaps doubled", b.bot.restarts.doubled.Load(), 0)
	})
}

// A machine is suspended while its replies wait, and its own clock stands still: another replica has them, and it finds that
// out from their rows.
func TestSuspendedMachineSendsNoReplyOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := start(t, setup{name: "a", wire: busyOnce(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) { return arrived, nil })})
		b := start(t, setup{name: "b", shelf: a.store.shelf})
		a.waits()
		a.store.mem.Expire("a")
		b.say("m3", "dave", "fourth.")
		after(time.Minute)
		all := strings.Join(append(a.wire.texts()[1:], b.wire.texts()...), "\n")
		for _, words := range []string{"first.", "second.", "third.", "fourth."} {
			want(t, "times that "+words+" was sent", strings.Count(all, words), 1)
		}
		want(t, "counted as perhaps doubled", b.bot.restarts.doubled.Load(), 0)
	})
}

// A joined message arrived in part and is then refused: its replies go out one by one, and are counted as sent twice perhaps.
func TestJoinedMessageRefusedAfterAPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{wire: busyOnce(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			switch try {
			case 2:
				return chat.Sent{Via: "webhook", Part: 1, More: true}, nil
			case 3:
				return chat.Sent{Part: 1}, &chat.SendError{Refused: true, Err: errors.New("999999")}
			}
			return arrived, nil
		})})
		w.waits()
		after(time.Minute)
		want(t, "tries", len(w.wire.sends()), 6)
		want(t, "unsent", len(w.unsent()), 0)
		want(t, "counted as perhaps doubled", w.bot.restarts.doubled.Load(), 3)
	})
}

// The marks of a joined message that may have arrived are not stored, and one of its replies is erased. The later mark
// is that reply's own, and the others are counted as sent twice perhaps.
func TestErasureAfterLostMarksOfJoinedMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		w := start(t, setup{wire: doubtfulSecond(func() { away.Store(true) })})
		w.store.fail(func(op string) error {
			if op == "settle" && away.Load() {
				return errAway
			}
			return nil
		})
		w.waits()
		after(5 * time.Second)
		w.store.fail(nil)
		w.eraseSecond()
		after(time.Minute)
		want(t, "unsent", len(w.unsent()), 0)
		want(t, "counted as perhaps doubled", w.bot.restarts.doubled.Load(), 2)
	})
}

// The mark of a try is not stored, and the reply is sent later: at a stop after that, no other reply is in doubt.
func TestLateMarkCountsNoOtherReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := start(t, setup{name: "a", wire: sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			if try != 2 {
				return chat.Sent{}, &chat.SendError{After: 2 * time.Second, Err: errors.New("130101")}
			}
			return arrived, nil
		})})
		a.store.fail(times(1, "settle", errAway))
		a.say("m0", "alice", "first.")
		want(t, "marks that are not stored", a.bot.outbox.HasUnmarked(), true)
		after(5 * time.Second)
		want(t, "unsent", len(a.unsent()), 0)
		a.store.lose(func(op string) error { // when the storage has done it
			if op == "claim" {
				return errAway
			}
			return nil
		})
		a.say("m1", "bob", "second.")
		after(3 * time.Second)
		a.stop()
		b := start(t, setup{name: "b", shelf: a.store.shelf})
		after(time.Minute)
		want(t, "sent by the next owner", len(b.wire.sends()), 1)
		want(t, "counted as perhaps doubled", b.bot.restarts.doubled.Load(), 0)
	})
}
