package bot_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Every acknowledged message of a killed process is answered by the next one, soon after the lease expired, without a
// sweep of its own.
func TestKilledProcessLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := bottest.Start(t, bottest.Setup{Name: "a", Model: &bottest.Script{Chat: bottest.Hang}})
		for i := range 10 {
			a.Post(bottest.Said(fmt.Sprintf("m%d", i), "alice", fmt.Sprintf("question %d", i)))
		}
		synctest.Wait()
		a.Kill()
		began := time.Now()
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf})
		bottest.After(7 * time.Second) // the time to live, a sweep, and a little
		for i := range 10 {
			if !bottest.Logged(b, fmt.Sprintf("question %d", i)) {
				t.Errorf("question %d is not answered %s after the kill", i, time.Since(began))
			}
		}
		for _, e := range b.Store.Mem.Events(t.Context(), bottest.Group) {
			if e.Role == sessions.RoleUser && e.State != sessions.Done {
				t.Errorf("message %s is %s", e.MsgID, e.State)
			}
		}
	})
}

// A message that breaks three turns is set aside: its author is notified once, and the messages that waited with it are
// answered.
func TestDeadLetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var broke atomic.Int32
		gate := bottest.NewGate()
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			words := bottest.LastWords(r)
			for _, m := range r.Messages[1:] {
				if strings.Contains(m.Content, "poison") {
					broke.Add(1)
					panic("poisoned")
				}
			}
			if strings.Contains(words, "first") {
				return bottest.Text("ok"), gate.Pass(ctx)
			}
			return bottest.Text("re: " + words), nil
		}}})
		w.Post(bottest.Said("m0", "alice", "first"))
		<-gate.In
		w.Post(bottest.Said("m1", "mallory", "poison"))
		for i := range 3 {
			w.Post(bottest.Said(fmt.Sprintf("n%d", i), "bob", fmt.Sprintf("good %d", i)))
		}
		gate.Out <- struct{}{}
		bottest.After(900 * time.Millisecond) // the pauses after three broken turns; less than a sweep
		bottest.Want(t, "turns broken", broke.Load(), 3)
		sent := w.Wire.Sends()
		if len(sent) < 2 {
			t.Fatalf("%d replies", len(sent))
		}
		bottest.Want(t, "mentioned", sent[1].Reply.Target.Mentions, []sessions.Mention{{StaffID: "u-mallory", Nick: "mallory"}})
		for i := range 3 {
			if !bottest.Logged(w, fmt.Sprintf("good %d", i)) {
				t.Errorf("good %d is not answered", i)
			}
		}
		bottest.After(time.Minute)
		dead := 0
		for _, text := range w.Wire.Texts() {
			if strings.Contains(text, "set aside") || strings.Contains(text, "放在一边") {
				dead++
			}
		}
		bottest.Want(t, "notices", dead, 1)
		for _, e := range w.Store.Mem.Events(t.Context(), bottest.Group) {
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
				w := bottest.Start(t, bottest.Setup{
					Config: func(c *bot.Config) {
						c.Tools = []chat.Tool{bottest.HandTool{Name: "look", Reads: true, F: func(context.Context, chat.ToolInput) (string, error) {
							if where == "tool" && n.Add(1) == 1 {
								panic("in a tool")
							}
							return "seen", nil
						}}}
					},
					Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
						if where == "model" && n.Add(1) == 1 {
							panic("in the model")
						}
						if r.Messages[len(r.Messages)-1].Role == "tool" {
							return bottest.Text("answer"), nil
						}
						return bottest.Calls(sessions.ToolCall{ID: "c1", Name: "look", Arguments: "{}"}), nil
					}},
				})
				w.Post(bottest.Said("m1", "alice", "hello"))
				bottest.After(time.Second)
				bottest.Want(t, "replies", w.Wire.Texts(), []string{"answer"})
			})
		})
	}
}

// A replica whose lease was taken in mid-turn writes nothing and says nothing; the new owner answers.
func TestLostLeaseWritesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		a := bottest.Start(t, bottest.Setup{Name: "a", Model: &bottest.Script{Chat: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			return bottest.Text("from a"), g.Pass(ctx)
		}}})
		a.Post(bottest.Said("m1", "alice", "hello"))
		<-g.In
		a.Store.Fail(func(op string) error { // its heart does not beat, all else works
			if op == "beat" {
				return bottest.ErrAway
			}
			return nil
		})
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Model: &bottest.Script{Chat: func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text("from b"), nil }}})
		bottest.After(12 * time.Second)
		bottest.Want(t, "sent by a", a.Wire.Texts(), []string(nil))
		bottest.Want(t, "sent by b", b.Wire.Texts(), []string{"from b"})
		bottest.Want(t, "events", len(b.Store.EventsOf(t.Context(), bottest.Group)), 2)
	})
}

// A replica that cannot be sure of its leases begins no turn, and goes on by itself when it can.
func TestNoTurnWithoutHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{})
		w.Store.Fail(bottest.Times(8, "beat", bottest.ErrAway))
		bottest.After(6 * time.Second)
		w.Say("m1", "alice", "hello")
		bottest.Want(t, "asked without a heartbeat", len(w.Model.Requests("chat")), 0)
		bottest.After(10 * time.Second)
		bottest.Want(t, "replies", len(w.Wire.Sends()), 1)
	})
}

// A clean stop that cuts a turn off gives its attempt back: being stopped ten times is no fault of the message.
func TestStopGivesTheAttemptBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf := bottest.NewShelf()
		for i := range 5 {
			w := bottest.Start(t, bottest.Setup{Name: sessions.ReplicaID(fmt.Sprint("r", i)), Shelf: shelf, Model: &bottest.Script{Chat: bottest.Hang}})
			if i == 0 {
				w.Post(bottest.Said("m1", "alice", "hello"))
				w.Post(bottest.Said("m2", "bob", "hello too"))
			}
			bottest.After(2 * time.Second)
			bottest.Want(t, "asked", len(w.Model.Requests("chat")), 1)
			w.Stop()
			for _, e := range shelf.Mem.Events(t.Context(), bottest.Group) {
				if e.Attempts != 0 || e.State != sessions.Pending {
					t.Fatalf("after stop %d message %s is %s with %d attempts", i, e.MsgID, e.State, e.Attempts)
				}
			}
		}
		w := bottest.Start(t, bottest.Setup{Name: "last", Shelf: shelf})
		bottest.After(2 * time.Second)
		bottest.Want(t, "replies", len(w.Wire.Sends()), 1)
	})
}

// A reply that was being sent when the process died may have arrived. It is sent again under the key by which DingTalk
// recognises it.
func TestReplyOfADeadProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := bottest.Start(t, bottest.Setup{Name: "a", Wire: &bottest.Wire{Deliver: func(ctx context.Context, _ sessions.Outgoing) (chat.Sent, error) {
			<-ctx.Done()
			return chat.Sent{}, bottest.ErrAway
		}}})
		a.Say("m1", "alice", "hello")
		a.Store.Fail(func(string) error { return bottest.ErrAway })
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf})
		bottest.After(8 * time.Second)
		sent := b.Wire.Sends()
		if len(sent) != 1 {
			t.Fatalf("%d replies of b", len(sent))
		}
		bottest.Want(t, "the same key", sent[0].Reply.Nonce, a.Wire.Sends()[0].Reply.Nonce)
		bottest.Want(t, "counted as perhaps doubled", bottest.Series(t, b, "ebb_replies_maybe_doubled_total"), 1)
		bottest.Want(t, "model calls of b", len(b.Model.Requests("chat")), 0)
	})
}
