package turn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/bot/gate"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Trouble of the storage at the begin of a turn is no attempt, however often it comes.
func TestBeginFaultsCountNoAttempt(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(*bottest.Store){
		"its answers are lost": func(s *bottest.Store) { s.Lose(bottest.Times(6, "begin", bottest.ErrAway)) },
		"it is away":           func(s *bottest.Store) { s.Fail(bottest.Times(6, "begin", bottest.ErrAway)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{})
				trouble(w.Store)
				w.Say("m0", "alice", "q0")
				bottest.After(30 * time.Second)
				bottest.Want(t, "texts", w.Wire.Texts(), []string{"re: alice(u-alice): q0"})
				bottest.Want(t, "attempts", w.Store.Mem.Events(t.Context(), bottest.Group)[0].Attempts, 0)
			})
		})
	}
}

// A message whose turn panics, or whose data the storage refuses, is set aside after three turns; its neighbour is answered.
func TestBrokenTurnsAreCounted(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*bottest.World){
		"the storage refuses": func(w *bottest.World) {
			w.Store.Fail(bottest.Times(bottest.MaxBroken, "commit", fmt.Errorf("no row: %w", sessions.ErrRefused)))
		},
		"a panic": func(w *bottest.World) {
			n := 0
			w.Model.Chat = func(_ context.Context, r llm.Request) (llm.Response, error) {
				if n++; n <= bottest.MaxBroken {
					panic("broken")
				}
				return bottest.Text("re: " + bottest.LastWords(r)), nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{})
				breaks(w)
				w.Say("m0", "alice", "q0")
				bottest.After(30 * time.Second)
				w.Say("m1", "bob", "q1")
				bottest.After(time.Second)
				events := w.Store.Mem.Events(t.Context(), bottest.Group)
				bottest.Want(t, "state of the message that breaks", events[0].State, sessions.Dead)
				bottest.Want(t, "attempts", events[0].Attempts, bottest.MaxBroken)
				alone := w.Log.Lines(t, bottest.TakenAlone)
				if len(alone) != 1 || alone[0]["attempts"] != 2. {
					t.Errorf("lines of the message that breaks are %v", alone)
				}
				bottest.Want(t, "replies", len(w.Wire.Sends()), 2)
				bottest.Want(t, "the neighbour's answer", w.Wire.Texts()[1], "re: bob(u-bob): q1")
			})
		})
	}
}

// A tool that hangs, as its storage does, is no model that takes too long: people read the model's answer without it.
func TestHangingToolLeavesTimeForAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{
			Model: &bottest.Script{Chat: bottest.Rounds(bottest.Calls(bottest.Call("1", "look", `{"n":1}`)), bottest.Calls(bottest.Call("2", "look", `{"n":2}`)))},
			Config: func(c *bot.Config) {
				c.TurnTimeout = time.Minute
				c.Tools = []chat.Tool{bottest.HandTool{Name: "look", Reads: true, F: func(ctx context.Context, _ chat.ToolInput) (string, error) {
					<-ctx.Done()
					return "", errors.New("memory is out of reach")
				}}}
			},
		})
		w.Post(bottest.Said("m1", "alice", "what was it?"))
		bottest.After(time.Minute)
		bottest.Want(t, "replies", w.Wire.Texts(), []string{"the end"})
		bottest.Want(t, "result of a call", w.Results()["2"], "error: memory is out of reach")
	})
}

// Several calls of one request hang: together they leave the model half of the turn, however many they are.
func TestHangingToolsShareOneDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var many []sessions.ToolCall
		for i := range 4 {
			many = append(many, bottest.Call(fmt.Sprint(i), "look", fmt.Sprintf(`{"n":%d}`, i)))
		}
		next := bottest.Rounds(bottest.Calls(many...))
		w := bottest.Start(t, bottest.Setup{
			Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
				select {
				case <-time.After(20 * time.Second): // on the clock of the bubble
					return next(ctx, r)
				case <-ctx.Done():
					return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: context.Cause(ctx)}
				}
			}},
			Config: func(c *bot.Config) {
				c.TurnTimeout = time.Minute + 20*time.Second
				c.Tools = []chat.Tool{bottest.HandTool{Name: "look", Reads: true, F: func(ctx context.Context, _ chat.ToolInput) (string, error) {
					<-ctx.Done()
					return "", errors.New("memory is out of reach")
				}}}
			},
		})
		w.Post(bottest.Said("m1", "alice", "what was it?"))
		bottest.After(2 * time.Minute)
		bottest.Want(t, "replies", w.Wire.Texts(), []string{"the end"})
		for _, c := range many {
			bottest.Want(t, "result of call "+c.ID, w.Results()[c.ID], "error: memory is out of reach")
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
				w := bottest.Start(t, bottest.Setup{
					Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
						if last := r.Messages[len(r.Messages)-1]; last.Role == "tool" {
							return bottest.Text("saved"), nil
						}
						return bottest.Calls(bottest.Call("1", "act", `{"a":1}`)), nil
					}},
					Config: func(c *bot.Config) {
						c.Tools, c.TurnTimeout = []chat.Tool{bottest.CountedTool("act", false, &acts)}, time.Minute
					},
				})
				w.Store.Fail(func(op string) error {
					if op == "record" {
						return late
					}
					return nil
				})
				w.Say("m1", "alice", "remember it")
				bottest.After(away)
				bottest.Want(t, "replies while it is away", len(w.Wire.Texts()), 0)
				w.Store.Fail(nil)
				bottest.After(10 * time.Second)
				bottest.Want(t, "replies", w.Wire.Texts(), []string{"saved"})
				bottest.Want(t, "effects", acts.Load(), 1)
				bottest.Want(t, "attempts", w.Store.Mem.Events(t.Context(), bottest.Group)[0].Attempts, 0)
			})
		})
	}
}

// A turn that loses its lease over and over, to erasures in other conversations, is answered when they end.
func TestErasuresCountNoAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			<-time.After(1500 * time.Millisecond) // on the clock of the bubble
			return bottest.Text("re: " + bottest.LastWords(r)), nil
		}}})
		w.Say("m0", "alice", "q0")
		bottest.After(2 * time.Second)
		w.Post(bottest.Said("m1", "bob", "q1"))
		for range 5 {
			bottest.After(1200 * time.Millisecond)
			if _, err := w.Store.Mem.Erasure.Erase(t.Context(), bottest.Group, []int64{1}); err != nil {
				t.Fatal(err)
			}
		}
		bottest.After(5 * time.Second)
		texts := w.Wire.Texts()
		bottest.Want(t, "replies", len(texts), 2)
		bottest.Want(t, "the last reply", texts[len(texts)-1], "re: bob(u-bob): q1")
	})
}

// Erasures take the lease of a turn that waits for its slot. It keeps the slot, and is answered before the conversation behind
// it.
func TestErasuresTakeNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full := make(chan struct{})
		w := bottest.Start(t, bottest.Setup{
			Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
				<-full
				<-time.After(time.Second) // on the clock of the bubble
				return bottest.Text("re: " + bottest.LastWords(r)), nil
			}},
			Config: func(c *bot.Config) { c.MaxConcurrent = 1 },
		})
		post := func(conversation, words string) {
			m := bottest.Said(conversation+words, "bob", words)
			m.ConversationID = sessions.ConversationID(conversation)
			w.Post(m)
			synctest.Wait()
		}
		_, conversation := bottest.Group.Conversation()
		post(string(conversation), "q0")
		close(full)
		bottest.After(10 * time.Second)
		full = make(chan struct{})
		for i := range gate.TurnsPerCall {
			post(fmt.Sprint("busy", i), "busy")
		}
		post(string(conversation), "q1")
		post("behind", "q2")
		for range 5 {
			if _, err := w.Store.Mem.Erasure.Erase(t.Context(), bottest.Group, []int64{1}); err != nil {
				t.Fatal(err)
			}
		}
		close(full)
		bottest.After(time.Minute)
		texts := w.Wire.Texts()
		bottest.Want(t, "replies", len(texts), 1+gate.TurnsPerCall+2)
		if slices.Index(texts, "re: bob(u-bob): q1") > slices.Index(texts, "re: bob(u-bob): q2") {
			t.Errorf("the conversation behind was answered first: %q", texts)
		}
	})
}

// lateRights is a cabinet that notes whether the time for a read of the log was up.
type lateRights struct {
	bottest.Rights
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
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { bottest.Knows(c, rights) }})
		w.Store.Fail(func(op string) error {
			if op == "acquire" || op == "begin" {
				<-time.After(3 * time.Second) // on the clock of the bubble
			}
			return nil
		})
		w.Say("m0", "alice", "yes")
		bottest.After(10 * time.Second)
		bottest.Want(t, "reads of the log", rights.reads, []error{nil})
		bottest.Want(t, "replies", len(w.Wire.Sends()), 1)
	})
}
