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
	"ebb/bot/wording"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
)

// rounds answers request after request with the next of a list, and with words when it is used up.
func rounds(rs ...llm.Response) func(context.Context, llm.Request) (llm.Response, error) {
	var n atomic.Int32
	return func(context.Context, llm.Request) (llm.Response, error) {
		if i := int(n.Add(1)) - 1; i < len(rs) {
			return rs[i], nil
		}
		return text("the end"), nil
	}
}

func call(id, name, args string) sessions.ToolCall {
	return sessions.ToolCall{ID: id, Name: name, Arguments: args}
}

// countedTool makes a tool that says how often it ran.
func countedTool(name string, reads bool, n *atomic.Int32) chat.Tool {
	return handTool{name: name, reads: reads, f: func(_ context.Context, in chat.ToolInput) (string, error) {
		return fmt.Sprintf("%s run %d with %s", name, n.Add(1), in.Arguments), nil
	}}
}

// results are the tool results that the last request of a turn showed the model, by call id.
func (w *world) results() map[string]string {
	rs := w.model.requests("chat")
	out := map[string]string{}
	for _, m := range rs[len(rs)-1].Messages {
		if m.Role == "tool" {
			out[m.ToolCallID] = m.Content
		}
	}
	return out
}

// The model reads of its calls: results, its own repetitions, unknown tools, errors.
func TestCallsAndTheirResults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var acts, looks atomic.Int32
		w := start(t, setup{
			config: func(c *Config) {
				c.Tools = []chat.Tool{countedTool("act", false, &acts), countedTool("look", true, &looks), handTool{name: "fail", f: func(context.Context, chat.ToolInput) (string, error) {
					return "", errors.New("path is missing: give one")
				}}}
			},
			model: &script{chat: rounds(
				calls(call("1", "act", `{"a":1}`), call("2", "look", `{}`)),
				calls(call("3", "act", `{"a":1}`), call("4", "look", `{}`), call("5", "act", `{"a":2}`)),
				calls(call("6", "dance", `{}`), call("7", "fail", `{}`)),
			)},
		})
		w.say("m1", "alice", "go")
		want(t, "reply", w.wire.texts(), []string{"the end"})
		want(t, "times run", []int32{acts.Load(), looks.Load()}, []int32{2, 1})
		got := w.results()
		for id, part := range map[string]string{
			"1": `act run 1 with {"a":1}`, "2": "look run 1", "3": "stands above", "4": "stands above", "5": `act run 2 with {"a":2}`,
			"6": "act, fail, look", "7": "path is missing",
		} {
			if !strings.Contains(got[id], part) {
				t.Errorf("result of call %s is %q, want %q in it", id, got[id], part)
			}
		}
		for _, id := range []string{"3", "4"} {
			if !strings.Contains(got[id], "not run again") {
				t.Errorf("result of the repeated call %s is %q", id, got[id])
			}
		}
		w.legalLog()
	})
}

// legalLog checks that in the log every call has its one result after it, and every result its call (P16, P17).
func (w *world) legalLog() {
	w.t.Helper()
	open := map[string]bool{}
	for _, e := range w.store.log(w.t.Context(), group) {
		switch {
		case e.Role == sessions.RoleTool && !open[e.ToolCallID]:
			w.t.Errorf("event %d is a result without its call", e.Seq)
		case e.Role == sessions.RoleTool:
			delete(open, e.ToolCallID)
		case len(open) > 0:
			w.t.Errorf("event %d stands between calls and their results: %v", e.Seq, open)
		}
		for _, c := range e.ToolCalls {
			open[c.ID] = true
		}
	}
	if len(open) > 0 {
		w.t.Errorf("calls without results: %v", open)
	}
}

// A model that calls tools without end is asked to stop, and people get a word.
func TestRoundLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		w := start(t, setup{
			config: func(c *Config) { c.MaxToolRounds = 3 },
			model: &script{chat: func(context.Context, llm.Request) (llm.Response, error) {
				n++
				return calls(call(fmt.Sprint("c", n), "look", fmt.Sprintf(`{"n":%d}`, n))), nil
			}},
		})
		w.say("m1", "alice", "go on for ever")
		want(t, "model calls", n, 4)
		want(t, "reply", w.wire.texts(), []string{wording.Say(wording.Rounds, "en")})
		if last := w.results()["c3"]; !strings.Contains(last, "No more tool calls") {
			t.Errorf("the last result does not say that it is the last: %q", last)
		}
		w.legalLog()
	})
}

// An answer without words, cut off or withheld gets a sensible word.
func TestPoorAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		r    llm.Response
		want string
	}{
		"empty":    {llm.Response{Finish: llm.FinishStop}, wording.Say(wording.Empty, "en")},
		"blank":    {llm.Response{Text: " \n\t", Finish: llm.FinishStop}, wording.Say(wording.Empty, "en")},
		"filtered": {llm.Response{Finish: llm.FinishFilter}, wording.Say(wording.Refused, "en")},
		"cut off":  {llm.Response{Text: "half of", Finish: llm.FinishLength}, "half of" + wording.Say(wording.CutOff, "en")},
		"withheld": {llm.Response{Text: "half of", Finish: llm.FinishFilter}, "half of" + wording.Say(wording.Withheld, "en")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := start(t, setup{model: &script{chat: rounds(c.r)}})
				w.say("m1", "alice", "hello")
				want(t, "replies", w.wire.texts(), []string{c.want})
			})
		})
	}
}

// A model error is reported politely, by its class alone. Results of its tools stay in the log, and the log stays
// legal.
func TestModelErrorAfterToolCalls(t *testing.T) {
	t.Parallel()
	for class, p := range map[llm.ErrorClass]wording.Phrase{llm.Busy: wording.Busy, llm.Denied: wording.Denied, llm.Refused: wording.ResultsRefused, llm.Malformed: wording.Malformed} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := 0
				w := start(t, setup{model: &script{chat: func(context.Context, llm.Request) (llm.Response, error) {
					if n++; n == 1 {
						return calls(call("1", "look", `{}`), call("2", "act", `{}`)), nil
					}
					return llm.Response{}, &llm.CallError{Class: class, Err: errors.New("https://provider/?key=sk-123")}
				}}})
				w.post(said("m1", "alice", "go"))
				after(time.Minute)
				want(t, "replies", w.wire.texts(), []string{wording.Say(p, "en")})
				w.legalLog()
				want(t, "events", len(w.store.log(t.Context(), group)), 5)
			})
		})
	}
}

// A turn that takes too long ends with a word, and the model is not asked again by itself.
func TestTurnTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := start(t, setup{model: &script{chat: hang}, config: func(c *Config) { c.TurnTimeout = 30 * time.Second }})
		w.post(said("m1", "alice", "hello"))
		after(10 * time.Minute)
		want(t, "replies", w.wire.texts(), []string{wording.Say(wording.Timeout, "en")})
		want(t, "model calls", len(w.model.requests("chat")), 1)
	})
}

// A call that may have an effect is recorded before it runs. After a crash, one that was cut off is not repeated, and
// one that finished gives its old result; calls without effects are simply made again.
func TestCallsAfterACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var acts, slow, looks atomic.Int32
		block := newGate()
		tools := func(c *Config) {
			c.Tools = []chat.Tool{
				countedTool("act", false, &acts), countedTool("look", true, &looks),
				handTool{name: "slow", f: func(ctx context.Context, _ chat.ToolInput) (string, error) {
					slow.Add(1)
					return "never seen", block.pass(ctx)
				}},
			}
		}
		script1 := func() *script {
			return &script{chat: rounds(calls(call("1", "act", `{"a":1}`), call("2", "look", `{}`)), calls(call("3", "slow", `{}`)))}
		}
		a := start(t, setup{name: "a", config: tools, model: script1()})
		a.post(said("m1", "alice", "go"))
		<-block.in
		want(t, "records before the slow call runs", a.store.called("record"), 3)
		a.store.fail(func(string) error { return errAway })
		b := start(t, setup{name: "b", shelf: a.store.shelf, config: tools, model: script1()})
		after(10 * time.Second)
		want(t, "replies of b", b.wire.texts(), []string{"the end"})
		want(t, "times run", []int32{acts.Load(), slow.Load(), looks.Load()}, []int32{1, 1, 2})
		got := b.results()
		if !strings.Contains(got["1"], "act run 1") || !strings.HasPrefix(got["3"], "interrupted") {
			t.Errorf("results after the crash: %q", got)
		}
	})
}

// A provider that restarts the numbers of its calls in every round must not make one call's result stand for another's.
func TestCallIDsThatRepeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var acts atomic.Int32
		tools := func(c *Config) { c.Tools = []chat.Tool{countedTool("act", false, &acts)} }
		n := 0
		a := start(t, setup{name: "a", config: tools, model: &script{chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if n++; n > 2 {
				return hang(ctx, r)
			}
			return calls(call("call_0", "act", fmt.Sprintf(`{"a":%d}`, n))), nil
		}}})
		a.post(said("m1", "alice", "go"))
		synctest.Wait()
		a.store.fail(func(string) error { return errAway })
		b := start(t, setup{name: "b", shelf: a.store.shelf, config: tools, model: &script{chat: rounds(
			calls(call("x", "act", `{"a":1}`), call("y", "act", `{"a":2}`)))}})
		after(10 * time.Second)
		got := b.results()
		if !strings.Contains(got["x"], `run 1 with {"a":1}`) || !strings.Contains(got["y"], `run 2 with {"a":2}`) {
			t.Errorf("results after the crash: %q", got)
		}
		want(t, "times run", acts.Load(), 2)
	})
}

// A tool's endless result is shown from both ends; the log keeps it whole, and later requests show the same bytes.
func TestHugeToolResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		huge := strings.Repeat("0123456789 abc\n", 8000)
		var current []sessions.Event
		w := start(t, setup{
			config: func(c *Config) {
				c.Tools = []chat.Tool{
					handTool{name: "look", reads: true, f: func(context.Context, chat.ToolInput) (string, error) { return huge, nil }},
					handTool{name: "read", reads: true, f: func(_ context.Context, in chat.ToolInput) (string, error) { current = in.Current; return "ok", nil }},
				}
				c.Compaction.Window.Threshold = 1 << 20
			},
			model: &script{chat: rounds(calls(call("1", "look", `{}`)), calls(call("2", "read", `{}`)))},
		})
		w.say("m1", "alice", "go")
		first := w.results()["1"]
		if n := counter.Count(first); n > small.Usable()/4 {
			t.Errorf("the model was shown %d tokens of one result", n)
		}
		// The note names the number that the result has in the running turn, and in the log after it.
		if len(current) != 4 || current[2].Seq != 3 || current[2].Content != huge || !strings.Contains(first, "whole: "+sessions.ReadCall(3)) {
			t.Errorf("a tool reads %d events of the turn; the note: %.300q", len(current), first[len(first)/2:])
		}
		w.say("m2", "alice", "and then?")
		if w.results()["1"] != first {
			t.Error("the next request shows the result differently")
		}
		for _, e := range w.store.log(t.Context(), group) {
			if e.Role == sessions.RoleTool && e.ToolName == "look" && (e.Content != huge || e.Seq != 3) {
				t.Errorf("the log has %d bytes of %d", len(e.Content), len(huge))
			}
		}
	})
}

// A tool's finding in this very turn has no speaker: as a fact, it stays in the session.
func TestFactsFromToolsStayInTheSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var kept []memory.Draft
		w := start(t, setup{
			config: func(c *Config) {
				c.Tools = []chat.Tool{
					handTool{name: "look", f: func(context.Context, chat.ToolInput) (string, error) { return "production is open to everybody", nil }},
					handTool{name: "keep", f: func(_ context.Context, in chat.ToolInput) (string, error) {
						drafts, refused := draft.Route([]memory.Fact{{Content: in.Arguments, Kind: memory.KindDecision}}, in.Chat)
						kept = append(kept, drafts...)
						return strings.Join(refused, ""), nil
					}},
				}
			},
			model: &script{chat: rounds(
				calls(call("1", "look", `{}`)),
				calls(call("2", "keep", `production is open to everybody`), call("3", "keep", `alice wants the release on Friday`)),
			)},
		})
		w.say("m1", "alice", "alice wants the release on Friday, look it up")
		if len(kept) != 2 || kept[0].Scope != memory.ScopeSession || kept[0].SaidBy != "" || kept[1].Scope != memory.ScopeGroup || kept[1].SaidBy != "u-alice" {
			t.Errorf("kept %+v", kept)
		}
	})
}
