package bot

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/sessions"
)

// kill cuts the bot off from the storage and the network, as a dead process is.
func (w *world) kill() {
	w.store.fail(func(string) error { return errAway })
	w.wire.mu.Lock()
	w.wire.send = func(context.Context, sessions.Outgoing) (chat.Sent, error) { return chat.Sent{}, errAway }
	w.wire.mu.Unlock()
	w.begin()
}

// hang is a model that never answers.
func hang(ctx context.Context, _ llm.Request) (llm.Response, error) {
	<-ctx.Done()
	return llm.Response{}, context.Cause(ctx)
}

// Every acknowledged message of a killed process is answered by the next one, soon after the lease expired, without a
// sweep of its own.
func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := start(t, setup{name: "a", model: &script{chat: hang}})
		for i := range 10 {
			a.post(said(fmt.Sprintf("m%d", i), "alice", fmt.Sprintf("question %d", i)))
		}
		synctest.Wait()
		a.kill()
		began := time.Now()
		b := start(t, setup{name: "b", shelf: a.store.shelf})
		after(7 * time.Second) // the time to live, a sweep, and a little
		for i := range 10 {
			if !logged(b, fmt.Sprintf("question %d", i)) {
				t.Errorf("question %d is not answered %s after the kill", i, time.Since(began))
			}
		}
		for _, e := range b.store.mem.Events(t.Context(), group) {
			if e.Role == sessions.RoleUser && e.State != sessions.Done {
				t.Errorf("message %s is %s", e.MsgID, e.State)
			}
		}
	})
}

// logged reports whether a message has its place in the log.
func logged(w *world, words string) bool {
	for _, e := range w.store.log(w.t.Context(), group) {
		if e.Content == words {
			return true
		}
	}
	return false
}

// A message that breaks three turns is set aside: its author is notified once, and the messages that waited with it are
// answered.
func TestDeadLetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var broke atomic.Int32
		gate := newGate()
		w := start(t, setup{model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			words := lastWords(r)
			for _, m := range r.Messages[1:] {
				if strings.Contains(m.Content, "poison") {
					broke.Add(1)
					panic("poisoned")
				}
			}
			if strings.Contains(words, "first") {
				return text("ok"), gate.pass(ctx)
			}
			return text("re: " + words), nil
		}}})
		w.post(said("m0", "alice", "first"))
		<-gate.in
		w.post(said("m1", "mallory", "poison"))
		for i := range 3 {
			w.post(said(fmt.Sprintf("n%d", i), "bob", fmt.Sprintf("good %d", i)))
		}
		gate.out <- struct{}{}
		after(900 * time.Millisecond) // the pauses after three broken turns; less than a sweep
		want(t, "turns broken", broke.Load(), 3)
		sent := w.wire.sends()
		if len(sent) < 2 {
			t.Fatalf("%d replies", len(sent))
		}
		want(t, "mentioned", sent[1].Reply.Target.Mentions, []sessions.Mention{{StaffID: "u-mallory", Nick: "mallory"}})
		for i := range 3 {
			if !logged(w, fmt.Sprintf("good %d", i)) {
				t.Errorf("good %d is not answered", i)
			}
		}
		after(time.Minute)
		dead := 0
		for _, text := range w.wire.texts() {
			if strings.Contains(text, "set aside") || strings.Contains(text, "放在一边") {
				dead++
			}
		}
		want(t, "notices", dead, 1)
		for _, e := range w.store.mem.Events(t.Context(), group) {
			if e.MsgID == "m1" && (e.State != sessions.Dead || e.Seq != 0) {
				t.Errorf("the poison is %s at %d", e.State, e.Seq)
			}
		}
	})
}

// A panic in a model or a tool ends the turn, not the process; the message gets its answer in the next try.
func TestPanicsAreSurvived(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"model", "tool"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var n atomic.Int32
				w := start(t, setup{
					config: func(c *Config) {
						c.Tools = []chat.Tool{handTool{name: "look", reads: true, f: func(context.Context, chat.ToolInput) (string, error) {
							if where == "tool" && n.Add(1) == 1 {
								panic("in a tool")
							}
							return "seen", nil
						}}}
					},
					model: &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
						if where == "model" && n.Add(1) == 1 {
							panic("in the model")
						}
						if r.Messages[len(r.Messages)-1].Role == "tool" {
							return text("answer"), nil
						}
						return calls(sessions.ToolCall{ID: "c1", Name: "look", Arguments: "{}"}), nil
					}},
				})
				w.post(said("m1", "alice", "hello"))
				after(time.Second)
				want(t, "replies", w.wire.texts(), []string{"answer"})
			})
		})
	}
}

// A replica whose lease was taken in mid-turn writes nothing and says nothing; the new owner answers.
func TestLostLeaseWritesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		a := start(t, setup{name: "a", model: &script{chat: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			return text("from a"), g.pass(ctx)
		}}})
		a.post(said("m1", "alice", "hello"))
		<-g.in
		a.store.fail(func(op string) error { // its heart does not beat, all else works
			if op == "beat" {
				return errAway
			}
			return nil
		})
		b := start(t, setup{name: "b", shelf: a.store.shelf, model: &script{chat: func(context.Context, llm.Request) (llm.Response, error) { return text("from b"), nil }}})
		after(12 * time.Second)
		want(t, "sent by a", a.wire.texts(), []string(nil))
		want(t, "sent by b", b.wire.texts(), []string{"from b"})
		want(t, "events", len(b.store.log(t.Context(), group)), 2)
	})
}

// A replica that cannot be sure of its leases begins no turn, and goes on by itself when it can.
func TestNoTurnWithoutHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{})
		w.store.fail(times(8, "beat", errAway))
		after(6 * time.Second)
		w.say("m1", "alice", "hello")
		want(t, "asked without a heartbeat", len(w.model.requests("chat")), 0)
		after(10 * time.Second)
		want(t, "replies", len(w.wire.sends()), 1)
	})
}

// A clean stop that cuts a turn off gives its attempt back: being stopped ten times is no fault of the message.
func TestStopGivesTheAttemptBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := newShelf()
		for i := range 5 {
			w := start(t, setup{name: sessions.ReplicaID(fmt.Sprint("r", i)), shelf: shelf, model: &script{chat: hang}})
			if i == 0 {
				w.post(said("m1", "alice", "hello"))
				w.post(said("m2", "bob", "hello too"))
			}
			after(2 * time.Second)
			want(t, "asked", len(w.model.requests("chat")), 1)
			w.stop()
			for _, e := range shelf.mem.Events(t.Context(), group) {
				if e.Attempts != 0 || e.State != sessions.Pending {
					t.Fatalf("after stop %d message %s is %s with %d attempts", i, e.MsgID, e.State, e.Attempts)
				}
			}
		}
		w := start(t, setup{name: "last", shelf: shelf})
		after(2 * time.Second)
		want(t, "replies", len(w.wire.sends()), 1)
	})
}

// A reply that was being sent when the process died may have arrived. It is sent again under the key by which DingTalk
// recognises it.
func TestReplyOfADeadProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := start(t, setup{name: "a", wire: &wire{send: func(ctx context.Context, _ sessions.Outgoing) (chat.Sent, error) {
			<-ctx.Done()
			return chat.Sent{}, errAway
		}}})
		a.say("m1", "alice", "hello")
		a.store.fail(func(string) error { return errAway })
		b := start(t, setup{name: "b", shelf: a.store.shelf})
		after(8 * time.Second)
		sent := b.wire.sends()
		if len(sent) != 1 {
			t.Fatalf("%d replies of b", len(sent))
		}
		want(t, "the same key", sent[0].Reply.Nonce, a.wire.sends()[0].Reply.Nonce)
		want(t, "counted as perhaps doubled", value(t, b, "ebb_replies_maybe_doubled_total"), 1)
		want(t, "model calls of b", len(b.model.requests("chat")), 0)
	})
}

// value is a metric without labels.
func value(t *testing.T, w *world, name string) float64 {
	t.Helper()
	all, err := w.gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("no metric %s", name)
	return 0
}
