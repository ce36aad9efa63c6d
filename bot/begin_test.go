package bot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/sessions"
)

// Trouble of the storage at the begin of a turn is no attempt, however often it comes.
func TestBeginFaultsCountNoAttempt(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(*store){
		"its answers are lost": func(s *store) { s.lose(times(6, "begin", errAway)) },
		"it is away":           func(s *store) { s.fail(times(6, "begin", errAway)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := start(t, setup{})
				trouble(w.store)
				w.say("m0", "alice", "q0")
				after(30 * time.Second)
				want(t, "texts", w.wire.texts(), []string{"re: alice(u-alice): q0"})
				want(t, "attempts", w.store.mem.Events(t.Context(), group)[0].Attempts, 0)
			})
		})
	}
}

const takenAlone = "Message of broken turns was taken alone"

// A message whose turn panics, or whose data the storage refuses, is set aside after three turns; its neighbour is answered.
func TestBrokenTurnsAreCounted(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*world){
		"the storage refuses": func(w *world) {
			w.store.fail(times(maxBroken, "commit", fmt.Errorf("no row: %w", sessions.ErrRefused)))
		},
		"a panic": func(w *world) {
			n := 0
			w.model.chat = func(_ context.Context, r llm.Request) (llm.Response, error) {
				if n++; n <= maxBroken {
					panic("broken")
				}
				return text("re: " + lastWords(r)), nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := start(t, setup{})
				breaks(w)
				w.say("m0", "alice", "q0")
				after(30 * time.Second)
				w.say("m1", "bob", "q1")
				after(time.Second)
				events := w.store.mem.Events(t.Context(), group)
				want(t, "state of the message that breaks", events[0].State, sessions.Dead)
				want(t, "attempts", events[0].Attempts, maxBroken)
				alone := w.log.lines(t, takenAlone)
				if len(alone) != 1 || alone[0]["attempts"] != 2. {
					t.Errorf("lines of the message that breaks are %v", alone)
				}
				want(t, "replies", len(w.wire.sends()), 2)
				want(t, "the neighbour's answer", w.wire.texts()[1], "re: bob(u-bob): q1")
			})
		})
	}
}

// A tool that hangs, as its storage does, is no model that takes too long: people read the model's answer without it.
func TestHangingToolLeavesTimeForAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{
			model: &script{chat: rounds(calls(call("1", "look", `{"n":1}`)), calls(call("2", "look", `{"n":2}`)))},
			config: func(c *Config) {
				c.TurnTimeout = time.Minute
				c.Tools = []chat.Tool{handTool{name: "look", reads: true, f: func(ctx context.Context, _ chat.ToolInput) (string, error) {
					<-ctx.Done()
					return "", errors.New("memory is out of reach")
				}}}
			},
		})
		w.post(said("m1", "alice", "what was it?"))
		after(time.Minute)
		want(t, "replies", w.wire.texts(), []string{"the end"})
		want(t, "result of a call", w.results()["2"], "error: memory is out of reach")
	})
}

// Several calls of one request hang: together they leave the model half of the turn, however many they are.
func TestHangingToolsShareOneDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var many []sessions.ToolCall
		for i := range 4 {
			many = append(many, call(fmt.Sprint(i), "look", fmt.Sprintf(`{"n":%d}`, i)))
		}
		next := rounds(calls(many...))
		w := start(t, setup{
			model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
				select {
				case <-time.After(20 * time.Second): // on the clock of the bubble
					return next(ctx, r)
				case <-ctx.Done():
					return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: context.Cause(ctx)}
				}
			}},
			config: func(c *Config) {
				c.TurnTimeout = time.Minute + 20*time.Second
				c.Tools = []chat.Tool{handTool{name: "look", reads: true, f: func(ctx context.Context, _ chat.ToolInput) (string, error) {
					<-ctx.Done()
					return "", errors.New("memory is out of reach")
				}}}
			},
		})
		w.post(said("m1", "alice", "what was it?"))
		after(2 * time.Minute)
		want(t, "replies", w.wire.texts(), []string{"the end"})
		for _, c := range many {
			want(t, "result of call "+c.ID, w.results()[c.ID], "error: memory is out of reach")
		}
	})
}

// Calls of a tool that can't be recorded in time are a fault of the storage. People read the answer once it is back,
// however long that takes, and the call has its effect once.
func TestStorageStallsInsideATurn(t *testing.T) {
	t.Parallel()
	late := fmt.Errorf("failed to connect: %w", context.DeadlineExceeded)
	for name, away := range map[string]time.Duration{"for a moment": 3 * time.Second, "for longer than a turn": 3 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var acts atomic.Int32
				w := start(t, setup{
					model: &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
						if last := r.Messages[len(r.Messages)-1]; last.Role == "tool" {
							return text("saved"), nil
						}
						return calls(call("1", "act", `{"a":1}`)), nil
					}},
					config: func(c *Config) {
						c.Tools, c.TurnTimeout = []chat.Tool{countedTool("act", false, &acts)}, time.Minute
					},
				})
				w.store.fail(func(op string) error {
					if op == "record" {
						return late
					}
					return nil
				})
				w.say("m1", "alice", "remember it")
				after(away)
				want(t, "replies while it is away", len(w.wire.texts()), 0)
				w.store.fail(nil)
				after(10 * time.Second)
				want(t, "replies", w.wire.texts(), []string{"saved"})
				want(t, "effects", acts.Load(), 1)
				want(t, "attempts", w.store.mem.Events(t.Context(), group)[0].Attempts, 0)
			})
		})
	}
}

// A turn that loses its lease over and over, to erasures in other conversations, is answered when they end.
func TestErasuresCountNoAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{model: &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			<-time.After(1500 * time.Millisecond) // on the clock of the bubble
			return text("re: " + lastWords(r)), nil
		}}})
		w.say("m0", "alice", "q0")
		after(2 * time.Second)
		w.post(said("m1", "bob", "q1"))
		for range 5 {
			after(1200 * time.Millisecond)
			if _, err := w.store.mem.Erase(t.Context(), group, []int64{1}); err != nil {
				t.Fatal(err)
			}
		}
		after(5 * time.Second)
		texts := w.wire.texts()
		want(t, "replies", len(texts), 2)
		want(t, "the last reply", texts[len(texts)-1], "re: bob(u-bob): q1")
	})
}

// Erasures take the lease of a turn that waits for its slot. It keeps the slot, and is answered before the conversation behind
// it.
func TestErasuresTakeNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := make(chan struct{})
		w := start(t, setup{
			model: &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
				<-full
				<-time.After(time.Second) // on the clock of the bubble
				return text("re: " + lastWords(r)), nil
			}},
			config: func(c *Config) { c.MaxConcurrent = 1 },
		})
		post := func(conversation, words string) {
			m := said(conversation+words, "bob", words)
			m.ConversationID = sessions.ConversationID(conversation)
			w.post(m)
			synctest.Wait()
		}
		_, conversation := group.Conversation()
		post(string(conversation), "q0")
		close(full)
		after(10 * time.Second)
		full = make(chan struct{})
		for i := range llm.TurnsPerCall {
			post(fmt.Sprint("busy", i), "busy")
		}
		post(string(conversation), "q1")
		post("behind", "q2")
		for range 5 {
			if _, err := w.store.mem.Erase(t.Context(), group, []int64{1}); err != nil {
				t.Fatal(err)
			}
		}
		close(full)
		after(time.Minute)
		texts := w.wire.texts()
		want(t, "replies", len(texts), 1+llm.TurnsPerCall+2)
		if slices.Index(texts, "re: bob(u-bob): q1") > slices.Index(texts, "re: bob(u-bob): q2") {
			t.Errorf("the conversation behind was answered first: %q", texts)
		}
	})
}

// lateRights is a cabinet that notes whether the time for a read of the log was up.
type lateRights struct {
	cabinet
	reads []error
}

func (r *lateRights) MessagesBefore(ctx context.Context, _ sessions.Key, _ sessions.UserID, _ int64, _ int) ([]sessions.Event, error) {
	r.reads = append(r.reads, ctx.Err())
	return nil, ctx.Err()
}

// The begin of a turn takes long: the log can be read all the same for the preview that a bare yes confirms.
func TestConfirmationIsReadAfterASlowBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rights := &lateRights{}
		w := start(t, setup{config: func(c *Config) { c.Rights = rights }})
		w.store.fail(func(op string) error {
			if op == "acquire" || op == "begin" {
				<-time.After(3 * time.Second) // on the clock of the bubble
			}
			return nil
		})
		w.say("m0", "alice", "yes")
		after(10 * time.Second)
		want(t, "reads of the log", rights.reads, []error{nil})
		want(t, "replies", len(w.wire.sends()), 1)
	})
}
