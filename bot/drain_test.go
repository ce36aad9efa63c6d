package bot_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// in puts a message into another conversation.
func in(conversation string, m sessions.Message) sessions.Message {
	m.ConversationID = sessions.ConversationID(conversation)
	m.ID += sessions.MessageID("-" + conversation)
	return m
}

// summary is the line that a stop ends with.
func summary(w *bottest.World) map[string]any {
	w.T.Helper()
	lines := w.Log.Lines(w.T, "Shutdown memory flush summary")
	if len(lines) != 1 {
		w.T.Fatalf("%d lines of the shutdown's flush, want 1", len(lines))
	}
	return lines[0]
}

// A turn that runs when the signal comes is finished and its reply sent; then what was said is flushed and the lease
// given up.
func TestStopFinishesTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			return bottest.Text("done"), g.Pass(ctx)
		}}})
		w.Post(bottest.Said("m1", "alice", "hello"))
		<-g.In
		w.Begin()
		synctest.Wait()
		select {
		case <-w.Bot.Draining():
		default:
			t.Error("the bot does not say that it drains")
		}
		bottest.After(10 * time.Second)
		g.Out <- struct{}{}
		w.Stop()
		bottest.Want(t, "replies", w.Wire.Texts(), []string{"done"})
		f := w.Store.Flushes(bottest.Group)
		bottest.Want(t, "flushed up to", f.Seq, 2)
		bottest.Want(t, "mark of the cycle", f.Epoch, -1)
		bottest.Want(t, "owner of the lease", w.State(bottest.Group).Lease.Owner, "")
		s := summary(w)
		bottest.Want(t, "summary", fmt.Sprint(s["sessions"], s["flushed"], s["saved"], s["nothing_to_save"], s["owed"], s["memories"]), "1 1 1 0 0 1")
	})
}

// The account of a stop counts facts that are new. A fact that memory held before is known, and proves a flush as a new one does.
func TestStopCountsNewFacts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Flush: func(_ context.Context, r llm.Request) (llm.Response, error) {
			switch words := r.Messages[len(r.Messages)-1].Content; {
			case strings.Contains(words, "again"):
				return bottest.SaveCall("the port is 8443"), nil
			case strings.Contains(words, "nothing"):
				return bottest.Calls(sessions.ToolCall{ID: "f", Name: "memory_save", Arguments: `{"facts":[],"nothing_to_save":true}`}), nil
			}
			return bottest.SaveCall("the port is 8443", "the window is Friday", "the window is Friday"), nil
		}}})
		for i, words := range []string{"again", "more", "nothing"} {
			room := fmt.Sprint("room", i)
			w.Post(in(room, bottest.Said("m", "alice", words)))
			synctest.Wait()
			w.Store.Shelf.Mu.Lock()
			w.Store.Put(sessions.NewKey("robot", sessions.ConversationID(room), ""), []memory.Draft{{Scope: memory.ScopeGroup, ScopeID: memory.GroupID("robot", sessions.ConversationID(room)), Kind: memory.KindFact, Content: "the port is 8443"}})
			w.Store.Shelf.Mu.Unlock()
		}
		w.Stop()
		s := summary(w)
		bottest.Want(t, "summary", fmt.Sprint(s["sessions"], s["flushed"], s["saved"], s["nothing_to_save"], s["owed"], s["memories"], s["known"]), "3 3 2 1 0 1 2")
		for outcome, n := range map[string]float64{"saved": 2, "nothing": 1, "failed": 0} {
			bottest.Want(t, "flushes counted as "+outcome, bottest.Series(t, w, "ebb_memory_flushes_total", outcome), n)
		}
	})
}

// An idle session does not wait for another one's slow turn: it is flushed and handed over at once.
func TestStopHandsIdleSessionsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if strings.Contains(r.Messages[len(r.Messages)-1].Content, "slow") {
				return bottest.Text("done"), g.Pass(ctx)
			}
			return bottest.Text("quick"), nil
		}}})
		w.Say("m1", "alice", "hello")
		w.Post(in("c2", bottest.Said("m2", "bob", "slow")))
		<-g.In
		w.Begin()
		bottest.After(time.Second)
		bottest.Want(t, "flushed up to", w.Store.Flushes(bottest.Group).Seq, 2)
		bottest.Want(t, "owner of the idle session", w.State(bottest.Group).Lease.Owner, "")
		g.Out <- struct{}{}
		w.Stop()
		s := summary(w)
		bottest.Want(t, "summary", fmt.Sprint(s["sessions"], s["flushed"], s["owed"]), "2 2 0")
	})
}

// A turn that does not end within the drain is cut off; its message is answered by the next process, and everything
// else of the stop happens all the same.
func TestStopCutsOffHangingCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if strings.Contains(bottest.LastWords(r), "hang") {
				return bottest.Hang(ctx, r)
			}
			return bottest.Text("ok"), nil
		}}})
		w.Say("m1", "alice", "hello")
		w.Post(in("c2", bottest.Said("h", "bob", "hang")))
		synctest.Wait()
		began := time.Now()
		w.Stop()
		if took := time.Since(began); took < 20*time.Second || took > 35*time.Second {
			t.Errorf("the stop took %s, want a little more than the drain's 20 s", took)
		}
		bottest.Want(t, "flushed", w.Store.Flushes(bottest.Group).Seq, 2)
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: w.Store.Shelf})
		bottest.After(2 * time.Second)
		bottest.Want(t, "replies of the next process", len(b.Wire.Sends()), 1)
	})
}

// P54: twenty active sessions and one model call that hangs. The others are flushed within the deadline, the most
// unsaved first. A flush that was cut off is owed and does not count as failed.
func TestStopFlushesTheMostUnsavedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		m := &bottest.Script{}
		w := bottest.Start(t, bottest.Setup{Model: m})
		for i := range 20 {
			w.Post(in(fmt.Sprintf("room%02d", i), bottest.Said("m", "alice", fmt.Sprintf("room%02d %s", i, bottest.Prose(i, 20*(1+(i*7)%20))))))
			synctest.Wait()
		}
		m.Mu.Lock()
		m.Flush = func(ctx context.Context, r llm.Request) (llm.Response, error) {
			words := bottest.LastWords(r)
			at := strings.Index(words, "room")
			mu.Lock()
			order = append(order, words[at:at+6])
			n := len(order)
			mu.Unlock()
			<-time.After(time.Second)
			switch {
			case n == 1:
				return bottest.Hang(ctx, r)
			case n%3 == 0:
				return bottest.Calls(sessions.ToolCall{ID: "f", Name: "memory_save", Arguments: `{"facts":[],"nothing_to_save":true}`}), nil
			case n == 5:
				return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: errors.New("busy")}
			}
			return bottest.SaveCall("one of "+words[at:at+6], "two of "+words[at:at+6]), nil
		}
		m.Mu.Unlock()
		began := time.Now()
		w.Stop()
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the stop took %s", took)
		}
		s := summary(w)
		bottest.Want(t, "summary", fmt.Sprint(s["sessions"], s["flushed"], s["saved"], s["nothing_to_save"], s["owed"], s["memories"]), "20 18 12 6 2 24")
		first := map[string]bool{}
		for _, room := range order[:16] {
			first[room] = true
		}
		for i := range 20 { // the size of a room is its place in a cycle of 20
			if room := fmt.Sprintf("room%02d", i); (i*7)%20 >= 4 && !first[room] {
				t.Errorf("%s, of the most unsaved, was not among the first: %v", room, order)
			}
		}
		hung := sessions.NewKey("robot", sessions.ConversationID(order[0]), "")
		if f := w.Store.Flushes(hung); f.Owed == 0 || f.Failures != 0 {
			t.Errorf("the hung session owes up to %d with %d failures", f.Owed, f.Failures)
		}
	})
}

// A range that was flushed at a stop is not flushed again at the next one, and does not use up the flush before a
// compaction.
func TestFlushAtStopIsNotTheCyclesOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf, m := bottest.NewShelf(), &bottest.Script{}
		a := bottest.Start(t, bottest.Setup{Name: "a", Shelf: shelf, Model: m})
		a.Fill(2000)
		a.Stop()
		bottest.Want(t, "flushes", len(m.Requests("flush")), 1)
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: shelf, Model: m})
		b.Stop()
		bottest.Want(t, "flushes after an idle life", len(m.Requests("flush")), 1)
		c := bottest.Start(t, bottest.Setup{Name: "c", Shelf: shelf, Model: m})
		c.Talk(1)
		bottest.Want(t, "flushes up to the compaction", len(m.Requests("flush")), 2)
		if o := bottest.Attempts(t, shelf.Mem.Compactions)[0].FlushOutcome; o != "done before" && !strings.HasPrefix(string(o), "saved") {
			t.Errorf("flush of the compaction: %s", o)
		}
	})
}

// A stop with the storage away ends all the same.
func TestStopWithoutStorage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		w.Say("m1", "alice", "hello")
		w.Store.Fail(func(string) error { return bottest.ErrAway })
		refused(w, bottest.Said("m2", "alice", "not acknowledged"))
		began := time.Now()
		w.Stop()
		if took := time.Since(began); took > 40*time.Second {
			t.Errorf("the stop took %s", took)
		}
	})
}

// refused hands in a message that must not be acknowledged.
func refused(w *bottest.World, m sessions.Message) {
	w.T.Helper()
	if err := w.Wire.Accept(w.T.Context(), m); err == nil {
		w.T.Errorf("message %s was acknowledged", m.ID)
	}
}

// Replicas hand over at a clean stop: a message that the other one had accepted is answered at once.
func TestHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		a := bottest.Start(t, bottest.Setup{Name: "a", Model: &bottest.Script{Chat: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			return bottest.Text("from a"), g.Pass(ctx)
		}}})
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Model: &bottest.Script{Chat: func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text("from b"), nil }}})
		a.Post(bottest.Said("m1", "alice", "hello"))
		<-g.In
		b.Say("m2", "bob", "me too") // a owns the session
		bottest.Want(t, "sent by b", len(b.Wire.Sends()), 0)
		a.Begin()
		g.Out <- struct{}{}
		a.Stop()
		synctest.Wait()
		bottest.Want(t, "replies", append(a.Wire.Texts(), b.Wire.Texts()...), []string{"from a", "from b"})
	})
}

// A model that refuses the key of the last flushes needs an administrator: the notice is stored before the end of the drain.
func TestStopAwaitsNoticesOfLastFlushes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		denied := &llm.CallError{Class: llm.Denied, Model: "fake", Err: errors.New("no such key")}
		w := bottest.Start(t, bottest.Setup{
			Model: &bottest.Script{Flush: func(context.Context, llm.Request) (llm.Response, error) {
				return llm.Response{Parts: []llm.Part{{Model: "fake", Requests: 1, Err: denied}}}, denied
			}},
			Config: func(c *bot.Config) {
				c.Admins = []sessions.UserID{"u-root"}
				c.Robot = func() sessions.RobotCode { return "robot" }
			},
		})
		w.Say("m1", "alice", "hello")
		w.Store.Fail(func(op string) error {
			if op == "accept" { // a slow storage
				time.Sleep(500 * time.Millisecond)
			}
			return nil
		})
		w.Stop()
		stored := w.Store.Mem.Events(t.Context(), sessions.NewKey("robot", "notices:u-root", ""))
		bottest.Want(t, "notices to administrators", len(stored), 1)
	})
}
