package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/wording"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Rights to compact by hand: administrators in a group, every person in a private chat.
func TestManualCompactionIsForAdmins(t *testing.T) {
	t.Parallel()
	admin := bottest.Said("x", "root", "/压缩")
	byDingTalk := bottest.Said("x", "boss", "/压缩 the dates")
	byDingTalk.Admin = true
	stranger := bottest.Said("x", "guest", "/压缩")
	stranger.Admin, stranger.StaffID = true, ""
	for name, c := range map[string]struct {
		m       sessions.Message
		allowed bool
	}{
		"member":                 {bottest.Said("x", "alice", "/压缩"), false},
		"configured":             {admin, true},
		"by DingTalk's word":     {byDingTalk, true},
		"from outside":           {stranger, false},
		"member, in Chinese":     {bottest.Said("x", "alice", "/压缩"), false},
		"configured, Chinese":    {bottest.Said("x", "root", " /压缩 日期 "), true},
		"configured, full width": {bottest.Said("x", "root", "／压缩"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := bottest.Start(t, bottest.Setup{Config: func(c *bot.Config) { c.Admins = []sessions.UserID{"u-root"} }})
				w.Fill(3000)
				w.Post(c.m)
				synctest.Wait()
				last := w.Wire.Texts()[len(w.Wire.Sends())-1]
				if got := w.Compactions() == 1; got != c.allowed {
					t.Errorf("compacted: %v; the answer is %q", got, last)
				}
				if refused := last == wording.Say(wording.NotAdmin, "zh"); refused == c.allowed {
					t.Errorf("the answer is %q", last)
				}
				if c.allowed && !strings.HasPrefix(last, "✅") {
					t.Errorf("the answer is %q", last)
				}
				for _, e := range bottest.Attempts(t, w.Store.Mem.Compactions) {
					bottest.Want(t, "trigger and outcome", string(e.Trigger)+" "+string(e.Outcome), "manual committed")
				}
			})
		})
	}
}

func TestManualCompactionReportsItsResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &bottest.Script{}
		w := bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) { c.Admins = []sessions.UserID{"u-root"} }})
		answer := func(id string) string {
			w.Post(bottest.Said(id, "root", "/压缩 keep the dates"))
			bottest.After(time.Minute)
			return w.Wire.Texts()[len(w.Wire.Sends())-1]
		}
		if got := answer("c1"); !strings.HasPrefix(got, "无需压缩") {
			t.Errorf("with nothing said: %q", got)
		}
		w.Fill(3000)
		m.Mu.Lock()
		m.Summary = func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text(""), nil }
		m.Mu.Unlock()
		if got := answer("c2"); got != wording.Say(wording.CompactFailed, "zh", "模型没有给出可用的摘要") || w.Compactions() != 0 {
			t.Errorf("with a summariser that fails: %q", got)
		}
		m.Mu.Lock()
		m.Summary = func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Unreachable, Err: errors.New("dial tcp 10.0.0.1: connection refused")}
		}
		m.Mu.Unlock()
		if got := answer("c2b"); !strings.Contains(got, "连不上模型服务") || strings.Contains(got, "10.0.0.1") {
			t.Errorf("with a model that can't be reached: %q", got)
		}
		rows := bottest.Attempts(t, w.Store.Mem.Compactions)
		bottest.Want(t, "reason in the log", rows[len(rows)-1].Error, "model error: unreachable")
		m.Mu.Lock()
		m.Summary = nil
		m.Mu.Unlock()
		if got := answer("c3"); !strings.HasPrefix(got, "✅") || w.Compactions() != 1 {
			t.Errorf("after all: %q", got)
		}
		receipt := w.Wire.Texts()[len(w.Wire.Sends())-1]
		if !strings.Contains(receipt, "\n- 重点：keep the dates\n") || strings.Contains(receipt, "bytes left out") || strings.Contains(receipt, "存下 1,") {
			t.Errorf("the receipt reads %q", receipt)
		}
		asked := w.Model.Requests("summary")
		if !strings.Contains(bottest.LastWords(asked[len(asked)-1]), "keep the dates") {
			t.Error("the focus is not in the summary request")
		}
		v := w.View()
		bottest.Want(t, "summaries in the view", len(v.Summaries), 1)
		if len(v.Tail) == 0 || v.Tail[0].Seq != v.Summaries[0].EndSeq+1 {
			t.Errorf("the tail begins at %d after a summary to %d", v.Tail[0].Seq, v.Summaries[0].EndSeq)
		}
	})
}

// Turns that commit while a summary is made stay raw, in full, and are in the count of the context afterwards.
func TestTurnsDuringACompaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		var held sync.Once
		m := &bottest.Script{Summary: func(ctx context.Context, _ llm.Request) (r llm.Response, err error) {
			held.Do(func() { err = g.Pass(ctx) })
			return bottest.Text(bottest.GoodSummary), err
		}}
		w := bottest.Start(t, bottest.Setup{Model: m})
		w.Fill(3500)
		w.Post(bottest.Said("trigger", "alice", bottest.Prose(1, 600)))
		<-g.In
		synctest.Wait()
		before := w.State(bottest.Group).LastSeq
		for i := range 5 {
			w.Say(fmt.Sprint("during", i), "bob", fmt.Sprintf("during %d", i))
		}
		g.Out <- struct{}{}
		synctest.Wait()
		bottest.Want(t, "compactions", w.Compactions(), 1)
		v := w.View()
		raw := 0
		for _, e := range v.Tail {
			if e.Seq > before {
				raw++
			}
		}
		bottest.Want(t, "raw events since the plan", raw, 10)
		near(t, "tokens of the context", w.State(bottest.Group).TotalTokens, w.Views.Sizes.Size(v, 1))
		w.Say("next", "alice", "go on")
		near(t, "tokens one turn later", w.State(bottest.Group).TotalTokens, w.Views.Sizes.Size(w.View(), 1))
	})
}

// near allows for the frame of a message or two.
func near(t *testing.T, what string, got, wanted int) {
	t.Helper()
	if d := got - wanted; d < -3*tokens.MessageOverhead || d > 3*tokens.MessageOverhead {
		t.Errorf("%s: %d, want about %d", what, got, wanted)
	}
}

// Summaries and raw events cover the whole log, end to end, through many compactions (P1, P2).
func TestManyCompactionsLoseNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cycle := 0
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Flush: func(context.Context, llm.Request) (llm.Response, error) {
			cycle++
			return bottest.SaveCall(fmt.Sprintf("In cycle %d %s", cycle, bottest.Prose(cycle, 50))), nil
		}}})
		for n := 1; n <= 6; n++ {
			w.Talk(n)
			v := w.View()
			next := int64(1)
			for _, s := range v.Summaries {
				bottest.Want(t, "begin of a summary", s.StartSeq, next)
				next = s.EndSeq + 1
			}
			for _, e := range v.Tail {
				bottest.Want(t, "raw event", e.Seq, next)
				next++
			}
			bottest.Want(t, "end of the view", next, v.Session.LastSeq+1)
			near(t, "tokens of the context", v.Session.TotalTokens, w.Views.Sizes.Size(v, 1))
			if v.Session.TotalTokens >= bottest.Small.Trigger() {
				t.Errorf("%d tokens after a compaction", v.Session.TotalTokens)
			}
		}
		seqs := []int64{}
		for _, e := range w.Store.EventsOf(t.Context(), bottest.Group) {
			seqs = append(seqs, e.Seq)
		}
		bottest.Want(t, "log sorted and complete", len(seqs), int(slices.Max(seqs)))
	})
}

// A compaction whose range changed commits nothing: one summary covers the range, not two, and it is no failure.
func TestCompactionConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		var held sync.Once
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Summary: func(ctx context.Context, _ llm.Request) (r llm.Response, err error) {
			held.Do(func() { err = g.Pass(ctx) })
			return bottest.Text(bottest.GoodSummary), err
		}}})
		w.Fill(3500)
		w.Post(bottest.Said("trigger", "alice", bottest.Prose(1, 600)))
		<-g.In
		v := w.View()
		l := v.Session.Lease
		if _, err := w.Store.Mem.Compactions.Compact(t.Context(), l, sessions.Compaction{
			Through: 4, Summaries: []sessions.NewSummary{{StartSeq: 1, EndSeq: 4, Text: "the other one", Tokens: 3}}, Freed: 100,
		}); err != nil {
			t.Fatal(err)
		}
		g.Out <- struct{}{}
		synctest.Wait()
		v = w.View()
		bottest.Want(t, "summaries", len(v.Summaries), 1)
		bottest.Want(t, "summary", v.Summaries[0].Text, "the other one")
		bottest.Want(t, "first raw event", v.Tail[0].Seq, 5)
		bottest.Want(t, "failures in a row", v.Session.CompactFailures, 0)
		log := bottest.Attempts(t, w.Store.Mem.Compactions)
		if e := log[len(log)-1]; e.Outcome != "failed" || e.TokensAfter != e.TokensBefore {
			t.Errorf("log row %+v", e)
		}
	})
}

// P46: a manual compaction while an automatic one runs waits for it; no range is summarized twice.
func TestManualWaitsForAutomatic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := bottest.NewGate()
		var held sync.Once
		w := bottest.Start(t, bottest.Setup{
			Config: func(c *bot.Config) { c.Admins = []sessions.UserID{"u-root"} },
			Model: &bottest.Script{Summary: func(ctx context.Context, _ llm.Request) (r llm.Response, err error) {
				held.Do(func() { err = g.Pass(ctx) })
				return bottest.Text(bottest.GoodSummary), err
			}},
		})
		w.Fill(3500)
		w.Post(bottest.Said("trigger", "alice", bottest.Prose(1, 600)))
		<-g.In
		w.Post(bottest.Said("manual", "root", "/压缩"))
		synctest.Wait()
		bottest.Want(t, "summaries asked for", len(w.Model.Requests("summary")), 1)
		g.Out <- struct{}{}
		bottest.After(time.Minute)
		covered := map[int64]bool{}
		for _, e := range bottest.Attempts(t, w.Store.Mem.Compactions) {
			if e.Outcome == "committed" {
				if covered[e.EndSeq] {
					t.Errorf("events up to %d were summarized twice", e.EndSeq)
				}
				covered[e.EndSeq] = true
			}
		}
		last := w.Wire.Texts()[len(w.Wire.Sends())-1]
		if !strings.HasPrefix(last, "✅") && !strings.HasPrefix(last, "无需压缩") {
			t.Errorf("the admin's answer is %q", last)
		}
	})
}

// A summary that fails is asked for as often as configured, each time with one request, and given up with an error in the log.
func TestRequestsForASummaryAreCountedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &bottest.Script{Summary: func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Busy, Model: "main", Err: errors.New("overloaded")}
		}}
		w := bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) {
			c.Admins, c.SummaryRetries, c.SummaryBackoff = []sessions.UserID{"u-root"}, 4, 2*time.Second
		}})
		w.Fill(3000)
		began := time.Now()
		w.Post(bottest.Said("c1", "root", "/压缩"))
		bottest.After(time.Minute)
		asked := w.Model.Requests("summary")
		bottest.Want(t, "requests", len(asked), 4)
		for i, r := range asked {
			bottest.Want(t, fmt.Sprintf("requests allowed to call %d, and its kind", i+1), fmt.Sprint(r.Requests, r.Kind), "1summary")
		}
		lines := w.Log.Lines(t, "Summary given up")
		if len(lines) != 1 || lines[0]["level"] != "error" || lines[0]["model"] != "default" || time.Since(began) < 12*time.Second*8/10 {
			t.Errorf("the log has %v", lines)
		}
	})
}

// The chunks before a failed one are paid for: they are committed, and the next compaction begins behind them.
func TestPaidChunksOfAFailedSummaryAreKept(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]struct {
		failure  func(context.Context) (llm.Response, error)
		deadline bool // the failed chunk takes until the end of the compaction's time
	}{
		"refused": {func(context.Context) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Denied, Err: errors.New("denied")}
		}, false},
		"hangs": {func(ctx context.Context) (llm.Response, error) { <-ctx.Done(); return llm.Response{}, ctx.Err() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				broken, paid, turns := true, 0, 0
				m := &bottest.Script{Summary: func(ctx context.Context, r llm.Request) (llm.Response, error) {
					asked := bottest.LastWords(r)
					switch {
					case len(asked) > 9000:
						return llm.Response{}, &llm.CallError{Class: llm.Overflow, Err: errors.New("too long")}
					case broken && paid == 2:
						return ends.failure(ctx)
					}
					paid, turns = paid+1, turns+strings.Count(asked, `"who":"alice`)
					a := bottest.Text(bottest.GoodSummary)
					a.Usage = sessions.Usage{Prompt: 100}
					return a, nil
				}}
				w := bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) {
					c.Admins, c.SummaryRetries, c.Compaction.Window.Threshold = []sessions.UserID{"u-root"}, 1, 10000
				}})
				w.Fill(8000)
				before := w.State(bottest.Group).SpentToday
				w.Post(compactByRoot(w))
				bottest.After(10 * time.Minute)
				if ends.deadline { // staged by the attempt that was cut off
					w.Post(compactByRoot(w))
					bottest.After(time.Minute)
				}
				first := w.View()
				bottest.Want(t, "paid chunks", paid, 2)
				if len(first.Summaries) != 1 || first.Session.CompactedSeq == 0 || first.Tail[0].Seq != first.Session.CompactedSeq+1 {
					t.Fatalf("%d summaries, through %d", len(first.Summaries), first.Session.CompactedSeq)
				}
				bottest.Want(t, "summarized turns", turns*2, int(first.Session.CompactedSeq))
				bottest.Want(t, "spent", w.State(bottest.Group).SpentToday-before, 200)
				broken = false
				w.Post(compactByRoot(w))
				bottest.After(10 * time.Minute)
				second := w.View()
				if second.Session.CompactedSeq <= first.Session.CompactedSeq {
					t.Errorf("the rest of the range is not summarized: through %d, then %d", first.Session.CompactedSeq, second.Session.CompactedSeq)
				}
			})
		})
	}
}

// compactByRoot is a manual compaction.
func compactByRoot(w *bottest.World) sessions.Message {
	return bottest.Said(fmt.Sprint("c", w.Store.Called("accept")), "root", "/压缩")
}
