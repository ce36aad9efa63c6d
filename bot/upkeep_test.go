package bot

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// P86: one flush for every compaction and before it, over many cycles, with restarts in between; the flushed ranges
// lie end to end.
func TestOneFlushACycle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shelf, m := newShelf(), &script{}
		var kinds []string
		keep := func(kind string, r llm.Response) func(context.Context, llm.Request) (llm.Response, error) {
			return func(context.Context, llm.Request) (llm.Response, error) {
				kinds = append(kinds, kind)
				return r, nil
			}
		}
		m.flush, m.summary = keep("flush", saveCall("a fact")), keep("summary", text(goodSummary))
		const cycles = 8
		for i := range cycles {
			w := start(t, setup{shelf: shelf, model: m, name: sessions.ReplicaID(fmt.Sprint("r", i))})
			for n := 0; w.compactions() <= i && n < 200; n++ {
				w.post(said(fmt.Sprintf("m%d-%d", i, n), "alice", prose(n, 100)))
				synctest.Wait()
			}
			want(t, "compactions", w.state(group).CompactionCount, i+1)
			w.kill() // without the flush of a clean stop
			w.stop()
			after(10 * time.Second)
		}
		want(t, "order", strings.Join(kinds, " "), strings.TrimSpace(strings.Repeat("flush summary ", cycles)))
		var at int64
		for _, r := range shelf.flushes(group).ranges {
			want(t, "begin of a flushed range", r[0], at)
			at = r[1]
		}
		if c := attempts(t, shelf.mem); len(c) != cycles || c[0].FlushOutcome == "owed" {
			t.Errorf("compaction log: %+v", c)
		}
	})
}

// compactions is the number of compactions of a session that may not exist yet.
func (w *world) compactions() int {
	s, err := w.store.mem.Session(w.t.Context(), group)
	if err != nil {
		return 0
	}
	return s.CompactionCount
}

// talk posts short turns until the conversation was compacted n times.
func (w *world) talk(n int) {
	w.t.Helper()
	for i := 0; w.compactions() < n; i++ {
		if i > 300 {
			w.t.Fatalf("%d compactions after %d turns, want %d", w.compactions(), i, n)
		}
		w.post(said(fmt.Sprintf("t%d-%d", n, i), "alice", prose(i, 100)))
		synctest.Wait()
	}
}

// P88: a failed flush is tried again, then holds no compaction up; what it could not read stays owed, and is flushed
// when the model can, from where it failed.
func TestFailedFlushIsOwed(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(context.Context, llm.Request) (llm.Response, error){
		"error": func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: errors.New("busy")}
		},
		"prose": func(context.Context, llm.Request) (llm.Response, error) { return text("Noted, thank you."), nil },
		"junk": func(context.Context, llm.Request) (llm.Response, error) {
			return calls(sessions.ToolCall{ID: "f", Name: "memory_save", Arguments: `{"facts":"no`}), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &script{flush: fail}
				w := start(t, setup{model: m})
				w.talk(1)
				f := w.store.flushes(group)
				if f.seq != 0 || f.owed == 0 {
					t.Errorf("flushed up to %d, owed up to %d", f.seq, f.owed)
				}
				if n := w.state(group).CompactionCount; n != 1 {
					t.Errorf("%d compactions", n)
				}
				for _, text := range w.wire.texts() {
					if !strings.HasPrefix(text, "re: ") {
						t.Errorf("the group got %q", text)
					}
				}
				m.mu.Lock()
				m.flush = nil
				m.mu.Unlock()
				w.talk(2)
				f = w.store.flushes(group)
				if len(f.ranges) == 0 || f.ranges[0][0] != 0 || f.owed != 0 {
					t.Errorf("after the recovery: ranges %v, owed %d", f.ranges, f.owed)
				}
			})
		})
	}
}

// P55: no answer of a summariser that is not a summary changes anything, and people are answered all the same.
func TestFailedSummaryChangesNothing(t *testing.T) {
	t.Parallel()
	answers := map[string]func(ctx context.Context, r llm.Request) (llm.Response, error){
		"empty": func(context.Context, llm.Request) (llm.Response, error) { return text("  \n"), nil },
		"refusal": func(context.Context, llm.Request) (llm.Response, error) {
			return text("I'm sorry, I cannot help with that."), nil
		},
		"cut off": func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{Text: goodSummary, Finish: llm.FinishLength}, nil
		},
		"error": func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Busy, Err: errors.New("sk-key")}
		},
		"tool call": func(context.Context, llm.Request) (llm.Response, error) { return saveCall("x"), nil },
		"thinking": func(context.Context, llm.Request) (llm.Response, error) {
			return text("<think>" + goodSummary + "</think>"), nil
		},
		"oversize": func(context.Context, llm.Request) (llm.Response, error) { return text(prose(3, 4000)), nil },
		"hangs":    hang,
		"panics":   func(context.Context, llm.Request) (llm.Response, error) { panic("in the summariser") },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &script{summary: answer}
				w := start(t, setup{model: m})
				w.fill(4050)
				after(5 * time.Minute)
				s := w.state(group)
				want(t, "cursor and count", []int64{s.CompactedSeq, int64(s.CompactionCount)}, []int64{0, 0})
				for _, e := range w.store.mem.Events(t.Context(), group) {
					if e.Role == sessions.RoleSummary || e.Archived {
						t.Errorf("event %d is %s, archived %v", e.ID, e.Role, e.Archived)
					}
				}
				for _, c := range attempts(t, w.store.mem) {
					if c.Outcome == "committed" || c.Error == "" || strings.Contains(c.Error, "sk-key") {
						t.Errorf("log row %+v", c)
					}
				}
				if len(w.model.requests("summary")) == 0 {
					t.Error("no summary was asked for")
				}
				n := len(w.wire.sends())
				w.say("later", "alice", "and now?")
				want(t, "replies after the failure", len(w.wire.sends()), n+1)
			})
		})
	}
}

// P29: trouble with the summariser is not asked about again and again.
func TestFailingCompactionRests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{model: &script{summary: func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Denied, Err: errors.New("no")}
		}}})
		w.fill(4050)
		for i := range 20 {
			w.say(fmt.Sprint("x", i), "alice", "short")
			after(2 * time.Second)
		}
		if n := len(attempts(t, w.store.mem)); n != 1 {
			t.Errorf("%d compactions were tried within a minute of the first failure", n)
		}
		after(5 * time.Minute)
		w.say("later", "alice", "short")
		after(10 * time.Second)
		want(t, "tried after 1 and 2 minutes, while nothing is said", len(attempts(t, w.store.mem)), 3)
	})
}

// P41: a summariser or a flush that hangs delays no reply.
func TestMaintenanceDelaysNoTurn(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"flush", "summary"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &script{}
				if kind == "flush" {
					m.flush = hang
				} else {
					m.summary = hang
				}
				w := start(t, setup{model: m})
				w.fill(4050)
				for i := range 5 {
					began, n := time.Now(), len(w.wire.sends())
					w.say(fmt.Sprint("x", i), "alice", "quick question")
					want(t, "replies", len(w.wire.sends()), n+1)
					want(t, "waited", time.Since(began), 0)
				}
				after(10 * time.Minute)
			})
		})
	}
}

// P42: a context that would overflow is compacted before the model is asked, but not for longer than the deadline. Then
// the emergency view goes out, and no request is larger than the window, this time and the next ones.
func TestOverflowMeetsItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{}
		w := start(t, setup{model: m, config: func(c *Config) {
			c.InlineDeadline = 7 * time.Second
			c.Compaction.Window.Threshold = 1 << 20
		}})
		m.mu.Lock()
		m.summary, m.flush = hang, hang
		m.mu.Unlock()
		w.fill(11800)
		for i := range 4 {
			began, n := time.Now(), len(w.wire.sends())
			w.post(said(fmt.Sprint("big", i), "alice", prose(i, 700)))
			after(30 * time.Second)
			want(t, "replies", len(w.wire.sends()), n+1)
			if last := w.wire.lastAt().Sub(began); last > 7*time.Second {
				t.Errorf("overflow %d was answered after %s", i, last)
			}
		}
		for i, r := range w.model.requests("chat") {
			if n := requestTokens(w.bot, r.Messages); n >= small.Usable() {
				t.Errorf("request %d of %d tokens is larger than %d", i, n, small.Usable())
			}
		}
		if last := w.model.requests("chat"); !strings.Contains(last[len(last)-1].Messages[1].Content, "query_history") {
			t.Errorf("the emergency view does not name the missing part: %.300s", last[len(last)-1].Messages[1].Content)
		}
	})
}

// No turn waits for a summariser that has just failed.
func TestOverflowDoesNotWaitAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{}
		w := start(t, setup{model: m, config: func(c *Config) { c.InlineDeadline, c.Compaction.Window.Threshold = 7*time.Second, 1<<20 }})
		w.fill(11600)
		m.mu.Lock()
		m.summary = hang
		m.mu.Unlock()
		for i, limit := range []time.Duration{7 * time.Second, 0} {
			began := time.Now()
			w.post(said(fmt.Sprint("big", i), "alice", prose(i, 700)))
			after(20 * time.Second)
			if took := w.wire.lastAt().Sub(began); took > limit || !strings.HasPrefix(w.wire.texts()[len(w.wire.sends())-1], "re: ") {
				t.Errorf("overflow %d was answered after %s", i, took)
			}
		}
	})
}

// The same with a provider that reports its counts: what it says of an emergency view is not the size of the context.
func TestOverflowWithReportedUsage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		m := &script{}
		m.chat = func(_ context.Context, r llm.Request) (llm.Response, error) {
			a := text("ok")
			a.Usage = sessions.Usage{Prompt: requestTokens(w.bot, r.Messages), Completion: 2}
			return a, nil
		}
		w = start(t, setup{model: m, config: func(c *Config) { c.Compaction.Enabled = false }})
		for i := range 40 {
			w.say(fmt.Sprint("m", i), "alice", prose(i, 400))
			w.say(fmt.Sprint("s", i), "alice", "and shortly")
		}
		for i, r := range w.model.requests("chat") {
			if n := requestTokens(w.bot, r.Messages); n >= small.Usable() {
				t.Errorf("request %d of %d tokens is larger than %d", i, n, small.Usable())
			}
		}
		if n := w.state(group).TotalTokens; n < 15000 {
			t.Errorf("the context is said to hold %d tokens; that is what was sent of it", n)
		}
		want(t, "model calls besides chat", len(w.model.requests("summary"))+len(w.model.requests("flush")), 0)
	})
}

// A provider that finds a request too large gets one smaller one; what a tool did is not done again for that.
func TestOverflowInMidTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var ran atomic.Int32
		overflowed := false
		w := start(t, setup{
			config: func(c *Config) {
				c.Tools = []chat.Tool{handTool{name: "act", f: func(context.Context, chat.ToolInput) (string, error) {
					return fmt.Sprintf("acted %d", ran.Add(1)), nil
				}}}
			},
			model: &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
				last := r.Messages[len(r.Messages)-1]
				switch {
				case last.Role == "tool" && !overflowed:
					overflowed = true
					return llm.Response{}, &llm.CallError{Class: llm.Overflow, Err: errors.New("too long")}
				case last.Role == "tool":
					return text("done: " + last.Content), nil
				}
				return calls(sessions.ToolCall{ID: "c1", Name: "act", Arguments: "{}"}), nil
			}},
		})
		w.post(said("m1", "alice", "please act"))
		after(time.Minute)
		want(t, "times the tool ran", ran.Load(), 1)
		want(t, "replies", w.wire.texts(), []string{"done: acted 1"})
	})
}

// Switched off, nothing is compacted or flushed by itself, however full the context is.
func TestCompactionSwitchedOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: func(c *Config) { c.Compaction.Enabled = false }})
		w.fill(9000)
		after(time.Minute)
		want(t, "model calls", len(w.model.requests("flush"))+len(w.model.requests("summary")), 0)
		want(t, "compactions", w.compactions(), 0)
	})
}

// requestTokens counts a request from its messages alone, as a provider would.
func requestTokens(b *Bot, msgs []llm.Message) int {
	n := b.views.Frame.Tokens
	for _, m := range msgs[1:] { // the first is the system prompt
		n += counter.Count(m.Content) + tokens.MessageOverhead
		for _, c := range m.ToolCalls {
			n += counter.Count(c.Arguments) + tokens.MessageOverhead
		}
	}
	return n
}
