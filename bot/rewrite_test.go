package bot

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"ebb/bot/llm"
	"ebb/bot/upkeep"
	"ebb/compaction"
	"ebb/sessions"
)

// topic is a word that one message alone has.
var topic = regexp.MustCompile(`topic[a-z]{3}q`)

func topicOf(i int) string { return fmt.Sprintf("topic%c%c%cq", 'a'+i%26, 'a'+i/26%26, 'a'+i/676) }

// topicLines is a model that writes a line for each topic that it is given.
func topicLines(_ context.Context, r llm.Request) (llm.Response, error) {
	found := slices.Compact(slices.Sorted(slices.Values(topic.FindAllString(r.Messages[len(r.Messages)-1].Content, -1))))
	return text(goodSummary + "\n- they talked about " + strings.Join(found, "\n- they talked about ")), nil
}

// erasing talks about topics until the view was compacted some times, and erases the first message with its answer.
func erasing(t *testing.T, policy string, m *script, config func(*Config)) (w *world, before sessions.View, done sessions.Erased) {
	t.Helper()
	w = start(t, setup{model: m, config: func(c *Config) {
		c.Compaction.Policy = compaction.Policies[policy]
		config(c)
	}})
	for i := 0; w.compactions() < 6; i++ {
		if i > 200 {
			t.Fatalf("%d compactions after %d turns", w.compactions(), i)
		}
		words := prose(i, 100)
		if i%5 == 0 {
			words = topicOf(i) + " " + words
		}
		w.post(said(fmt.Sprintf("t%d", i), "alice", words))
		synctest.Wait()
	}
	before = w.view()
	done, err := w.store.mem.Erase(t.Context(), group, []int64{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	return w, before, done
}

// Forgetting one message of a long conversation takes its lines from the summaries, and leaves all the rest.
func TestErasedMessageLeavesTheSummaries(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"token_budget", "balanced"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &script{summary: topicLines, flush: func(context.Context, llm.Request) (llm.Response, error) { return text("nothing to save"), nil }}
				w, before, done := erasing(t, policy, m, func(*Config) {})
				if done.Healed == 0 || done.Summaries != 0 {
					t.Errorf("the erasure gave %+v, want healed summaries alone", done)
				}
				asked := len(m.requests("summary"))
				w.post(said("after", "alice", "hello again"))
				synctest.Wait()
				now := w.view()
				want(t, "cursor", now.Session.CompactedSeq, before.Session.CompactedSeq)
				want(t, "summaries in the view", len(now.Summaries), len(before.Summaries))
				want(t, "summaries asked for since", len(m.requests("summary")), asked)
				if now.Session.TotalTokens > before.Session.TotalTokens+60 || now.Session.TotalTokens < before.Session.TotalTokens*3/4 {
					t.Errorf("the context has %d tokens, before it had %d", now.Session.TotalTokens, before.Session.TotalTokens)
				}
				was, is := joinedTexts(before), joinedTexts(now)
				for _, word := range topic.FindAllString(was, -1) {
					if kept := strings.Contains(is, word); kept == (word == topicOf(0)) {
						t.Errorf("of %s the summaries say: %v", word, kept)
					}
				}
			})
		})
	}
}

func joinedTexts(v sessions.View) string {
	var all strings.Builder
	for _, s := range v.Summaries {
		all.WriteString(s.Text + "\n")
	}
	return all.String()
}

// A summary that repeats a message in most of its lines is emptied, and its range is summarized again after the next
// turn. The other summaries stay, and where the model fails it is tried again later.
func TestEmptiedSummaryIsRewritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &script{flush: func(context.Context, llm.Request) (llm.Response, error) { return text("nothing to save"), nil }}
		m.summary = func(ctx context.Context, r llm.Request) (llm.Response, error) { // one line for all
			a, err := topicLines(ctx, r)
			a.Text = "- " + strings.ReplaceAll(a.Text, "\n", " ")
			return a, err
		}
		w, before, done := erasing(t, "balanced", m, func(*Config) {})
		if done.Summaries != 1 || done.Healed != 0 {
			t.Fatalf("the erasure gave %+v, want one emptied summary", done)
		}
		m.summary = func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Malformed}
		}
		w.post(said("after", "alice", "hello"))
		synctest.Wait()
		if !w.view().Summaries[0].Emptied() {
			t.Fatalf("after a failure the view is %+v", w.view().Summaries)
		}
		m.summary = topicLines
		after(w.view().Session.CompactRetryAt.Sub(w.bot.shared.Now()))
		w.post(said("later", "alice", "hello again"))
		synctest.Wait()
		v := w.view()
		want(t, "summaries in the view", len(v.Summaries), len(before.Summaries))
		want(t, "cursor", v.Session.CompactedSeq, before.Session.CompactedSeq)
		if s := v.Summaries[0].Text; strings.Contains(s, topicOf(0)) || !strings.Contains(s, topicOf(5)) {
			t.Errorf("the summary was rewritten as\n%s", s)
		}
		rows := attempts(t, w.store.mem)
		last := rows[len(rows)-1]
		if last.Trigger != upkeep.TriggerRewrite || last.Outcome != upkeep.OutcomeCommitted || last.StartSeq != v.Summaries[0].StartSeq || last.EndSeq != v.Summaries[0].EndSeq {
			t.Errorf("the log ends with %+v", last)
		}
		near(t, "tokens of the context", v.Session.TotalTokens, w.bot.views.Size(v, v.Session.CalibrationFactor))
	})
}
