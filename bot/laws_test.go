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

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/upkeep"
	"ebb/bot/wording"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
)

// smallOf returns the settings of a policy in the small window.
func smallOf(policy string) compaction.Settings {
	return compaction.Settings{Enabled: true, Window: small, Policy: compaction.Policies[policy]}
}

// P8: while no summary comes, a view shows no more events than its policy says, notes what it leaves out, and the log
// has everything.
func TestContextSizeHoldsWithoutSummaries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{config: func(c *Config) { c.Compaction = smallOf("sliding_window") }, model: &script{
			summary: func(context.Context, llm.Request) (llm.Response, error) { return text(""), nil },
		}})
		const turns, most = 50, 75
		for i := range turns {
			w.post(said(fmt.Sprint("m", i), "alice", fmt.Sprintf("message %d", i)))
			after(time.Minute)
		}
		for i, r := range w.model.requests("chat") {
			_, shown := asks(r.Messages)
			if shown > most {
				t.Errorf("request %d shows %d events", i, shown)
			}
			if gap := strings.Contains(r.Messages[1].Content, "<<<left-out"); gap != (2*i > most) {
				t.Errorf("request %d of %d raw events says that some are left out: %v", i, 2*i, gap)
			}
		}
		want(t, "events of the log", len(w.store.log(t.Context(), group)), 2*turns)
		want(t, "cursor", w.state(group).CompactedSeq, 0)
	})
}

// P28: a summary that gains too little is not committed: nothing is written but the row that says so.
func TestNoGainChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lengthy := goodSummary // some 200 tokens, as many as short turns have
		for i := range 30 {
			lengthy += fmt.Sprintf(" %x", (i+7)*2654435761)
		}
		w := start(t, setup{
			config: func(c *Config) {
				c.Admins, c.Compaction = []sessions.UserID{"u-root"}, smallOf("archive")
			},
			model: &script{summary: func(context.Context, llm.Request) (llm.Response, error) { return text(lengthy), nil }},
		})
		for i := range 13 {
			w.say(fmt.Sprint("m", i), "alice", prose(i, 4))
		}
		before := w.state(group)
		w.post(said("c", "root", "/压缩"))
		after(time.Minute)
		now := w.state(group)
		want(t, "cursor, count, tokens", []any{now.CompactedSeq, now.CompactionCount, now.TotalTokens}, []any{before.CompactedSeq, 0, before.TotalTokens})
		want(t, "summaries", len(w.store.mem.Summaries(t.Context(), group)), 0)
		rows := attempts(t, w.store.mem)
		if len(rows) != 1 || rows[0].Outcome != upkeep.OutcomeRejected {
			t.Fatalf("log %+v", rows)
		}
		if last := w.wire.texts()[len(w.wire.sends())-1]; !strings.HasPrefix(last, "无需压缩") {
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
				w := start(t, setup{config: func(in *Config) {
					in.Admins, in.Compaction = []sessions.UserID{"u-root"}, smallOf(c.policy)
				}})
				for i := range c.turns {
					w.say(fmt.Sprint("m", i), "alice", prose(i, c.words))
				}
				if c.last > 0 {
					w.say("last", "alice", prose(1, c.last))
				}
				if c.compacted {
					w.post(said("c0", "root", "/压缩"))
					after(time.Minute)
					w.say("more", "alice", prose(1, 5))
				}
				asked := func() int { return len(w.model.requests("summary")) + len(w.model.requests("flush")) }
				before, rows := asked(), len(attempts(t, w.store.mem))
				w.post(said("c", "root", "/压缩"))
				after(time.Minute)
				want(t, "requests for a summary and its flush", asked()-before, 0)
				if all := attempts(t, w.store.mem); len(all) != rows+1 || all[rows].Outcome != upkeep.OutcomeNothing {
					t.Errorf("log %+v", all)
				}
				if last := w.wire.texts()[len(w.wire.sends())-1]; !strings.HasPrefix(last, "无需压缩") {
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
				w := start(t, setup{})
				body := prose(2, words)
				for i := range 3 {
					w.say(fmt.Sprint("m", i), "alice", prose(i, 60))
				}
				w.say("large", "alice", body)
				after(time.Minute)
				w.say("next", "bob", "and now?")
				after(time.Minute)
				want(t, "replies", len(w.wire.sends()), 5)
				for _, texts := range w.wire.texts() {
					if !strings.HasPrefix(texts, "re: ") {
						t.Errorf("the answer is %q", texts)
					}
				}
				if !logged(w, body) {
					t.Error("the log does not have it whole")
				}
				for _, kind := range []string{"chat", "summary", "flush"} {
					for i, r := range w.model.requests(kind) {
						n := r.MaxOutput
						for _, m := range r.Messages {
							n += counter.Count(m.Content) + tokens.MessageOverhead
						}
						if n > small.Context || kind == "chat" && n >= small.Usable() {
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
				w := start(t, setup{model: &script{chat: func(context.Context, llm.Request) (llm.Response, error) {
					a := text("ok")
					a.Usage = u
					return a, nil
				}}, config: func(c *Config) { c.Compaction.Enabled = false }})
				last := 0
				for i := range 12 {
					w.say(fmt.Sprint("m", i), "alice", prose(i, 120))
					s := w.state(group)
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
		big := start(t, setup{name: "a", config: func(c *Config) {
			c.Compaction.Window = compaction.Window{Context: 64000, Reserve: 4000, Threshold: 50000, Share: 0.5, FlushRatio: 0.9, Summary: 400}
		}})
		big.fill(20000)
		big.stop()
		w := start(t, setup{name: "b", shelf: big.store.shelf})
		w.post(said("first", "alice", "hello again"))
		after(time.Minute)
		asked := w.model.requests("chat")
		want(t, "requests", len(asked), 1)
		if n := requestTokens(w.bot, asked[0].Messages); n >= small.Usable() {
			t.Errorf("the first request has %d tokens", n)
		}
		want(t, "replies", w.wire.texts(), []string{"re: alice(u-alice): hello again"})
		want(t, "compactions", w.compactions() > 0, true)
		for _, e := range attempts(t, w.store.mem) {
			want(t, "outcome", e.Outcome, upkeep.OutcomeCommitted)
		}
	})
}

// P51: a saved memory or changed instructions to the model do not spoil a running compaction. It commits, no request is
// repeated, and no summarized event becomes raw.
func TestMemoryAndPromptSpoilNoCompaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var held sync.Once
		a := start(t, setup{name: "a", model: &script{summary: func(ctx context.Context, _ llm.Request) (r llm.Response, err error) {
			held.Do(func() { err = g.pass(ctx) })
			return text(goodSummary), err
		}}})
		a.fill(3500)
		a.post(said("trigger", "alice", prose(1, 600)))
		<-g.in
		a.store.shelf.mu.Lock()
		a.store.put(group, []memory.Draft{{Scope: memory.ScopeGroup, ScopeID: memory.GroupID("robot", "c1"), Content: "saved meanwhile"}})
		a.store.shelf.mu.Unlock()
		a.store.fail(func(op string) error { // dies once the draft is staged
			if op == "compact" {
				return errAway
			}
			return nil
		})
		g.out <- struct{}{}
		synctest.Wait()
		want(t, "compactions of the first", a.compactions(), 0)
		a.kill()
		a.stop()
		after(10 * time.Second)
		b := start(t, setup{name: "b", shelf: a.store.shelf, config: func(c *Config) {
			c.Prompt, c.Tools = "Be brief.", append(c.Tools, handTool{name: "third", reads: true})
		}})
		b.say("later", "bob", "hello")
		after(5 * time.Minute)
		b.say("later still", "bob", "hello")
		after(time.Minute)
		want(t, "compactions", b.compactions(), 1)
		want(t, "summaries asked for again", len(b.model.requests("summary")), 0)
		v := b.state(group)
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
		g := newGate()
		w := start(t, setup{model: &script{flush: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			return saveCall("Alice decides"), g.pass(ctx)
		}}})
		for i := 0; w.tokens() < small.FlushAt(); i++ {
			w.post(said(fmt.Sprint("m", i), "alice", prose(i, 100)))
			synctest.Wait()
		}
		<-g.in
		look := func() []any {
			v := w.view()
			return []any{
				v.Session.TotalTokens, v.Session.LastSeq, v.Session.CompactedSeq, len(w.store.mem.Events(t.Context(), group)),
				len(w.wire.sends()), written(w.bot.views.Frame.Assemble(v, smallSettings.Policy, "", nil)),
			}
		}
		before := look()
		g.out <- struct{}{}
		after(time.Second)
		want(t, "flushes", len(w.store.flushes(group).ranges), 1)
		want(t, "all that is seen", look(), before)
	})
}

// P89: a flush whose answer was lost, and one that finds what an earlier one found, leave each fact once.
func TestFlushedTwiceKeptOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{model: &script{flush: func(context.Context, llm.Request) (llm.Response, error) {
			return saveCall("Alice owns the release.", "The release is on Friday."), nil
		}}})
		w.store.lose(times(1, "flush", errAway))
		w.talk(3)
		w.stop()
		seen := map[string]int{}
		for _, m := range w.store.memories {
			seen[m.Content]++
		}
		want(t, "facts", seen, map[string]int{"Alice owns the release.": 1, "The release is on Friday (2000-01-07).": 1})
		if n := len(w.model.requests("flush")); n < 3 {
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
					return text(words), nil
				}
				w := start(t, setup{model: &script{flush: aloud, summary: aloud}, config: func(c *Config) {
					c.Display = listener(func(s string) { mu.Lock(); defer mu.Unlock(); streamed.WriteString(s) })
				}})
				w.fill(4050)
				after(10 * time.Minute)
				if len(w.model.requests("flush")) == 0 || len(w.model.requests("summary")) == 0 {
					t.Fatal("nothing was flushed or summarized")
				}
				for _, texts := range w.wire.texts() {
					if !strings.HasPrefix(texts, "re: ") {
						t.Errorf("the group got %q", texts)
					}
				}
				if strings.Contains(strings.ToUpper(streamed.String()), "NO_") {
					t.Errorf("streamed %q", streamed.String())
				}
				n := len(w.wire.sends())
				w.say("q", "alice", words+" 是什么意思?")
				want(t, "answers", len(w.wire.sends()), n+1)
				if got := w.wire.texts()[n]; !strings.Contains(got, "是什么意思") {
					t.Errorf("answered %q", got)
				}
				w.model.mu.Lock()
				w.model.chat = aloud
				w.model.mu.Unlock()
				w.say("q2", "alice", "say it")
				want(t, "answers", len(w.wire.sends()), n+2)
			})
		})
	}
}

// P23: a provider that counts two and a half times our tokens without saying so costs one more request when a tool's
// result overflows its count. The answer is never lost.
func TestOverflowByToolResults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var w *world
		overflows := 0
		w = start(t, setup{
			config: func(c *Config) {
				c.Tools = []chat.Tool{handTool{name: "look", reads: true, f: func(_ context.Context, in chat.ToolInput) (string, error) {
					return in.Arguments + prose(3, 1500), nil
				}}}
			},
			model: &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
				if 5*requestTokens(w.bot, r.Messages)/2 > small.Context {
					overflows++
					return llm.Response{}, &llm.CallError{Class: llm.Overflow, Err: errors.New("too long")}
				}
				results := strings.Count(written(r.Messages), "== tool")
				if results < 6 && strings.Contains(written(r.Messages), "look it up") && !strings.Contains(lastWords(r), noMoreCalls) {
					return calls(call("c1", "look", fmt.Sprintf(`{"n":%d}`, results)), call("c2", "look", fmt.Sprintf(`{"n":%d}`, results+1))), nil
				}
				return text("answered"), nil
			}},
		})
		w.fill(1500)
		w.post(said("q", "alice", "look it up"))
		after(time.Minute)
		texts := w.wire.texts()
		want(t, "the answer", texts[len(texts)-1], "answered")
		want(t, "requests that were too large", overflows, 1)
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
				var w *world
				asked, refusing := 0, false
				w = start(t, setup{
					config: func(c *Config) { c.Compaction.Window.Threshold = 11000 },
					model: &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
						if !refusing {
							return text("noted"), nil
						}
						if asked++; requestTokens(w.bot, r.Messages) > tt.limit {
							return llm.Response{}, &llm.CallError{Class: llm.Malformed, Status: 400, Err: errors.New("E4001")}
						}
						return text("answered"), nil
					}},
				})
				w.fill(tt.fill)
				refusing = true
				w.post(said("q", "alice", "anything new?"))
				after(time.Minute)
				texts := w.wire.texts()
				want(t, "the answer", texts[len(texts)-1], tt.answer)
				want(t, "requests", asked, tt.requests)
			})
		})
	}
}

// listener receives the streamed text of all turns.
type listener func(text string)

func (l listener) Show(context.Context, chat.Shown) chat.Live { return l }
func (l listener) Text(text string, _ bool)                   { l(text) }
func (l listener) Thought(string)                             {}
func (l listener) Tool(string)                                {}
func (l listener) Visible() bool                              { return true }
func (l listener) Stop() string                               { return "" }
