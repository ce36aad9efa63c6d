package bot

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

	"ebb/bot/llm"
	"ebb/bot/wording"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// view is what the session's next request is made of.
func (w *world) view() sessions.View {
	w.t.Helper()
	l, err := w.store.mem.Acquire(w.t.Context(), group, w.bot.shared.Leases.Owner())
	if err != nil {
		w.t.Fatal(err)
	}
	v, err := w.store.Begin(w.t.Context(), l, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// attempts are the rows of the compaction log, the oldest first.
func attempts(t *testing.T, store sessions.Store) []sessions.LogEntry {
	t.Helper()
	rows, err := store.Compactions(t.Context(), group, 1000)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(rows)
	return rows
}

// Rights to compact by hand: administrators in a group, every person in a private chat.
func TestManualCompactionIsForAdmins(t *testing.T) {
	t.Parallel()
	admin := said("x", "root", "/压缩")
	byDingTalk := said("x", "boss", "/压缩 the dates")
	byDingTalk.Admin = true
	stranger := said("x", "guest", "/压缩")
	stranger.Admin, stranger.StaffID = true, ""
	for name, c := range map[string]struct {
		m       sessions.Message
		allowed bool
	}{
		"member":                 {said("x", "alice", "/压缩"), false},
		"configured":             {admin, true},
		"by DingTalk's word":     {byDingTalk, true},
		"from outside":           {stranger, false},
		"member, in Chinese":     {said("x", "alice", "/压缩"), false},
		"configured, Chinese":    {said("x", "root", " /压缩 日期 "), true},
		"configured, full width": {said("x", "root", "／压缩"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := start(t, setup{config: func(c *Config) { c.Admins = []sessions.UserID{"u-root"} }})
				w.fill(3000)
				w.post(c.m)
				synctest.Wait()
				last := w.wire.texts()[len(w.wire.sends())-1]
				if got := w.compactions() == 1; got != c.allowed {
					t.Errorf("compacted: %v; the answer is %q", got, last)
				}
				if refused := last == wording.Say(wording.NotAdmin, "zh"); refused == c.allowed {
					t.Errorf("the answer is %q", last)
				}
				if c.allowed && !strings.HasPrefix(last, "✅") {
					t.Errorf("the answer is %q", last)
				}
				for _, e := range attempts(t, w.store.mem) {
					want(t, "trigger and outcome", e.Trigger+" "+e.Outcome, "manual committed")
				}
			})
		})
	}
}

func TestManualCompactionReportsItsResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{}
		w := start(t, setup{model: m, config: func(c *Config) { c.Admins = []sessions.UserID{"u-root"} }})
		answer := func(id string) string {
			w.post(said(id, "root", "/压缩 keep the dates"))
			after(time.Minute)
			return w.wire.texts()[len(w.wire.sends())-1]
		}
		if got := answer("c1"); !strings.HasPrefix(got, "无需压缩") {
			t.Errorf("with nothing said: %q", got)
		}
		w.fill(3000)
		m.mu.Lock()
		m.summary = func(context.Context, llm.Request) (llm.Response, error) { return text(""), nil }
		m.mu.Unlock()
		if got := answer("c2"); got != wording.Say(wording.CompactFailed, "zh", "模型没有给出可用的摘要") || w.compactions() != 0 {
			t.Errorf("with a summariser that fails: %q", got)
		}
		m.mu.Lock()
		m.summary = func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Unreachable, Err: errors.New("dial tcp 10.0.0.1: connection refused")}
		}
		m.mu.Unlock()
		if got := answer("c2b"); !strings.Contains(got, "连不上模型服务") || strings.Contains(got, "10.0.0.1") {
			t.Errorf("with a model that can't be reached: %q", got)
		}
		rows := attempts(t, w.store.mem)
		want(t, "reason in the log", rows[len(rows)-1].Error, "model error: unreachable")
		m.mu.Lock()
		m.summary = nil
		m.mu.Unlock()
		if got := answer("c3"); !strings.HasPrefix(got, "✅") || w.compactions() != 1 {
			t.Errorf("after all: %q", got)
		}
		receipt := w.wire.texts()[len(w.wire.sends())-1]
		if !strings.Contains(receipt, "\n- 重点：keep the dates\n") || strings.Contains(receipt, "bytes left out") || strings.Contains(receipt, "存下 1,") {
			t.Errorf("the receipt reads %q", receipt)
		}
		asked := w.model.requests("summary")
		if !strings.Contains(lastWords(asked[len(asked)-1]), "keep the dates") {
			t.Error("the focus is not in the summary request")
		}
		v := w.view()
		want(t, "summaries in the view", len(v.Summaries), 1)
		if len(v.Tail) == 0 || v.Tail[0].Seq != v.Summaries[0].EndSeq+1 {
			t.Errorf("the tail begins at %d after a summary to %d", v.Tail[0].Seq, v.Summaries[0].EndSeq)
		}
	})
}

// Turns that commit while a summary is made stay raw, in full, and are in the count of the context afterwards.
func TestTurnsDuringACompaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var held sync.Once
		m := &script{summary: func(ctx context.Context, _ llm.Request) (r llm.Response, err error) {
			held.Do(func() { err = g.pass(ctx) })
			return text(goodSummary), err
		}}
		w := start(t, setup{model: m})
		w.fill(3500)
		w.post(said("trigger", "alice", prose(1, 600)))
		<-g.in
		synctest.Wait()
		before := w.state(group).LastSeq
		for i := range 5 {
			w.say(fmt.Sprint("during", i), "bob", fmt.Sprintf("during %d", i))
		}
		g.out <- struct{}{}
		synctest.Wait()
		want(t, "compactions", w.compactions(), 1)
		v := w.view()
		raw := 0
		for _, e := range v.Tail {
			if e.Seq > before {
				raw++
			}
		}
		want(t, "raw events since the plan", raw, 10)
		near(t, "tokens of the context", w.state(group).TotalTokens, w.bot.views.Size(v, 1))
		w.say("next", "alice", "go on")
		near(t, "tokens one turn later", w.state(group).TotalTokens, w.bot.views.Size(w.view(), 1))
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
		w := start(t, setup{model: &script{flush: func(context.Context, llm.Request) (llm.Response, error) {
			cycle++
			return saveCall(fmt.Sprintf("In cycle %d %s", cycle, prose(cycle, 50))), nil
		}}})
		for n := 1; n <= 6; n++ {
			w.talk(n)
			v := w.view()
			next := int64(1)
			for _, s := range v.Summaries {
				want(t, "begin of a summary", s.StartSeq, next)
				next = s.EndSeq + 1
			}
			for _, e := range v.Tail {
				want(t, "raw event", e.Seq, next)
				next++
			}
			want(t, "end of the view", next, v.Session.LastSeq+1)
			near(t, "tokens of the context", v.Session.TotalTokens, w.bot.views.Size(v, 1))
			if v.Session.TotalTokens >= small.Trigger() {
				t.Errorf("%d tokens after a compaction", v.Session.TotalTokens)
			}
		}
		seqs := []int64{}
		for _, e := range w.store.log(t.Context(), group) {
			seqs = append(seqs, e.Seq)
		}
		want(t, "log sorted and complete", len(seqs), int(slices.Max(seqs)))
	})
}

// A compaction whose range changed commits nothing: one summary covers the range, not two, and it is no failure.
func TestCompactionConflict(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var held sync.Once
		w := start(t, setup{model: &script{summary: func(ctx context.Context, _ llm.Request) (r llm.Response, err error) {
			held.Do(func() { err = g.pass(ctx) })
			return text(goodSummary), err
		}}})
		w.fill(3500)
		w.post(said("trigger", "alice", prose(1, 600)))
		<-g.in
		v := w.view()
		l := v.Session.Lease
		if _, err := w.store.mem.Compact(t.Context(), l, sessions.Compaction{
			Through: 4, Summaries: []sessions.NewSummary{{StartSeq: 1, EndSeq: 4, Text: "the other one", Tokens: 3}}, Freed: 100,
		}); err != nil {
			t.Fatal(err)
		}
		g.out <- struct{}{}
		synctest.Wait()
		v = w.view()
		want(t, "summaries", len(v.Summaries), 1)
		want(t, "summary", v.Summaries[0].Text, "the other one")
		want(t, "first raw event", v.Tail[0].Seq, 5)
		want(t, "failures in a row", v.Session.CompactFailures, 0)
		log := attempts(t, w.store.mem)
		if e := log[len(log)-1]; e.Outcome != "failed" || e.TokensAfter != e.TokensBefore {
			t.Errorf("log row %+v", e)
		}
	})
}

// P46: a manual compaction while an automatic one runs waits for it; no range is summarized twice.
func TestManualWaitsForAutomatic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var held sync.Once
		w := start(t, setup{
			config: func(c *Config) { c.Admins = []sessions.UserID{"u-root"} },
			model: &script{summary: func(ctx context.Context, _ llm.Request) (r llm.Response, err error) {
				held.Do(func() { err = g.pass(ctx) })
				return text(goodSummary), err
			}},
		})
		w.fill(3500)
		w.post(said("trigger", "alice", prose(1, 600)))
		<-g.in
		w.post(said("manual", "root", "/压缩"))
		synctest.Wait()
		want(t, "summaries asked for", len(w.model.requests("summary")), 1)
		g.out <- struct{}{}
		after(time.Minute)
		covered := map[int64]bool{}
		for _, e := range attempts(t, w.store.mem) {
			if e.Outcome == "committed" {
				if covered[e.EndSeq] {
					t.Errorf("events up to %d were summarized twice", e.EndSeq)
				}
				covered[e.EndSeq] = true
			}
		}
		last := w.wire.texts()[len(w.wire.sends())-1]
		if !strings.HasPrefix(last, "✅") && !strings.HasPrefix(last, "无需压缩") {
			t.Errorf("the admin's answer is %q", last)
		}
	})
}

// A summary that fails is asked for as often as configured, each time with one request, and given up with an error in the log.
func TestRequestsForASummaryAreCountedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{summary: func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Busy, Model: "main", Err: errors.New("overloaded")}
		}}
		w := start(t, setup{model: m, config: func(c *Config) {
			c.Admins, c.SummaryRetries, c.SummaryBackoff = []sessions.UserID{"u-root"}, 4, 2*time.Second
		}})
		w.fill(3000)
		began := time.Now()
		w.post(said("c1", "root", "/压缩"))
		after(time.Minute)
		asked := w.model.requests("summary")
		want(t, "requests", len(asked), 4)
		for i, r := range asked {
			want(t, fmt.Sprintf("requests allowed to call %d, and its kind", i+1), fmt.Sprint(r.Requests, r.Kind), "1summary")
		}
		lines := w.log.lines(t, "Summary given up")
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
				m := &script{summary: func(ctx context.Context, r llm.Request) (llm.Response, error) {
					asked := lastWords(r)
					switch {
					case len(asked) > 9000:
						return llm.Response{}, &llm.CallError{Class: llm.Overflow, Err: errors.New("too long")}
					case broken && paid == 2:
						return ends.failure(ctx)
					}
					paid, turns = paid+1, turns+strings.Count(asked, `"who":"alice`)
					a := text(goodSummary)
					a.Usage = sessions.Usage{Prompt: 100}
					return a, nil
				}}
				w := start(t, setup{model: m, config: func(c *Config) {
					c.Admins, c.SummaryRetries, c.Compaction.Window.Threshold = []sessions.UserID{"u-root"}, 1, 10000
				}})
				w.fill(8000)
				before := w.state(group).SpentToday
				w.post(compactByRoot(w))
				after(10 * time.Minute)
				if ends.deadline { // staged by the attempt that was cut off
					w.post(compactByRoot(w))
					after(time.Minute)
				}
				first := w.view()
				want(t, "paid chunks", paid, 2)
				if len(first.Summaries) != 1 || first.Session.CompactedSeq == 0 || first.Tail[0].Seq != first.Session.CompactedSeq+1 {
					t.Fatalf("%d summaries, through %d", len(first.Summaries), first.Session.CompactedSeq)
				}
				want(t, "summarized turns", turns*2, int(first.Session.CompactedSeq))
				want(t, "spent", w.state(group).SpentToday-before, 200)
				broken = false
				w.post(compactByRoot(w))
				after(10 * time.Minute)
				second := w.view()
				if second.Session.CompactedSeq <= first.Session.CompactedSeq {
					t.Errorf("the rest of the range is not summarized: through %d, then %d", first.Session.CompactedSeq, second.Session.CompactedSeq)
				}
			})
		})
	}
}

// compactByRoot is a manual compaction.
func compactByRoot(w *world) sessions.Message {
	return said(fmt.Sprint("c", w.store.called("accept")), "root", "/压缩")
}
