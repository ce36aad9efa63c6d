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
	"ebb/bot/chat"
	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// P8: while no summary comes, a view shows no more events than its policy says, notes what it leaves out, and the log
// has everything.
func TestContextSizeHoldsWithoutSummaries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Compaction = bottest.SmallOf("sliding_window") }, Model: &bottest.Script{
			Summary: func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text(""), nil },
		}})
		const turns, most = 50, 75
		for i := range turns {
			w.Post(bottest.Said(fmt.Sprint("m", i), "alice", fmt.Sprintf("message %d", i)))
			bottest.After(time.Minute)
		}
		for i, r := range w.Model.Requests("chat") {
			_, shown := asks(r.Messages)
			if shown > most {
				t.Errorf("request %d shows %d events", i, shown)
			}
			if gap := strings.Contains(r.Messages[1].Content, "<<<left-out"); gap != (2*i > most) {
				t.Errorf("request %d of %d raw events says that some are left out: %v", i, 2*i, gap)
			}
		}
		bottest.Want(t, "events of the log", len(w.Store.EventsOf(t.Context(), bottest.Group)), 2*turns)
		bottest.Want(t, "cursor", w.State(bottest.Group).CompactedSeq, 0)
	})
}

// P28: a summary that gains too little is not committed: nothing is written but the row that says so.
func TestNoGainChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lengthy := bottest.GoodSummary // some 200 tokens, as many as short turns have
		for i := range 30 {
			lengthy += fmt.Sprintf(" %x", (i+7)*2654435761)
		}
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) {
				c.Admins, c.Compaction = []sessions.UserID{"u-root"}, bottest.SmallOf("archive")
			},
			Model: &bottest.Script{Summary: func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text(lengthy), nil }},
		})
		for i := range 13 {
			w.Say(fmt.Sprint("m", i), "alice", bottest.Prose(i, 4))
		}
		before := w.State(bottest.Group)
		w.Post(bottest.Said("c", "root", "/压缩"))
		bottest.After(time.Minute)
		now := w.State(bottest.Group)
		bottest.Want(t, "cursor, count, tokens", []any{now.CompactedSeq, now.CompactionCount, now.TotalTokens}, []any{before.CompactedSeq, 0, before.TotalTokens})
		bottest.Want(t, "summaries", len(w.Store.Mem.Summaries(t.Context(), bottest.Group)), 0)
		rows := bottest.Attempts(t, w.Store.Mem.Compactions)
		if len(rows) != 1 || rows[0].Outcome != sessions.CompactionRejected {
			t.Fatalf("log %+v", rows)
		}
		if last := w.Wire.Texts()[len(w.Wire.Sends())-1]; !strings.HasPrefix(last, "无需压缩") {
			t.Errorf("the admin's answer is %q", last)
		}
	})
}

// A compaction that would gain nothing is no failure and costs nothing: the context is looked at before any model is asked.
func TestCompactWithNothingToGainAsksNoModel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy       string
		turns, words int
		last         int // words of the last message
		compacted    bool
	}{
		"nothing old":           {"token_budget", 1, 40, 0, false},
		"little old":            {"token_budget", 6, 40, 1400, false},
		"short turns by count":  {"turns", 12, 2, 0, false},
		"short turns, archived": {"archive", 7, 2, 0, false},
		"just compacted":        {"token_budget", 30, 60, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{Config: func(in *bot.Config) {
					in.Admins, in.Compaction = []sessions.UserID{"u-root"}, bottest.SmallOf(c.policy)
				}})
				for i := range c.turns {
					w.Say(fmt.Sprint("m", i), "alice", bottest.Prose(i, c.words))
				}
				if c.last > 0 {
					w.Say("last", "alice", bottest.Prose(1, c.last))
				}
				if c.compacted {
					w.Post(bottest.Said("c0", "root", "/压缩"))
					bottest.After(time.Minute)
					w.Say("more", "alice", bottest.Prose(1, 5))
				}
				asked := func() int { return len(w.Model.Requests("summary")) + len(w.Model.Requests("flush")) }
				before, rows := asked(), len(bottest.Attempts(t, w.Store.Mem.Compactions))
				w.Post(bottest.Said("c", "root", "/压缩"))
				bottest.After(time.Minute)
				bottest.Want(t, "requests for a summary and its flush", asked()-before, 0)
				if all := bottest.Attempts(t, w.Store.Mem.Compactions); len(all) != rows+1 || all[rows].Outcome != sessions.CompactionNothing {
					t.Errorf("log %+v", all)
				}
				if last := w.Wire.Texts()[len(w.Wire.Sends())-1]; !strings.HasPrefix(last, "无需压缩") {
					t.Errorf("the admin's answer is %q", last)
				}
			})
		})
	}
}

// P32: a message may be larger than the recent part, the target, the space of a request, or the window. It is answered
// by a request that fits, and the log has it whole.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]int{"recent": 1800, "target": 3500, "usable": 13000, "window": 20000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{})
				body := bottest.Prose(2, words)
				for i := range 3 {
					w.Say(fmt.Sprint("m", i), "alice", bottest.Prose(i, 60))
				}
				w.Say("large", "alice", body)
				bottest.After(time.Minute)
				w.Say("next", "bob", "and now?")
				bottest.After(time.Minute)
				bottest.Want(t, "replies", len(w.Wire.Sends()), 5)
				for _, texts := range w.Wire.Texts() {
					if !strings.HasPrefix(texts, "re: ") {
						t.Errorf("the answer is %q", texts)
					}
				}
				if !bottest.Logged(w, body) {
					t.Error("the log does not have it whole")
				}
				for _, kind := range []string{"chat", "summary", "flush"} {
					for i, r := range w.Model.Requests(kind) {
						n := r.MaxOutput
						for _, m := range r.Messages {
							n += bottest.Counter.Count(m.Content) + tokens.MessageOverhead
						}
						if n > bottest.Small.Context || kind == "chat" && n >= bottest.Small.Usable() {
							t.Errorf("%s request %d: %d tokens", kind, i, n)
						}
					}
				}
			})
		})
	}
}

// P37: a provider that reports nothing, or nonsense, does not make a context seem smaller than it is.
func TestOddUsageLowersNoEstimate(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]sessions.Usage{
		"none": {}, "negative": {Prompt: -5000, Completion: -3}, "completion only": {Completion: 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(context.Context, llm.Request) (llm.Response, error) {
					a := bottest.Text("ok")
					a.Usage = u
					return a, nil
				}}, Config: func(c *bot.Config) { c.Compaction.Enabled = false }})
				last := 0
				for i := range 12 {
					w.Say(fmt.Sprint("m", i), "alice", bottest.Prose(i, 120))
					s := w.State(bottest.Group)
					if s.TotalTokens < last+120 || s.CalibrationFactor != 1 {
						t.Fatalf("turn %d: %d tokens after %d, factor %v", i, s.TotalTokens, last, s.CalibrationFactor)
					}
					last = s.TotalTokens
				}
			})
		})
	}
}

// P38: after a switch to a model with a smaller window the first request fits already, and no call fails.
func TestSwitchToASmallerWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		big := bottest.Start(t, bottest.Setup{Name: "a", Config: func(c *bot.Config) {
			c.Compaction.Window = compaction.Window{Context: 64000, Reserve: 4000, Threshold: 50000, Share: 0.5, FlushRatio: 0.9, Summary: 400}
		}})
		big.Fill(20000)
		big.Stop()
		w := bottest.Start(t, bottest.Setup{Name: "b", Shelf: big.Store.Shelf})
		w.Post(bottest.Said("first", "alice", "hello again"))
		bottest.After(time.Minute)
		asked := w.Model.Requests("chat")
		bottest.Want(t, "requests", len(asked), 1)
		if n := bottest.RequestTokens(w.Views, asked[0].Messages); n >= bottest.Small.Usable() {
			t.Errorf("the first request has %d tokens", n)
		}
		bottest.Want(t, "replies", w.Wire.Texts(), []string{"re: alice(u-alice): hello again"})
		bottest.Want(t, "compactions", w.Compactions() > 0, true)
		for _, e := range bottest.Attempts(t, w.Store.Mem.Compactions) {
			bottest.Want(t, "outcome", e.Outcome, sessions.CompactionCommitted)
		}
	})
}

// P51: a saved memory or changed instructions to the model do not spoil a running compaction. It commits, no request is
// repeated, and no summarized event becomes raw.
func TestMemoryAndPromptSpoilNoCompaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		var held sync.Once
		a := bottest.Start(t, bottest.Setup{Name: "a", Model: &bottest.Script{Summary: func(ctx context.Context, _ llm.Request) (r llm.Response, err error) {
			held.Do(func() { err = g.Pass(ctx) })
			return bottest.Text(bottest.GoodSummary), err
		}}})
		a.Fill(3500)
		a.Post(bottest.Said("trigger", "alice", bottest.Prose(1, 600)))
		<-g.In
		a.Store.Shelf.Mu.Lock()
		a.Store.Put(bottest.Group, []memory.Draft{{Scope: memory.ScopeGroup, ScopeID: memory.GroupID("robot", "c1"), Content: "saved meanwhile"}})
		a.Store.Shelf.Mu.Unlock()
		a.Store.Fail(func(op string) error { // dies once the draft is staged
			if op == "compact" {
				return bottest.ErrAway
			}
			return nil
		})
		g.Out <- struct{}{}
		synctest.Wait()
		bottest.Want(t, "compactions of the first", a.Compactions(), 0)
		a.Kill()
		a.Stop()
		bottest.After(10 * time.Second)
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Config: func(c *bot.Config) {
			c.Prompt, c.Tools = "Be brief.", append(c.Tools, bottest.HandTool{Name: "third", Reads: true})
		}})
		b.Say("later", "bob", "hello")
		bottest.After(5 * time.Minute)
		b.Say("later still", "bob", "hello")
		bottest.After(time.Minute)
		bottest.Want(t, "compactions", b.Compactions(), 1)
		bottest.Want(t, "summaries asked for again", len(b.Model.Requests("summary")), 0)
		v := b.State(bottest.Group)
		if v.CompactedSeq == 0 {
			t.Error("a summarized event is raw again")
		}
		if !strings.Contains(v.Pinned, "saved meanwhile") {
			t.Errorf("the view shows of memory: %q", v.Pinned)
		}
	})
}

// P87: a flush changes nothing that people or the model see: not the log, not the view, not the count, not the chat.
func TestFlushIsInvisible(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Flush: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			return bottest.SaveCall("Alice decides"), g.Pass(ctx)
		}}})
		for i := 0; w.Tokens() < bottest.Small.FlushAt(); i++ {
			w.Post(bottest.Said(fmt.Sprint("m", i), "alice", bottest.Prose(i, 100)))
			synctest.Wait()
		}
		<-g.In
		look := func() []any {
			v := w.View()
			return []any{
				v.Session.TotalTokens, v.Session.LastSeq, v.Session.CompactedSeq, len(w.Store.Mem.Events(t.Context(), bottest.Group)),
				len(w.Wire.Sends()), bottest.Transcript(w.Views.Frames.Common.Assemble(v, bottest.SmallSettings.Policy, "", nil)),
			}
		}
		before := look()
		g.Out <- struct{}{}
		bottest.After(time.Second)
		bottest.Want(t, "flushes", len(w.Store.Flushes(bottest.Group).Ranges), 1)
		bottest.Want(t, "all that is seen", look(), before)
	})
}

// P89: a flush whose answer was lost, and one that finds what an earlier one found, leave each fact once.
func TestFlushedTwiceKeptOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Flush: func(context.Context, llm.Request) (llm.Response, error) {
			return bottest.SaveCall("Alice owns the release.", "The release is on Friday."), nil
		}}})
		w.Store.Lose(bottest.Times(1, "flush", bottest.ErrAway))
		w.Talk(3)
		w.Stop()
		seen := map[string]int{}
		for _, m := range w.Store.Memories {
			seen[m.Content]++
		}
		bottest.Want(t, "facts", seen, map[string]int{"Alice owns the release.": 1, "The release is on Friday (2000-01-07).": 1})
		if n := len(w.Model.Requests("flush")); n < 3 {
			t.Errorf("%d flushes were asked for", n)
		}
	})
}

// P91: no word of a flush or a summary reaches the group, nor NO_REPLY in any form. A person who asks about NO_REPLY,
// or gets it as the answer, is always answered, since no turn of ours is silent.
func TestNoReplyIsNothingSpecial(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"NO_REPLY", "no_reply", " NO_REPLY\n", "NO_REPLY: nothing to save", "NO_"} {
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var streamed strings.Builder
				aloud := func(_ context.Context, r llm.Request) (llm.Response, error) {
					if r.Delta != nil {
						r.Delta(words, false)
					}
					return bottest.Text(words), nil
				}
				w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Flush: aloud, Summary: aloud}, Config: func(c *bot.Config) {
					c.Display = bottest.Listener(func(s string) { mu.Lock(); defer mu.Unlock(); streamed.WriteString(s) })
				}})
				w.Fill(4050)
				bottest.After(10 * time.Minute)
				if len(w.Model.Requests("flush")) == 0 || len(w.Model.Requests("summary")) == 0 {
					t.Fatal("nothing was flushed or summarized")
				}
				for _, texts := range w.Wire.Texts() {
					if !strings.HasPrefix(texts, "re: ") {
						t.Errorf("the group got %q", texts)
					}
				}
				if strings.Contains(strings.ToUpper(streamed.String()), "NO_") {
					t.Errorf("streamed %q", streamed.String())
				}
				n := len(w.Wire.Sends())
				w.Say("q", "alice", words+" 是什么意思?")
				bottest.Want(t, "answers", len(w.Wire.Sends()), n+1)
				if got := w.Wire.Texts()[n]; !strings.Contains(got, "是什么意思") {
					t.Errorf("answered %q", got)
				}
				w.Model.Mu.Lock()
				w.Model.Chat = aloud
				w.Model.Mu.Unlock()
				w.Say("q2", "alice", "say it")
				bottest.Want(t, "answers", len(w.Wire.Sends()), n+2)
			})
		})
	}
}

// P23: a provider that counts two and a half times our tokens without saying so costs one more request when a tool's
// result overflows its count. The answer is never lost.
func TestOverflowByToolResults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *bottest.World
		overflows := 0
		w = bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) {
				c.Tools = []chat.Tool{bottest.HandTool{Name: "look", Reads: true, F: func(_ context.Context, in chat.ToolInput) (string, error) {
					return in.Arguments + bottest.Prose(3, 1500), nil
				}}}
			},
			Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
				if 5*bottest.RequestTokens(w.Views, r.Messages)/2 > bottest.Small.Context {
					overflows++
					return llm.Response{}, &llm.CallError{Class: llm.Overflow, Err: errors.New("too long")}
				}
				results := strings.Count(bottest.Transcript(r.Messages), "== tool")
				if results < 6 && strings.Contains(bottest.Transcript(r.Messages), "look it up") && !strings.Contains(bottest.LastWords(r), bottest.NoMoreCalls) {
					return bottest.Calls(bottest.Call("c1", "look", fmt.Sprintf(`{"n":%d}`, results)), bottest.Call("c2", "look", fmt.Sprintf(`{"n":%d}`, results+1))), nil
				}
				return bottest.Text("answered"), nil
			}},
		})
		w.Fill(1500)
		w.Post(bottest.Said("q", "alice", "look it up"))
		bottest.After(time.Minute)
		texts := w.Wire.Texts()
		bottest.Want(t, "the answer", texts[len(texts)-1], "answered")
		bottest.Want(t, "requests that were too large", overflows, 1)
	})
}

// A refusal of a large request without a known reason is tried once on half the view: no list has all wordings of an
// overflow. A small request is refused for another reason, which people can't change.
func TestUnexplainedRefusalOfALargeRequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fill, limit, requests int
		answer                string
	}{
		"large, and heard by half": {8000, 6500, 2, "answered"},
		"large, and refused again": {8000, 0, 3, wording.Say(wording.Malformed, "en")}, // the third has the question alone
		"small":                    {300, 0, 3, wording.Say(wording.Denied, "en")},     // a greeting is refused too
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var w *bottest.World
				asked, refusing := 0, false
				w = bottest.Start(t, bottest.Setup{
					Config: func(c *bot.Config) { c.Compaction.Window.Threshold = 11000 },
					Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
						if !refusing {
							return bottest.Text("noted"), nil
						}
						if asked++; bottest.RequestTokens(w.Views, r.Messages) > tt.limit {
							return llm.Response{}, &llm.CallError{Class: llm.Malformed, Status: 400, Err: errors.New("E4001")}
						}
						return bottest.Text("answered"), nil
					}},
				})
				w.Fill(tt.fill)
				refusing = true
				w.Post(bottest.Said("q", "alice", "anything new?"))
				bottest.After(time.Minute)
				texts := w.Wire.Texts()
				bottest.Want(t, "the answer", texts[len(texts)-1], tt.answer)
				bottest.Want(t, "requests", asked, tt.requests)
			})
		})
	}
}
