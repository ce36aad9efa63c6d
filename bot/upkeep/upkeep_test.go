package upkeep_test

import (
	"context"
	"errors"
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

// P86: one flush for every compaction and before it, over many cycles, with restarts in between; the flushed ranges
// lie end to end.
func TestOneFlushACycle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf, m := bottest.NewShelf(), &bottest.Script{}
		var kinds []string
		keep := func(kind string, r llm.Response) func(context.Context, llm.Request) (llm.Response, error) {
			return func(context.Context, llm.Request) (llm.Response, error) {
				kinds = append(kinds, kind)
				return r, nil
			}
		}
		m.Flush, m.Summary = keep("flush", bottest.SaveCall("a fact")), keep("summary", bottest.Text(bottest.GoodSummary))
		const cycles = 8
		for i := range cycles {
			w := bottest.Start(t, bottest.Setup{Shelf: shelf, Model: m, Name: sessions.ReplicaID(fmt.Sprint("r", i))})
			for n := 0; w.Compactions() <= i && n < 200; n++ {
				w.Post(bottest.Said(fmt.Sprintf("m%d-%d", i, n), "alice", bottest.Prose(n, 100)))
				synctest.Wait()
			}
			bottest.Want(t, "compactions", w.State(bottest.Group).CompactionCount, i+1)
			w.Kill() // without the flush of a clean stop
			w.Stop()
			bottest.After(10 * time.Second)
		}
		bottest.Want(t, "order", strings.Join(kinds, " "), strings.TrimSpace(strings.Repeat("flush summary ", cycles)))
		var at int64
		for _, r := range shelf.Flushes(bottest.Group).Ranges {
			bottest.Want(t, "begin of a flushed range", r[0], at)
			at = r[1]
		}
		if c := bottest.Attempts(t, shelf.Mem.Compactions); len(c) != cycles || c[0].FlushOutcome == "owed" {
			t.Errorf("compaction log: %+v", c)
		}
	})
}

// P88: a failed flush is tried again, then holds no compaction up; what it could not read stays owed, and is flushed
// when the model can, from where it failed.
func TestFailedFlushIsOwed(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(context.Context, llm.Request) (llm.Response, error){
		"error": func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: errors.New("busy")}
		},
		"prose": func(context.Context, llm.Request) (llm.Response, error) {
			return bottest.Text("Noted, thank you."), nil
		},
		"junk": func(context.Context, llm.Request) (llm.Response, error) {
			return bottest.Calls(sessions.ToolCall{ID: "f", Name: "memory_save", Arguments: `{"facts":"no`}), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &bottest.Script{Flush: fail}
				w := bottest.Start(t, bottest.Setup{Model: m})
				w.Talk(1)
				f := w.Store.Flushes(bottest.Group)
				if f.Seq != 0 || f.Owed == 0 {
					t.Errorf("flushed up to %d, owed up to %d", f.Seq, f.Owed)
				}
				if n := w.State(bottest.Group).CompactionCount; n != 1 {
					t.Errorf("%d compactions", n)
				}
				for _, text := range w.Wire.Texts() {
					if !strings.HasPrefix(text, "re: ") {
						t.Errorf("the group got %q", text)
					}
				}
				m.Mu.Lock()
				m.Flush = nil
				m.Mu.Unlock()
				w.Talk(2)
				f = w.Store.Flushes(bottest.Group)
				if len(f.Ranges) == 0 || f.Ranges[0][0] != 0 || f.Owed != 0 {
					t.Errorf("after the recovery: ranges %v, owed %d", f.Ranges, f.Owed)
				}
			})
		})
	}
}

// P55: no answer of a summariser that is not a summary changes anything, and people are answered all the same.
func TestFailedSummaryChangesNothing(t *testing.T) {
	t.Parallel()
	answers := map[string]func(ctx context.Context, r llm.Request) (llm.Response, error){
		"empty": func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text("  \n"), nil },
		"refusal": func(context.Context, llm.Request) (llm.Response, error) {
			return bottest.Text("I'm sorry, I cannot help with that."), nil
		},
		"cut off": func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{Text: bottest.GoodSummary, Finish: llm.FinishLength}, nil
		},
		"error": func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: errors.New("sk-key")}
		},
		"tool call": func(context.Context, llm.Request) (llm.Response, error) { return bottest.SaveCall("x"), nil },
		"thinking": func(context.Context, llm.Request) (llm.Response, error) {
			return bottest.Text("<think>" + bottest.GoodSummary + "</think>"), nil
		},
		"oversize": func(context.Context, llm.Request) (llm.Response, error) {
			return bottest.Text(bottest.Prose(3, 4000)), nil
		},
		"hangs":  bottest.Hang,
		"panics": func(context.Context, llm.Request) (llm.Response, error) { panic("in the summariser") },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &bottest.Script{Summary: answer}
				w := bottest.Start(t, bottest.Setup{Model: m})
				w.Fill(4050)
				bottest.After(5 * time.Minute)
				s := w.State(bottest.Group)
				bottest.Want(t, "cursor and count", []int64{s.CompactedSeq, int64(s.CompactionCount)}, []int64{0, 0})
				for _, e := range w.Store.Mem.Events(t.Context(), bottest.Group) {
					if e.Role == sessions.RoleSummary || e.Archived {
						t.Errorf("event %d is %s, archived %v", e.ID, e.Role, e.Archived)
					}
				}
				for _, c := range bottest.Attempts(t, w.Store.Mem.Compactions) {
					if c.Outcome == "committed" || c.Error == "" || strings.Contains(c.Error, "sk-key") {
						t.Errorf("log row %+v", c)
					}
				}
				if len(w.Model.Requests("summary")) == 0 {
					t.Error("no summary was asked for")
				}
				n := len(w.Wire.Sends())
				w.Say("later", "alice", "and now?")
				bottest.Want(t, "replies after the failure", len(w.Wire.Sends()), n+1)
			})
		})
	}
}

// P29: trouble with the summariser is not asked about again and again.
func TestFailingCompactionRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Summary: func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Denied, Err: errors.New("no")}
		}}})
		w.Fill(4050)
		for i := range 20 {
			w.Say(fmt.Sprint("x", i), "alice", "short")
			bottest.After(2 * time.Second)
		}
		if n := len(bottest.Attempts(t, w.Store.Mem.Compactions)); n != 1 {
			t.Errorf("%d compactions were tried within a minute of the first failure", n)
		}
		bottest.After(5 * time.Minute)
		w.Say("later", "alice", "short")
		bottest.After(10 * time.Second)
		bottest.Want(t, "tried after 1 and 2 minutes, while nothing is said", len(bottest.Attempts(t, w.Store.Mem.Compactions)), 3)
	})
}

// P41: a summariser or a flush that hangs delays no reply.
func TestMaintenanceDelaysNoTurn(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"flush", "summary"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &bottest.Script{}
				if kind == "flush" {
					m.Flush = bottest.Hang
				} else {
					m.Summary = bottest.Hang
				}
				w := bottest.Start(t, bottest.Setup{Model: m})
				w.Fill(4050)
				for i := range 5 {
					began, n := time.Now(), len(w.Wire.Sends())
					w.Say(fmt.Sprint("x", i), "alice", "quick question")
					bottest.Want(t, "replies", len(w.Wire.Sends()), n+1)
					bottest.Want(t, "waited", time.Since(began), 0)
				}
				bottest.After(10 * time.Minute)
			})
		})
	}
}

// P42: a context that would overflow is compacted before the model is asked, but not for longer than the deadline. Then
// the emergency view goes out, and no request is larger than the window, this time and the next ones.
func TestOverflowMeetsItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &bottest.Script{}
		w := bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) {
			c.InlineDeadline = 7 * time.Second
			c.Compaction.Window.Threshold = 1 << 20
		}})
		m.Mu.Lock()
		m.Summary, m.Flush = bottest.Hang, bottest.Hang
		m.Mu.Unlock()
		w.Fill(11800)
		for i := range 4 {
			began, n := time.Now(), len(w.Wire.Sends())
			w.Post(bottest.Said(fmt.Sprint("big", i), "alice", bottest.Prose(i, 700)))
			bottest.After(30 * time.Second)
			bottest.Want(t, "replies", len(w.Wire.Sends()), n+1)
			if last := w.Wire.LastAt().Sub(began); last > 7*time.Second {
				t.Errorf("overflow %d was answered after %s", i, last)
			}
		}
		for i, r := range w.Model.Requests("chat") {
			if n := bottest.RequestTokens(w.Views, r.Messages); n >= bottest.Small.Usable() {
				t.Errorf("request %d of %d tokens is larger than %d", i, n, bottest.Small.Usable())
			}
		}
		if last := w.Model.Requests("chat"); !strings.Contains(last[len(last)-1].Messages[1].Content, "query_history") {
			t.Errorf("the emergency view does not name the missing part: %.300s", last[len(last)-1].Messages[1].Content)
		}
	})
}

// No turn waits for a summariser that has just failed.
func TestOverflowDoesNotWaitAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &bottest.Script{}
		w := bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) { c.InlineDeadline, c.Compaction.Window.Threshold = 7*time.Second, 1<<20 }})
		w.Fill(11600)
		m.Mu.Lock()
		m.Summary = bottest.Hang
		m.Mu.Unlock()
		for i, limit := range []time.Duration{7 * time.Second, 0} {
			began := time.Now()
			w.Post(bottest.Said(fmt.Sprint("big", i), "alice", bottest.Prose(i, 700)))
			bottest.After(20 * time.Second)
			if took := w.Wire.LastAt().Sub(began); took > limit || !strings.HasPrefix(w.Wire.Texts()[len(w.Wire.Sends())-1], "re: ") {
				t.Errorf("overflow %d was answered after %s", i, took)
			}
		}
	})
}

// The same with a provider that reports its counts: what it says of an emergency view is not the size of the context.
func TestOverflowWithReportedUsage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *bottest.World
		m := &bottest.Script{}
		m.Chat = func(_ context.Context, r llm.Request) (llm.Response, error) {
			a := bottest.Text("ok")
			a.Usage = sessions.Usage{Prompt: bottest.RequestTokens(w.Views, r.Messages), Completion: 2}
			return a, nil
		}
		w = bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) { c.Compaction.Enabled = false }})
		for i := range 40 {
			w.Say(fmt.Sprint("m", i), "alice", bottest.Prose(i, 400))
			w.Say(fmt.Sprint("s", i), "alice", "and shortly")
		}
		for i, r := range w.Model.Requests("chat") {
			if n := bottest.RequestTokens(w.Views, r.Messages); n >= bottest.Small.Usable() {
				t.Errorf("request %d of %d tokens is larger than %d", i, n, bottest.Small.Usable())
			}
		}
		if n := w.State(bottest.Group).TotalTokens; n < 15000 {
			t.Errorf("the context is said to hold %d tokens; that is what was sent of it", n)
		}
		bottest.Want(t, "model calls besides chat", len(w.Model.Requests("summary"))+len(w.Model.Requests("flush")), 0)
	})
}

// A provider that finds a request too large gets one smaller one; what a tool did is not done again for that.
func TestOverflowInMidTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int32
		overflowed := false
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) {
				c.Tools = []chat.Tool{bottest.HandTool{Name: "act", F: func(context.Context, chat.ToolInput) (string, error) {
					return fmt.Sprintf("acted %d", ran.Add(1)), nil
				}}}
			},
			Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
				last := r.Messages[len(r.Messages)-1]
				switch {
				case last.Role == "tool" && !overflowed:
					overflowed = true
					return llm.Response{}, &llm.CallError{Class: llm.Overflow, Err: errors.New("too long")}
				case last.Role == "tool":
					return bottest.Text("done: " + last.Content), nil
				}
				return bottest.Calls(sessions.ToolCall{ID: "c1", Name: "act", Arguments: "{}"}), nil
			}},
		})
		w.Post(bottest.Said("m1", "alice", "please act"))
		bottest.After(time.Minute)
		bottest.Want(t, "times the tool ran", ran.Load(), 1)
		bottest.Want(t, "replies", w.Wire.Texts(), []string{"done: acted 1"})
	})
}

// Switched off, nothing is compacted or flushed by itself, however full the context is.
func TestCompactionSwitchedOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Compaction.Enabled = false }})
		w.Fill(9000)
		bottest.After(time.Minute)
		bottest.Want(t, "model calls", len(w.Model.Requests("flush"))+len(w.Model.Requests("summary")), 0)
		bottest.Want(t, "compactions", w.Compactions(), 0)
	})
}
