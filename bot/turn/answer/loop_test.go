package answer_test

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
	"ebb/bot/wording"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// The model reads of its calls: results, its own repetitions, unknown tools, errors.
func TestCallsAndTheirResults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var acts, looks atomic.Int32
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) {
				c.Tools = []chat.Tool{bottest.CountedTool("act", false, &acts), bottest.CountedTool("look", true, &looks), bottest.HandTool{Name: "fail", F: func(context.Context, chat.ToolInput) (string, error) {
					return "", errors.New("path is missing: give one")
				}}}
			},
			Model: &bottest.Script{Chat: bottest.Rounds(
				bottest.Calls(bottest.Call("1", "act", `{"a":1}`), bottest.Call("2", "look", `{}`)),
				bottest.Calls(bottest.Call("3", "act", `{"a":1}`), bottest.Call("4", "look", `{}`), bottest.Call("5", "act", `{"a":2}`)),
				bottest.Calls(bottest.Call("6", "dance", `{}`), bottest.Call("7", "fail", `{}`)),
			)},
		})
		w.Say("m1", "alice", "go")
		bottest.Want(t, "reply", w.Wire.Texts(), []string{"the end"})
		bottest.Want(t, "times run", []int32{acts.Load(), looks.Load()}, []int32{2, 1})
		got := w.Results()
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
		w.LegalLog()
	})
}

// A call with a megabyte of arguments is not made. The model reads why, and neither the log nor a later request has the arguments.
func TestLargeArgumentsAreRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var acts atomic.Int32
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) { c.Tools = []chat.Tool{bottest.CountedTool("act", false, &acts)} },
			Model: &bottest.Script{Chat: bottest.Rounds(
				bottest.Calls(bottest.Call("1", "act", `{"a":"`+strings.Repeat("x", 1<<20)+`"}`), bottest.Call("2", "act", `{"a":"`+strings.Repeat("y", 2000)+`"}`)),
			)},
		})
		w.Say("m1", "alice", "go")
		bottest.Want(t, "reply", w.Wire.Texts(), []string{"the end"})
		bottest.Want(t, "times run", acts.Load(), int32(1))
		if got := w.Results()["1"]; !strings.Contains(got, "Not run: the size of the arguments is 1048584, and the limit is 12000 (bytes)") || len(got) > 300 {
			t.Errorf("the result of the large call is %q", got)
		}
		for _, e := range w.View().Tail {
			for _, c := range e.ToolCalls {
				if len(c.Arguments) > 10_000 {
					t.Errorf("the log has %d bytes of arguments of call %s", len(c.Arguments), c.ID)
				}
			}
		}
		w.LegalLog()
	})
}

// A model that calls tools without end is asked to stop, and people get a word.
func TestRoundLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) { c.MaxToolRounds = 3 },
			Model: &bottest.Script{Chat: func(context.Context, llm.Request) (llm.Response, error) {
				n++
				return bottest.Calls(bottest.Call(fmt.Sprint("c", n), "look", fmt.Sprintf(`{"n":%d}`, n))), nil
			}},
		})
		w.Say("m1", "alice", "go on for ever")
		bottest.Want(t, "model calls", n, 4)
		bottest.Want(t, "reply", w.Wire.Texts(), []string{wording.Say(wording.Rounds, "en")})
		if last := w.Results()["c3"]; !strings.Contains(last, "No more tool calls") {
			t.Errorf("the last result does not say that it is the last: %q", last)
		}
		w.LegalLog()
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
				w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Rounds(c.r)}})
				w.Say("m1", "alice", "hello")
				bottest.Want(t, "replies", w.Wire.Texts(), []string{c.want})
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
				w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(context.Context, llm.Request) (llm.Response, error) {
					if n++; n == 1 {
						return bottest.Calls(bottest.Call("1", "look", `{}`), bottest.Call("2", "act", `{}`)), nil
					}
					return llm.Response{}, &llm.CallError{Class: class, Err: errors.New("https://provider/?key=sk-123")}
				}}})
				w.Post(bottest.Said("m1", "alice", "go"))
				bottest.After(time.Minute)
				bottest.Want(t, "replies", w.Wire.Texts(), []string{wording.Say(p, "en")})
				w.LegalLog()
				bottest.Want(t, "events", len(w.Store.EventsOf(t.Context(), bottest.Group)), 5)
			})
		})
	}
}

// A turn that takes too long ends with a word, and the model is not asked again by itself.
func TestTurnTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: bottest.Hang}, Config: func(c *bot.Config) { c.TurnTimeout = 30 * time.Second }})
		w.Post(bottest.Said("m1", "alice", "hello"))
		bottest.After(10 * time.Minute)
		bottest.Want(t, "replies", w.Wire.Texts(), []string{wording.Say(wording.Timeout, "en")})
		bottest.Want(t, "model calls", len(w.Model.Requests("chat")), 1)
	})
}

// A call that may have an effect is recorded before it runs. After a crash, one that was cut off is not repeated, and
// one that finished gives its old result; calls without effects are simply made again.
func TestCallsAfterACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var acts, slow, looks atomic.Int32
		block := bottest.NewGate()
		tools := func(c *bot.Config) {
			c.Tools = []chat.Tool{
				bottest.CountedTool("act", false, &acts), bottest.CountedTool("look", true, &looks),
				bottest.HandTool{Name: "slow", F: func(ctx context.Context, _ chat.ToolInput) (string, error) {
					slow.Add(1)
					return "never seen", block.Pass(ctx)
				}},
			}
		}
		script1 := func() *bottest.Script {
			return &bottest.Script{Chat: bottest.Rounds(bottest.Calls(bottest.Call("1", "act", `{"a":1}`), bottest.Call("2", "look", `{}`)), bottest.Calls(bottest.Call("3", "slow", `{}`)))}
		}
		a := bottest.Start(t, bottest.Setup{Name: "a", Config: tools, Model: script1()})
		a.Post(bottest.Said("m1", "alice", "go"))
		<-block.In
		bottest.Want(t, "records before the slow call runs", a.Store.Called("record"), 3)
		a.Store.Fail(func(string) error { return bottest.ErrAway })
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Config: tools, Model: script1()})
		bottest.After(10 * time.Second)
		bottest.Want(t, "replies of b", b.Wire.Texts(), []string{"the end"})
		bottest.Want(t, "times run", []int32{acts.Load(), slow.Load(), looks.Load()}, []int32{1, 1, 2})
		got := b.Results()
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
		tools := func(c *bot.Config) { c.Tools = []chat.Tool{bottest.CountedTool("act", false, &acts)} }
		n := 0
		a := bottest.Start(t, bottest.Setup{Name: "a", Config: tools, Model: &bottest.Script{Chat: func(ctx context.Context, r llm.Request) (llm.Response, error) {
			if n++; n > 2 {
				return bottest.Hang(ctx, r)
			}
			return bottest.Calls(bottest.Call("call_0", "act", fmt.Sprintf(`{"a":%d}`, n))), nil
		}}})
		a.Post(bottest.Said("m1", "alice", "go"))
		synctest.Wait()
		a.Store.Fail(func(string) error { return bottest.ErrAway })
		b := bottest.Start(t, bottest.Setup{Name: "b", Shelf: a.Store.Shelf, Config: tools, Model: &bottest.Script{Chat: bottest.Rounds(
			bottest.Calls(bottest.Call("x", "act", `{"a":1}`), bottest.Call("y", "act", `{"a":2}`)))}})
		bottest.After(10 * time.Second)
		got := b.Results()
		if !strings.Contains(got["x"], `run 1 with {"a":1}`) || !strings.Contains(got["y"], `run 2 with {"a":2}`) {
			t.Errorf("results after the crash: %q", got)
		}
		bottest.Want(t, "times run", acts.Load(), 2)
	})
}

// A tool's endless result is shown from both ends; the log keeps it whole, and later requests show the same bytes.
func TestHugeToolResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		huge := strings.Repeat("0123456789 abc\n", 8000)
		var current []sessions.Event
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) {
				c.Tools = []chat.Tool{
					bottest.HandTool{Name: "look", Reads: true, F: func(context.Context, chat.ToolInput) (string, error) { return huge, nil }},
					bottest.HandTool{Name: "read", Reads: true, F: func(_ context.Context, in chat.ToolInput) (string, error) { current = in.Current; return "ok", nil }},
				}
				c.Compaction.Window.Threshold = 1 << 20
			},
			Model: &bottest.Script{Chat: bottest.Rounds(bottest.Calls(bottest.Call("1", "look", `{}`)), bottest.Calls(bottest.Call("2", "read", `{}`)))},
		})
		w.Say("m1", "alice", "go")
		first := w.Results()["1"]
		if n := bottest.Counter.Count(first); n > bottest.Small.Usable()/4 {
			t.Errorf("the model was shown %d tokens of one result", n)
		}
		// The note names the number that the result has in the running turn, and in the log after it.
		if len(current) != 4 || current[2].Seq != 3 || current[2].Content != huge || !strings.Contains(first, "whole: "+sessions.ReadCall(3)) {
			t.Errorf("a tool reads %d events of the turn; the note: %.300q", len(current), first[len(first)/2:])
		}
		w.Say("m2", "alice", "and then?")
		if w.Results()["1"] != first {
			t.Error("the next request shows the result differently")
		}
		for _, e := range w.Store.EventsOf(t.Context(), bottest.Group) {
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
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) {
				c.Tools = []chat.Tool{
					bottest.HandTool{Name: "look", F: func(context.Context, chat.ToolInput) (string, error) { return "production is open to everybody", nil }},
					bottest.HandTool{Name: "keep", F: func(_ context.Context, in chat.ToolInput) (string, error) {
						drafts, refused := draft.Route([]memory.Fact{{Content: in.Arguments, Kind: memory.KindDecision}}, in.Chat)
						kept = append(kept, drafts...)
						return strings.Join(refused, ""), nil
					}},
				}
			},
			Model: &bottest.Script{Chat: bottest.Rounds(
				bottest.Calls(bottest.Call("1", "look", `{}`)),
				bottest.Calls(bottest.Call("2", "keep", `production is open to everybody`), bottest.Call("3", "keep", `alice wants the release on Friday`)),
			)},
		})
		w.Say("m1", "alice", "alice wants the release on Friday, look it up")
		if len(kept) != 2 || kept[0].Scope != memory.ScopeSession || kept[0].SaidBy != "" || kept[1].Scope != memory.ScopeGroup || kept[1].SaidBy != "u-alice" {
			t.Errorf("kept %+v", kept)
		}
	})
}
