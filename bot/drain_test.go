package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/llm"
	"ebb/memory"
	"ebb/sessions"
)

// in puts a message into another conversation.
func in(conversation string, m sessions.Message) sessions.Message {
	m.ConversationID = sessions.ConversationID(conversation)
	m.ID += sessions.MessageID("-" + conversation)
	return m
}

// summary is the line that a stop ends with.
func (w *world) summary() map[string]any {
	w.t.Helper()
	lines := w.log.lines(w.t, "Shutdown memory flush summary")
	if len(lines) != 1 {
		w.t.Fatalf("%d lines of the shutdown's flush, want 1", len(lines))
	}
	return lines[0]
}

// A turn that runs when the signal comes is finished and its reply sent; then what was said is flushed and the lease
// given up.
func TestStopFinishesTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := start(t, setup{model: &script{chat: func(ctx context.Context, _ llm.Request) (llm.Response, error) { return text("done"), g.pass(ctx) }}})
		w.post(said("m1", "alice", "hello"))
		<-g.in
		w.begin()
		synctest.Wait()
		select {
		case <-w.bot.Draining():
		default:
			t.Error("the bot does not say that it drains")
		}
		after(10 * time.Second)
		g.out <- struct{}{}
		w.stop()
		want(t, "replies", w.wire.texts(), []string{"done"})
		f := w.store.flushes(group)
		want(t, "flushed up to", f.seq, 2)
		want(t, "mark of the cycle", f.epoch, -1)
		want(t, "owner of the lease", w.state(group).Lease.Owner, "")
		s := w.summary()
		want(t, "summary", fmt.Sprint(s["sessions"], s["flushed"], s["saved"], s["nothing_to_save"], s["owed"], s["memories"]), "1 1 1 0 0 1")
	})
}

// The account of a stop counts facts that are new. A fact that memory held before is known, and proves a flush as a new one does.
func TestStopCountsNewFacts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{model: &script{flush: func(_ context.Context, r llm.Request) (llm.Response, error) {
			switch words := r.Messages[len(r.Messages)-1].Content; {
			case strings.Contains(words, "again"):
				return saveCall("the port is 8443"), nil
			case strings.Contains(words, "nothing"):
				return calls(sessions.ToolCall{ID: "f", Name: "memory_save", Arguments: `{"facts":[],"nothing_to_save":true}`}), nil
			}
			return saveCall("the port is 8443", "the window is Friday", "the window is Friday"), nil
		}}})
		for i, words := range []string{"again", "more", "nothing"} {
			room := fmt.Sprint("room", i)
			w.post(in(room, said("m", "alice", words)))
			synctest.Wait()
			w.store.shelf.mu.Lock()
			w.store.put(sessions.NewKey("robot", sessions.ConversationID(room), ""), []memory.Draft{{Scope: memory.ScopeGroup, ScopeID: memory.GroupID("robot", sessions.ConversationID(room)), Kind: memory.KindFact, Content: "the port is 8443"}})
			w.store.shelf.mu.Unlock()
		}
		w.stop()
		s := w.summary()
		want(t, "summary", fmt.Sprint(s["sessions"], s["flushed"], s["saved"], s["nothing_to_save"], s["owed"], s["memories"], s["known"]), "3 3 2 1 0 1 2")
		for outcome, n := range map[string]float64{"saved": 2, "nothing": 1, "failed": 0} {
			want(t, "flushes counted as "+outcome, series(t, w, "ebb_memory_flushes_total", outcome), n)
		}
	})
}

// An idle session does not wait for another one's slow turn: it is flushed and handed over at once.
func TestStopHandsIdleSessionsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		w := start(t, setup{model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if strings.Contains(r.Messages[len(r.Messages)-1].Content, "slow") {
				return text("done"), g.pass(ctx)
			}
			return text("quick"), nil
		}}})
		w.say("m1", "alice", "hello")
		w.post(in("c2", said("m2", "bob", "slow")))
		<-g.in
		w.begin()
		after(time.Second)
		want(t, "flushed up to", w.store.flushes(group).seq, 2)
		want(t, "owner of the idle session", w.state(group).Lease.Owner, "")
		g.out <- struct{}{}
		w.stop()
		s := w.summary()
		want(t, "summary", fmt.Sprint(s["sessions"], s["flushed"], s["owed"]), "2 2 0")
	})
}

// A turn that does not end within the drain is cut off; its message is answered by the next process, and everything
// else of the stop happens all the same.
func TestStopCutsOffHangingCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if strings.Contains(lastWords(r), "hang") {
				return hang(ctx, r)
			}
			return text("ok"), nil
		}}})
		w.say("m1", "alice", "hello")
		w.post(in("c2", said("h", "bob", "hang")))
		synctest.Wait()
		began := time.Now()
		w.stop()
		if took := time.Since(began); took < 20*time.Second || took > 35*time.Second {
			t.Errorf("the stop took %s, want a little more than the drain's 20 s", took)
		}
		want(t, "flushed", w.store.flushes(group).seq, 2)
		b := start(t, setup{name: "b", shelf: w.store.shelf})
		after(2 * time.Second)
		want(t, "replies of the next process", len(b.wire.sends()), 1)
	})
}

// P54: twenty active sessions and one model call that hangs. The others are flushed within the deadline, the most
// unsaved first. A flush that was cut off is owed and does not count as failed.
func TestStopFlushesTheMostUnsavedFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		m := &script{}
		w := start(t, setup{model: m})
		for i := range 20 {
			w.post(in(fmt.Sprintf("room%02d", i), said("m", "alice", fmt.Sprintf("room%02d %s", i, prose(i, 20*(1+(i*7)%20))))))
			synctest.Wait()
		}
		m.mu.Lock()
		m.flush = func(ctx context.Context, r llm.Request) (llm.Response, error) {
			words := lastWords(r)
			at := strings.Index(words, "room")
			mu.Lock()
			order = append(order, words[at:at+6])
			n := len(order)
			mu.Unlock()
			<-time.After(time.Second)
			switch {
			case n == 1:
				return hang(ctx, r)
			case n%3 == 0:
				return calls(sessions.ToolCall{ID: "f", Name: "memory_save", Arguments: `{"facts":[],"nothing_to_save":true}`}), nil
			case n == 5:
				return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: errors.New("busy")}
			}
			return saveCall("one of "+words[at:at+6], "two of "+words[at:at+6]), nil
		}
		m.mu.Unlock()
		began := time.Now()
		w.stop()
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("the stop took %s", took)
		}
		s := w.summary()
		want(t, "summary", fmt.Sprint(s["sessions"], s["flushed"], s["saved"], s["nothing_to_save"], s["owed"], s["memories"]), "20 18 12 6 2 24")
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
		if f := w.store.flushes(hung); f.owed == 0 || f.failures != 0 {
			t.Errorf("the hung session owes up to %d with %d failures", f.owed, f.failures)
		}
	})
}

// A range that was flushed at a stop is not flushed again at the next one, and does not use up the flush before a
// compaction.
func TestFlushAtStopIsNotTheCyclesOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf, m := newShelf(), &script{}
		a := start(t, setup{name: "a", shelf: shelf, model: m})
		a.fill(2000)
		a.stop()
		want(t, "flushes", len(m.requests("flush")), 1)
		b := start(t, setup{name: "b", shelf: shelf, model: m})
		b.stop()
		want(t, "flushes after an idle life", len(m.requests("flush")), 1)
		c := start(t, setup{name: "c", shelf: shelf, model: m})
		c.talk(1)
		want(t, "flushes up to the compaction", len(m.requests("flush")), 2)
		if o := attempts(t, shelf.mem)[0].FlushOutcome; o != "done before" && !strings.HasPrefix(o, "saved") {
			t.Errorf("flush of the compaction: %s", o)
		}
	})
}

// A stop with the storage away ends all the same.
func TestStopWithoutStorage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		w.say("m1", "alice", "hello")
		w.store.fail(func(string) error { return errAway })
		w.refused(said("m2", "alice", "not acknowledged"))
		began := time.Now()
		w.stop()
		if took := time.Since(began); took > 40*time.Second {
			t.Errorf("the stop took %s", took)
		}
	})
}

// refused hands in a message that must not be acknowledged.
func (w *world) refused(m sessions.Message) {
	w.t.Helper()
	if err := w.wire.accept(w.t.Context(), m); err == nil {
		w.t.Errorf("message %s was acknowledged", m.ID)
	}
}

// Replicas hand over at a clean stop: a message that the other one had accepted is answered at once.
func TestHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		a := start(t, setup{name: "a", model: &script{chat: func(ctx context.Context, _ llm.Request) (llm.Response, error) { return text("from a"), g.pass(ctx) }}})
		b := start(t, setup{name: "b", shelf: a.store.shelf, model: &script{chat: func(context.Context, llm.Request) (llm.Response, error) { return text("from b"), nil }}})
		a.post(said("m1", "alice", "hello"))
		<-g.in
		b.say("m2", "bob", "me too") // a owns the session
		want(t, "sent by b", len(b.wire.sends()), 0)
		a.begin()
		g.out <- struct{}{}
		a.stop()
		synctest.Wait()
		want(t, "replies", append(a.wire.texts(), b.wire.texts()...), []string{"from a", "from b"})
	})
}
