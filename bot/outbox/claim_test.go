package outbox_test

import (
	"context"
	"errors"
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

// busyOnce refuses the first try for a while and passes the others on.
func busyOnce(f func(ctx context.Context, try int, o sessions.Outgoing) (chat.Sent, error)) *bottest.Wire {
	return bottest.Sender(func(ctx context.Context, try int, o sessions.Outgoing) (chat.Sent, error) {
		if try == 1 {
			return chat.Sent{}, &chat.SendError{After: 2 * time.Second, Err: errors.New("130101")}
		}
		return f(ctx, try, o)
	})
}

// doubtfulSecond is a busyOnce whose second try may have arrived; lost is called before its outcome.
func doubtfulSecond(lost func()) *bottest.Wire {
	return busyOnce(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
		if try == 2 {
			lost()
			return chat.Sent{}, &chat.SendError{Maybe: true, After: 20 * time.Second, Err: errors.New("timeout")}
		}
		return bottest.Arrived, nil
	})
}

// eraseSecond erases the answer to the second message.
func eraseSecond(w *bottest.World) {
	w.T.Helper()
	if _, err := w.Store.Mem.Erasure.Erase(w.T.Context(), bottest.Group, []int64{4}); err != nil {
		w.T.Fatal(err)
	}
}

// waits has a world hold three replies that go out as one message.
func waits(w *bottest.World) {
	w.T.Helper()
	w.Say("m0", "alice", "first.")
	w.Say("m1", "bob", "second.")
	w.Say("m2", "carol", "third.")
}

// A process dies while it sends replies as one message: the next one sends the same message again, under the same key.
func TestJoinedMessageIsRepeatedByTheNextOwner(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *bottest.World, g bottest.Gate){
		"killed while it sent":       func(w *bottest.World, _ bottest.Gate) { w.Kill() },
		"killed after a lost answer": func(w *bottest.World, g bottest.Gate) { g.Out <- struct{}{}; synctest.Wait(); w.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := bottest.NewGate()
				a := bottest.Start(t, bottest.Setup{Name: "a", Wire: busyOnce(func(ctx context.Context, _ int, _ sessions.Outgoing) (chat.Sent, error) {
					_ = g.Pass(ctx)
					return chat.Sent{}, &chat.SendError{Maybe: true, Err: errors.New("timeout")}
				})})
				waits(a)
				<-g.In
				end(a, g)
				b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf})
				bottest.After(2 * time.Minute)
				was, sent := a.Wire.Sends()[1], b.Wire.Sends()
				if len(sent) != 1 || sent[0].Reply.Nonce != was.Reply.Nonce || sent[0].Reply.Text != was.Reply.Text {
					t.Fatalf("sent %q, want %q again, under its key", b.Wire.Texts(), was.Reply.Text)
				}
				bottest.Want(t, "counted as perhaps doubled", b.Figure("doubled"), 3)
				bottest.Want(t, "unsent", len(b.Unsent()), 0)
			})
		})
	}
}

// A part of a joined message that may have arrived was erased: the others go out, each by itself, and are counted.
func TestErasureTakesReplyOutOfJoinedMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Wire: doubtfulSecond(func() {})})
		waits(w)
		bottest.After(5 * time.Second)
		eraseSecond(w)
		bottest.After(time.Minute)
		sent := w.Wire.Sends()
		bottest.Want(t, "tries", len(sent), 4)
		if all := strings.Join(w.Wire.Texts()[2:], "\n"); strings.Contains(all, "second.") || !strings.Contains(all, "first.") || !strings.Contains(all, "third.") {
			t.Errorf("sent %q, want the first and the third", all)
		}
		bottest.Want(t, "counted as perhaps doubled", w.Figure("doubled"), 2)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
	})
}

// The answer to a claim gets lost: nothing is sent on it, the claim is made again, and nothing is in doubt for that.
func TestLostClaimIsMadeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Wire: busyOnce(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) { return bottest.Arrived, nil })})
		var once sync.Once
		w.Store.Lose(func(op string) (err error) {
			if op == "claim" {
				once.Do(func() { err = bottest.ErrAway })
			}
			return err
		})
		waits(w)
		bottest.After(10 * time.Second)
		bottest.Want(t, "tries", len(w.Wire.Sends()), 2)
		bottest.Want(t, "counted as perhaps doubled", w.Figure("doubled"), 0)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
	})
}

// A process is frozen between its claim and the send, until another has sent the reply: it sends it no more.
func TestFrozenBetweenClaimAndSend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		a := bottest.Start(t, bottest.Setup{Name: "a", Wire: busyOnce(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) { return bottest.Arrived, nil })})
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf})
		a.Store.Lose(func(op string) error { // when the storage has done it
			if op == "claim" {
				_ = g.Pass(t.Context())
			}
			return nil
		})
		a.Say("m0", "alice", "first.")
		<-g.In
		a.Store.Fail(func(op string) error { return bottest.ErrAway }) // no heartbeat succeeds
		bottest.After(8 * time.Second)
		b.Say("m1", "bob", "second.")
		bottest.After(8 * time.Second)
		g.Out <- struct{}{}
		synctest.Wait()
		a.Store.Fail(nil)
		bottest.After(time.Minute)
		bottest.Want(t, "tries of the first owner", len(a.Wire.Sends()), 1)
		bottest.Want(t, "first sent by the second", strings.Count(strings.Join(b.Wire.Texts(), "\n"), "first."), 1)
		bottest.Want(t, "counted as perhaps doubled", b.Figure("doubled"), 1)
	})
}

// A reply that is committed while an earlier one waits goes behind it, and its row does not say that it is on its way.
func TestFirstTryWaitsInLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := bottest.Start(t, bottest.Setup{Name: "a", Wire: busyOnce(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) { return bottest.Arrived, nil })})
		a.Say("m0", "alice", "first.")
		a.Say("m1", "bob", "second.")
		bottest.Want(t, "tries while the first waits", len(a.Wire.Sends()), 1)
		a.Kill()
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf})
		bottest.After(time.Minute)
		bottest.Want(t, "sent by the next owner", strings.Count(strings.Join(b.Wire.Texts(), "\n"), "re: "), 2)
		bottest.Want(t, "counted as perhaps doubled", b.Figure("doubled"), 0)
	})
}

// A machine is suspended while its replies wait, and its own clock stands still: another replica has them, and it finds that
// out from their rows.
func TestSuspendedMachineSendsNoReplyOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := bottest.Start(t, bottest.Setup{Name: "a", Wire: busyOnce(func(context.Context, int, sessions.Outgoing) (chat.Sent, error) { return bottest.Arrived, nil })})
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf})
		waits(a)
		a.Store.Mem.Expire("a")
		b.Say("m3", "dave", "fourth.")
		bottest.After(time.Minute)
		all := strings.Join(append(a.Wire.Texts()[1:], b.Wire.Texts()...), "\n")
		for _, words := range []string{"first.", "second.", "third.", "fourth."} {
			bottest.Want(t, "times that "+words+" was sent", strings.Count(all, words), 1)
		}
		bottest.Want(t, "counted as perhaps doubled", b.Figure("doubled"), 0)
	})
}

// A joined message arrived in part and is then refused: its replies go out one by one, and are counted as sent twice perhaps.
func TestJoinedMessageRefusedAfterAPart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Wire: busyOnce(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			switch try {
			case 2:
				return chat.Sent{Via: "webhook", Part: 1, More: true}, nil
			case 3:
				return chat.Sent{Part: 1}, &chat.SendError{Refused: true, Err: errors.New("999999")}
			}
			return bottest.Arrived, nil
		})})
		waits(w)
		bottest.After(time.Minute)
		bottest.Want(t, "tries", len(w.Wire.Sends()), 6)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
		bottest.Want(t, "counted as perhaps doubled", w.Figure("doubled"), 3)
	})
}

// The marks of a joined message that may have arrived are not stored, and one of its replies is erased. The later mark
// is that reply's own, and the others are counted as sent twice perhaps.
func TestErasureAfterLostMarksOfJoinedMessage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		w := bottest.Start(t, bottest.Setup{Wire: doubtfulSecond(func() { away.Store(true) })})
		w.Store.Fail(func(op string) error {
			if op == "settle" && away.Load() {
				return bottest.ErrAway
			}
			return nil
		})
		waits(w)
		bottest.After(5 * time.Second)
		w.Store.Fail(nil)
		eraseSecond(w)
		bottest.After(time.Minute)
		bottest.Want(t, "unsent", len(w.Unsent()), 0)
		bottest.Want(t, "counted as perhaps doubled", w.Figure("doubled"), 2)
	})
}

// The mark of a try is not stored, and the reply is sent later: at a stop after that, no other reply is in doubt.
func TestLateMarkCountsNoOtherReply(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := bottest.Start(t, bottest.Setup{Name: "a", Wire: bottest.Sender(func(_ context.Context, try int, _ sessions.Outgoing) (chat.Sent, error) {
			if try != 2 {
				return chat.Sent{}, &chat.SendError{After: 2 * time.Second, Err: errors.New("130101")}
			}
			return bottest.Arrived, nil
		})})
		a.Store.Fail(bottest.Times(1, "settle", bottest.ErrAway))
		a.Say("m0", "alice", "first.")
		bottest.Want(t, "replies whose mark is not stored", len(a.Unsent()), 1)
		bottest.After(5 * time.Second)
		bottest.Want(t, "unsent", len(a.Unsent()), 0)
		a.Store.Lose(func(op string) error { // when the storage has done it
			if op == "claim" {
				return bottest.ErrAway
			}
			return nil
		})
		a.Say("m1", "bob", "second.")
		bottest.After(3 * time.Second)
		a.Stop()
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf})
		bottest.After(time.Minute)
		bottest.Want(t, "sent by the next owner", len(b.Wire.Sends()), 1)
		bottest.Want(t, "counted as perhaps doubled", b.Figure("doubled"), 0)
	})
}
