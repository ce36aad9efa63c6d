package summarize

import (
	"errors"
	"testing"

	"ebb/compaction/audit"
	"ebb/compaction/compactiontest"
	"ebb/sessions/llm"
	"ebb/sessions/llm/llmtest"
)

// A model that goes on with the talk is asked again, with a reminder behind the data. Its reply is no summary, by any model.
func TestReplyIsNoSummary(t *testing.T) {
	t.Parallel()
	reply := llm.Response{Finish: llm.FinishStop, Text: "好的，没问题！预算评审会我来跟进，会议室已经订好，材料也会提前发给大家，有新的进展我会马上同步到群里。\n\n请问接下来需要我帮大家安排预算评审会的议程吗？", Model: "main"}
	m := &modelFunc{answer: func(n int, r llm.Request) (llm.Response, error) {
		if n == 1 {
			return reply, nil
		}
		return good(), nil
	}}
	got, err := summarizer(m).Summarize(t.Context(), Request{Events: compactiontest.Talk(3, 50), Target: 300})
	if err != nil || got.Text != goodText || got.Calls != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	if want := llmtest.Data(m.asked[0]) + "\n\n" + reminders["zh"]; llmtest.Data(m.asked[1]) != want {
		t.Errorf("the second request ends with %q", llmtest.Data(m.asked[1])[max(0, len(llmtest.Data(m.asked[1]))-200):])
	}
	m = &modelFunc{answer: func(int, llm.Request) (llm.Response, error) { return reply, nil }}
	if got, err := summarizer(m).Summarize(t.Context(), Request{Events: compactiontest.Talk(3, 50), Target: 300}); !errors.Is(err, audit.ErrTalk) || got.Text != "" || got.Calls != 3 {
		t.Errorf("a model that always replies: %+v, %v", got, err)
	}
}
