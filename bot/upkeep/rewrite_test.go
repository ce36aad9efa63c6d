package upkeep_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/upkeep"
	"ebb/compaction"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// topic is a word that one message alone has.
var topic = regexp.MustCompile(`topic[a-z]{3}q`)

func topicOf(i int) string { return fmt.Sprintf("topic%c%c%cq", 'a'+i%26, 'a'+i/26%26, 'a'+i/676) }

// topicLines is a model that writes a line for each topic that it is given.
func topicLines(_ context.Context, r llm.Request) (llm.Response, error) {
	found := slices.Compact(slices.Sorted(slices.Values(topic.FindAllString(r.Messages[len(r.Messages)-1].Content, -1))))
	return bottest.Text(bottest.GoodSummary + "\n- they talked about " + strings.Join(found, "\n- they talked about ")), nil
}

// erasing talks about topics until the view was compacted some times, and erases the first message with its answer.
func erasing(t *testing.T, policy string, m *bottest.Script, config func(*bot.Config)) (w *bottest.World, before sessions.View, done sessions.Erased) {
	t.Helper()
	w = bottest.Start(t, bottest.Setup{Model: m, Config: func(c *bot.Config) {
		c.Compaction.Policy = compaction.Policies[policy]
		config(c)
	}})
	for i := 0; w.Compactions() < 6; i++ {
		if i > 200 {
			t.Fatalf("%d compactions after %d turns", w.Compactions(), i)
		}
		words := bottest.Prose(i, 100)
		if i%5 == 0 {
			words = topicOf(i) + " " + words
		}
		w.Post(bottest.Said(fmt.Sprintf("t%d", i), "alice", words))
		synctest.Wait()
	}
	before = w.View()
	done, err := w.Store.Mem.Erasure.Erase(t.Context(), bottest.Group, []int64{1, 2})
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
				m := &bottest.Script{Summary: topicLines, Flush: func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text("nothing to save"), nil }}
				w, before, done := erasing(t, policy, m, func(*bot.Config) {})
				if done.Healed == 0 || done.Summaries != 0 {
					t.Errorf("the erasure gave %+v, want healed summaries alone", done)
				}
				asked := len(m.Requests("summary"))
				w.Post(bottest.Said("after", "alice", "hello again"))
				synctest.Wait()
				now := w.View()
				bottest.Want(t, "cursor", now.Session.CompactedSeq, before.Session.CompactedSeq)
				bottest.Want(t, "summaries in the view", len(now.Summaries), len(before.Summaries))
				bottest.Want(t, "summaries asked for since", len(m.Requests("summary")), asked)
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
		m := &bottest.Script{Flush: func(context.Context, llm.Request) (llm.Response, error) { return bottest.Text("nothing to save"), nil }}
		m.Summary = func(ctx context.Context, r llm.Request) (llm.Response, error) { // one line for all
			a, err := topicLines(ctx, r)
			a.Text = "- " + strings.ReplaceAll(a.Text, "\n", " ")
			return a, err
		}
		w, before, done := erasing(t, "balanced", m, func(*bot.Config) {})
		if done.Summaries != 1 || done.Healed != 0 {
			t.Fatalf("the erasure gave %+v, want one emptied summary", done)
		}
		m.Summary = func(context.Context, llm.Request) (llm.Response, error) {
			return llm.Response{}, &llm.CallError{Class: llm.Malformed}
		}
		w.Post(bottest.Said("after", "alice", "hello"))
		synctest.Wait()
		if !w.View().Summaries[0].Emptied() {
			t.Fatalf("after a failure the view is %+v", w.View().Summaries)
		}
		m.Summary = topicLines
		bottest.After(w.View().Session.CompactRetryAt.Sub(time.Now()))
		w.Post(bottest.Said("later", "alice", "hello again"))
		synctest.Wait()
		v := w.View()
		bottest.Want(t, "summaries in the view", len(v.Summaries), len(before.Summaries))
		bottest.Want(t, "cursor", v.Session.CompactedSeq, before.Session.CompactedSeq)
		if s := v.Summaries[0].Text; strings.Contains(s, topicOf(0)) || !strings.Contains(s, topicOf(5)) {
			t.Errorf("the summary was rewritten as\n%s", s)
		}
		rows := bottest.Attempts(t, w.Store.Mem.Compactions)
		last := rows[len(rows)-1]
		if last.Trigger != upkeep.TriggerRewrite || last.Outcome != sessions.CompactionCommitted || last.StartSeq != v.Summaries[0].StartSeq || last.EndSeq != v.Summaries[0].EndSeq {
			t.Errorf("the log ends with %+v", last)
		}
		near(t, "tokens of the context", v.Session.TotalTokens, w.Views.Sizes.Size(v, v.Session.CalibrationFactor))
	})
}
