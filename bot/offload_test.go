package bot

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/upkeep"
	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/sessions"
)

// lookup is a result of about a number of words, another one for every number.
func lookup(n, words int) string { return fmt.Sprintf("result %d: %s", n, prose(n, words)) }

// looks has the model call a tool a number of times, one after the other, and then answer.
func looks(times int) func(context.Context, llm.Request) (llm.Response, error) {
	return func(_ context.Context, r llm.Request) (llm.Response, error) {
		done := strings.Count(written(r.Messages), "== tool")
		if done < times && strings.Contains(written(r.Messages), "look it up") {
			return calls(call(fmt.Sprint("c", done), "look", fmt.Sprintf(`{"n":%d}`, done))), nil
		}
		return text("answered"), nil
	}
}

// offloadingWorld has a tool with large results, and memory_get.
func offloadingWorld(t *testing.T, policy string, m *script, words int) *world {
	t.Helper()
	return start(t, setup{model: m, config: func(c *Config) {
		c.Compaction = smallOf(policy)
		c.Compaction.Policy.OffloadOver = 600
		n := -1
		c.Tools = []chat.Tool{
			handTool{name: "look", reads: true, f: func(context.Context, chat.ToolInput) (string, error) { n++; return lookup(n, words), nil }},
			handTool{name: sessions.GetTool, reads: true},
		}
	}})
}

// Large results leave the running turn at each step of its loop, once the context has passed 0.7 T. The next request
// names the path of each, and the log has it whole.
func TestOffloadingInsideATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := offloadingWorld(t, "offload", &script{chat: looks(4)}, 2500)
		w.say("q", "alice", "look it up")
		asked := w.model.requests("chat")
		if len(asked) != 5 {
			t.Fatalf("%d requests", len(asked))
		}
		for i, r := range asked[2:] {
			if n := requestTokens(w.bot, r.Messages); n >= small.Trigger() {
				t.Errorf("request %d has %d tokens, T is %d", i+2, n, small.Trigger())
			}
		}
		last := written(asked[4].Messages)
		for n := range 4 {
			whole := lookup(n, 2500)
			if path := sessions.BlobPath(sessions.BlobOf(whole)); !strings.Contains(last, path) || strings.Contains(last, whole) {
				t.Errorf("the last request does not name %s", path)
			}
			if !logged(w, whole) {
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
		w := offloadingWorld(t, "token_budget", &script{chat: looks(7)}, 2500)
		w.say("q", "alice", "look it up")
		asked := w.model.requests("chat")
		last := written(asked[len(asked)-1].Messages)
		if path := sessions.BlobPath(sessions.BlobOf(lookup(0, 2500))); !strings.Contains(last, path) {
			t.Errorf("the last request does not name %s", path)
		}
		if n := requestTokens(w.bot, asked[len(asked)-1].Messages); n >= small.Usable() {
			t.Errorf("the last request has %d tokens", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("page of a stored result ", 2000)
		w := start(t, setup{model: &script{chat: func(_ context.Context, r llm.Request) (llm.Response, error) {
			if done := strings.Count(written(r.Messages), "== tool"); done < 6 {
				return calls(call(fmt.Sprint("c", done), sessions.GetTool, fmt.Sprintf(`{"page":%d}`, done))), nil
			}
			return text("answered"), nil
		}}, config: func(c *Config) {
			c.Tools = []chat.Tool{handTool{name: sessions.GetTool, reads: true, f: func(context.Context, chat.ToolInput) (string, error) { return long, nil }}}
		}})
		w.say("q", "alice", "look it up")
		asked := w.model.requests("chat")
		cut := tokens.HeadTail(long, squeezed)
		if last := written(asked[len(asked)-1].Messages); !strings.Contains(last, cut) {
			t.Errorf("a page is not cut to %q:\n%s", cut, last)
		}
	})
}

// rowOf is a line of a large result.
func rowOf(n, i int) string {
	return fmt.Sprintf("row %d of result %d: the gateway answered after %d ms", i, n, i*7)
}

// slowSummaries is a world with three large results, whose summaries take a time for each chunk.
func slowSummaries(t *testing.T, each time.Duration) *world {
	t.Helper()
	return start(t, setup{model: &script{chat: looks(3), summary: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		select {
		case <-time.After(each):
		case <-ctx.Done():
			return llm.Response{}, ctx.Err()
		}
		return llm.Response{Text: goodSummary, Finish: llm.FinishStop, Model: "fake"}, nil
	}}, config: func(c *Config) {
		c.Compaction, c.Language = smallOf("offload"), "en"
		n := -1
		c.Tools = []chat.Tool{handTool{name: sessions.GetTool, reads: true}, handTool{name: "look", reads: true, f: func(context.Context, chat.ToolInput) (string, error) {
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
		w.say("q", "alice", "look it up")
		for i := range 12 {
			w.say(fmt.Sprint("m", i), "alice", prose(i, 300))
		}
		synctest.Wait()
		time.Sleep(time.Hour)
		var read strings.Builder
		asked := w.model.requests("summary")
		for _, r := range asked {
			read.WriteString(written(r.Messages))
			if n := requestTokens(w.bot, r.Messages); n > small.Context {
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
		made := attempts(t, w.store.mem)
		for _, one := range made { // one is interrupted, since an answer waits
			if one.Trigger == compaction.TriggerOverflow || one.Outcome != upkeep.OutcomeCommitted && one.Duration > 20*time.Second {
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
		w.say("q", "alice", "look it up")
		for i := range 12 {
			w.say(fmt.Sprint("m", i), "alice", prose(i, 300))
		}
		after(w.bot.cfg.CompactDeadline + time.Minute) // it begins after 40 s, in which answers waited
		before := len(attempts(t, w.store.mem))
		w.stop()
		made := attempts(t, w.store.mem)
		if len(made) != before+1 || made[before].Outcome != upkeep.OutcomeFailed || made[before].Duration < w.bot.cfg.CompactDeadline {
			t.Fatalf("attempts are %+v, want one more that the stop ended", made)
		}
		want(t, "failures in a row", w.state(group).CompactFailures, 0)
	})
}

// The question that waits counts where it is decided whether moving results out was enough: a summary is made before it is
// answered.
func TestWaitingQuestionCountsAfterOffloading(t *testing.T) {
	t.Parallel()
	for words, summaries := range map[int]int{100: 0, 2800: 1} {
		synctest.Test(t, func(t *testing.T) {
			w := offloadingWorld(t, "offload", &script{chat: looks(1)}, 700)
			for i := range 8 {
				w.say(fmt.Sprint("m", i), "alice", prose(i, 130))
			}
			w.say("q", "alice", "look it up")
			n := len(w.model.requests("chat"))
			w.say("large", "alice", prose(3, words))
			made := 0
			for _, e := range attempts(t, w.store.mem) {
				if e.Outcome == upkeep.OutcomeCommitted && e.EndSeq >= e.StartSeq {
					made++
				}
			}
			if made != summaries {
				t.Errorf("with a question of %d words %d summaries were made: %+v", words, made, attempts(t, w.store.mem))
			}
			for _, r := range w.model.requests("chat")[n:] {
				if size := requestTokens(w.bot, r.Messages); size >= small.Trigger() {
					t.Errorf("a request of %d tokens went out, T is %d", size, small.Trigger())
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
		w := start(t, setup{model: &script{}, config: func(c *Config) {
			c.Admins = []sessions.UserID{"u-root"}
			c.Compaction.Window.Threshold, c.Compaction.Window.Summary = 11500, 1200
		}})
		answer := func(id, words string) string {
			t.Helper()
			n := len(w.wire.texts())
			w.say(id, "root", words)
			return strings.Join(w.wire.texts()[n:], "\n")
		}
		first := []int64{0, 0}
		for cycle := range 2 {
			for i := range 20 {
				w.say(fmt.Sprintf("m%d-%d", cycle, i), "alice", fmt.Sprintf("order OPS-%d%03d is %s", cycle+1, i, prose(i, 240)))
			}
			got := answer(fmt.Sprint("compact", cycle), "/压缩")
			rows := attempts(t, w.store.mem)
			row, last := rows[len(rows)-1], int64(0)
			if len(rows) > 1 {
				last = rows[len(rows)-2].EndSeq
			}
			if !strings.HasPrefix(got, "⚠️") || !strings.Contains(got, "的编号、日期和名称，请核对") {
				t.Errorf("of a summary that kept nothing: %q", got)
			}
			if added := strings.Count(w.view().Summaries[0].Text, "\n- "); added <= 8 || !strings.Contains(got, fmt.Sprintf("漏掉的 %d 个", added)) {
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
		if got := answer("undo", "/压缩撤销"); !strings.Contains(got, fmt.Sprintf("消息 %d–%d 恢复原文", first[0], first[1])) || w.view().Tail[0].Seq != first[0] {
			t.Errorf("the view begins at %d: %q", w.view().Tail[0].Seq, got)
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
