package upkeep_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/chat"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// lookup is a result of about a number of words, another one for every number.
func lookup(n, words int) string { return fmt.Sprintf("result %d: %s", n, bottest.Prose(n, words)) }

// looks has the model call a tool a number of times, one after the other, and then answer.
func looks(times int) func(context.Context, llm.Request) (llm.Response, error) {
	return func(_ context.Context, r llm.Request) (llm.Response, error) {
		done := strings.Count(bottest.Transcript(r.Messages), "== tool")
		if done < times && strings.Contains(bottest.Transcript(r.Messages), "look it up") {
			return bottest.Calls(bottest.Call(fmt.Sprint("c", done), "look", fmt.Sprintf(`{"n":%d}`, done))), nil
		}
		return bottest.Text("answered"), nil
	}
}

// offloadingWorld has a tool with large results, and memory_get.
func offloadingWorld(t *testing.T, policy string, m *bottest.Script, words int) *bottest.World {
	t.Helper()
	return bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) {
		c.Compaction = bottest.SmallOf(policy)
		c.Compaction.Policy.OffloadOver = 600
		n := -1
		c.Tools = []chat.Tool{
			bottest.HandTool{Name: "look", Reads: true, F: func(context.Context, chat.ToolInput) (string, error) { n++; return lookup(n, words), nil }},
			bottest.HandTool{Name: sessions.GetTool, Reads: true},
		}
	}})
}

// Large results leave the running turn at each step of its loop, once the context has passed 0.7 T. The next request
// names the path of each, and the log has it whole.
func TestOffloadingInsideATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := offloadingWorld(t, "offload", &bottest.Script{Chat: looks(4)}, 2500)
		w.Say("q", "alice", "look it up")
		asked := w.Model.Requests("chat")
		if len(asked) != 5 {
			t.Fatalf("%d requests", len(asked))
		}
		for i, r := range asked[2:] {
			if n := bottest.RequestTokens(w.Views, r.Messages); n >= bottest.Small.Trigger() {
				t.Errorf("request %d has %d tokens, T is %d", i+2, n, bottest.Small.Trigger())
			}
		}
		last := bottest.Transcript(asked[4].Messages)
		for n := range 4 {
			whole := lookup(n, 2500)
			if path := sessions.BlobPath(sessions.BlobOf(whole)); !strings.Contains(last, path) || strings.Contains(last, whole) {
				t.Errorf("the last request does not name %s", path)
			}
			if !bottest.Logged(w, whole) {
				t.Errorf("the log does not have result %d whole", n)
			}
		}
	})
}

// When a turn fills the window, its results are moved out with a path, under any policy. A result that reads others
// back is cut once, and its notice counts all that is left out.
func TestFullWindowNamesPaths(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := offloadingWorld(t, "token_budget", &bottest.Script{Chat: looks(7)}, 2500)
		w.Say("q", "alice", "look it up")
		asked := w.Model.Requests("chat")
		last := bottest.Transcript(asked[len(asked)-1].Messages)
		if path := sessions.BlobPath(sessions.BlobOf(lookup(0, 2500))); !strings.Contains(last, path) {
			t.Errorf("the last request does not name %s", path)
		}
		if n := bottest.RequestTokens(w.Views, asked[len(asked)-1].Messages); n >= bottest.Small.Usable() {
			t.Errorf("the last request has %d tokens", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("page of a stored result ", 2000)
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			if done := strings.Count(bottest.Transcript(r.Messages), "== tool"); done < 6 {
				return bottest.Calls(bottest.Call(fmt.Sprint("c", done), sessions.GetTool, fmt.Sprintf(`{"page":%d}`, done))), nil
			}
			return bottest.Text("answered"), nil
		}}, Config: func(c *bot.Config) {
			c.Tools = []chat.Tool{bottest.HandTool{Name: sessions.GetTool, Reads: true, F: func(context.Context, chat.ToolInput) (string, error) { return long, nil }}}
		}})
		w.Say("q", "alice", "look it up")
		asked := w.Model.Requests("chat")
		cut := tokens.HeadTail(long, bottest.Squeezed)
		if last := bottest.Transcript(asked[len(asked)-1].Messages); !strings.Contains(last, cut) {
			t.Errorf("a page is not cut to %q:\n%s", cut, last)
		}
	})
}

// rowOf is a line of a large result.
func rowOf(n, i int) string {
	return fmt.Sprintf("row %d of result %d: the gateway answered after %d ms", i, n, i*7)
}

// slowSummaries is a world with three large results, whose summaries take a time for each chunk.
func slowSummaries(t *testing.T, each time.Duration) *bottest.World {
	t.Helper()
	return bottest.Start(t, bottest.Setup{Model: &bottest.Script{Chat: looks(3), Summary: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		select {
		case <-time.After(each):
		case <-ctx.Done():
			return llm.Response{}, ctx.Err()
		}
		return llm.Response{Text: bottest.GoodSummary, Finish: llm.FinishStop, Model: "fake"}, nil
	}}, Config: func(c *bot.Config) {
		c.Compaction, c.Language = bottest.SmallOf("offload"), "en"
		n := -1
		c.Tools = []chat.Tool{bottest.HandTool{Name: sessions.GetTool, Reads: true}, bottest.HandTool{Name: "look", Reads: true, F: func(context.Context, chat.ToolInput) (string, error) {
			var b strings.Builder
			n++
			for i := range 900 {
				b.WriteString(rowOf(n, i) + "\n")
			}
			return b.String(), nil
		}}}
	}})
}

// An offloaded result is summarized whole, in requests that fit the window. The compaction has time for all of them: they
// take longer than an attempt may by itself.
func TestOffloadedResultsAreSummarizedWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := slowSummaries(t, 20*time.Second)
		w.Say("q", "alice", "look it up")
		for i := range 12 {
			w.Say(fmt.Sprint("m", i), "alice", bottest.Prose(i, 300))
		}
		synctest.Wait()
		time.Sleep(time.Hour)
		var read strings.Builder
		asked := w.Model.Requests("summary")
		for _, r := range asked {
			read.WriteString(bottest.Transcript(r.Messages))
			if n := bottest.RequestTokens(w.Views, r.Messages); n > bottest.Small.Context {
				t.Errorf("a request has %d tokens", n)
			}
		}
		if len(asked) < 6 {
			t.Errorf("%d requests", len(asked))
		}
		for n := range 3 {
			for i := range 900 {
				if !strings.Contains(read.String(), rowOf(n, i)) {
					t.Fatalf("no request has %q", rowOf(n, i))
				}
			}
		}
		made := bottest.Attempts(t, w.Store.Mem.Compactions)
		for _, one := range made { // one is interrupted, since an answer waits
			if one.Trigger == compaction.TriggerOverflow || one.Outcome != sessions.CompactionCommitted && one.Duration > 20*time.Second {
				t.Errorf("an attempt was %+v", one)
			}
		}
		if last := made[len(made)-1]; !strings.Contains(last.Audit, `"offloads_deleted":3`) {
			t.Errorf("the last attempt deleted %s", last.Audit)
		}
	})
}

// A stop in the time that large results add to a compaction is no failure of the compaction.
func TestStopOfALongCompactionIsNoFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := slowSummaries(t, 50*time.Second)
		w.Say("q", "alice", "look it up")
		for i := range 12 {
			w.Say(fmt.Sprint("m", i), "alice", bottest.Prose(i, 300))
		}
		bottest.After(bottest.CompactDeadline + time.Minute) // it begins after 40 s, in which answers waited
		before := len(bottest.Attempts(t, w.Store.Mem.Compactions))
		w.Stop()
		made := bottest.Attempts(t, w.Store.Mem.Compactions)
		if len(made) != before+1 || made[before].Outcome != sessions.CompactionFailed || made[before].Duration < bottest.CompactDeadline {
			t.Fatalf("attempts are %+v, want one more that the stop ended", made)
		}
		bottest.Want(t, "failures in a row", w.State(bottest.Group).CompactFailures, 0)
	})
}

// The question that waits counts where it is decided whether moving results out was enough: a summary is made before it is
// answered.
func TestWaitingQuestionCountsAfterOffloading(t *testing.T) {
	t.Parallel()
	for words, summaries := range map[int]int{100: 0, 2800: 1} {
		synctest.Test(t, func(t *testing.T) {
			w := offloadingWorld(t, "offload", &bottest.Script{Chat: looks(1)}, 700)
			for i := range 8 {
				w.Say(fmt.Sprint("m", i), "alice", bottest.Prose(i, 130))
			}
			w.Say("q", "alice", "look it up")
			n := len(w.Model.Requests("chat"))
			w.Say("large", "alice", bottest.Prose(3, words))
			made := 0
			for _, e := range bottest.Attempts(t, w.Store.Mem.Compactions) {
				if e.Outcome == sessions.CompactionCommitted && e.EndSeq >= e.StartSeq {
					made++
				}
			}
			if made != summaries {
				t.Errorf("with a question of %d words %d summaries were made: %+v", words, made, bottest.Attempts(t, w.Store.Mem.Compactions))
			}
			for _, r := range w.Model.Requests("chat")[n:] {
				if size := bottest.RequestTokens(w.Views, r.Messages); size >= bottest.Small.Trigger() {
					t.Errorf("a request of %d tokens went out, T is %d", size, bottest.Small.Trigger())
				}
			}
		})
	}
}

// The receipt of a compaction has the true number of identifiers that were put back, and warns when the model's summary
// kept few of them. Receipt, log and undo name the same events.
func TestReceiptLogAndUndoAgree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := bottest.Start(t, bottest.Setup{Model: &bottest.Script{}, Config: func(c *bot.Config) {
			c.Admins = []sessions.UserID{"u-root"}
			c.Compaction.Window.Threshold, c.Compaction.Window.Summary = 11500, 1200
		}})
		answer := func(id, words string) string {
			t.Helper()
			n := len(w.Wire.Texts())
			w.Say(id, "root", words)
			return strings.Join(w.Wire.Texts()[n:], "\n")
		}
		first := []int64{0, 0}
		for cycle := range 2 {
			for i := range 20 {
				w.Say(fmt.Sprintf("m%d-%d", cycle, i), "alice", fmt.Sprintf("order OPS-%d%03d is %s", cycle+1, i, bottest.Prose(i, 240)))
			}
			got := answer(fmt.Sprint("compact", cycle), "/压缩")
			rows := bottest.Attempts(t, w.Store.Mem.Compactions)
			row, last := rows[len(rows)-1], int64(0)
			if len(rows) > 1 {
				last = rows[len(rows)-2].EndSeq
			}
			if !strings.HasPrefix(got, "⚠️") || !strings.Contains(got, "的编号、日期和名称，请核对") {
				t.Errorf("of a summary that kept nothing: %q", got)
			}
			if added := strings.Count(w.View().Summaries[0].Text, "\n- "); added <= 8 || !strings.Contains(got, fmt.Sprintf("漏掉的 %d 个", added)) {
				t.Errorf("%d identifiers were put back: %q", added, got)
			}
			if row.StartSeq != last+1 || !strings.Contains(got, fmt.Sprintf("较早的 %d 条消息", row.EndSeq-row.StartSeq+1)) {
				t.Errorf("the log says %d–%d: %q", row.StartSeq, row.EndSeq, got)
			}
			if !strings.Contains(row.Audit, `"preserved_count":`) {
				t.Errorf("the audit is %s", row.Audit)
			}
			first = []int64{row.StartSeq, row.EndSeq}
		}
		if got := answer("undo", "/压缩撤销"); !strings.Contains(got, fmt.Sprintf("消息 %d–%d 恢复原文", first[0], first[1])) || w.View().Tail[0].Seq != first[0] {
			t.Errorf("the view begins at %d: %q", w.View().Tail[0].Seq, got)
		}
		before := answer("status", "/状态")
		if after := answer("status again", "/状态"); !strings.Contains(before, "未整理消息") || lineOf(before, "未整理消息") != lineOf(after, "未整理消息") {
			t.Errorf("a command counts as a message that is not flushed: %q, %q", lineOf(before, "未整理消息"), lineOf(after, "未整理消息"))
		}
	})
}

// lineOf is the line of a text that has some words.
func lineOf(text, words string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, words) {
			return line
		}
	}
	return ""
}
