package summarize

import (
	"fmt"
	"testing"

	"ebb/compaction/compactiontest"
	"ebb/sessions/llm"
	"ebb/sessions/llm/llmtest"
)

// A refusal of a large request without a known reason is tried once on half, and a second one is final.
func TestUnexplainedRefusalIsHalvedOnce(t *testing.T) {
	t.Parallel()
	size := func(r llm.Request) int { return compactiontest.Counter().Count(llmtest.Data(r)) }
	for limit, answered := range map[int]bool{5000: true, 10: false} {
		m := &modelFunc{answer: func(_ int, r llm.Request) (llm.Response, error) {
			if size(r) > limit {
				return llm.Response{}, fmt.Errorf("model main: %w", &llm.CallError{Class: llm.Malformed, Status: 400, Err: errModel})
			}
			return good(), nil
		}}
		_, err := summarizer(m).Summarize(t.Context(), Request{Events: compactiontest.Talk(300, 20), Target: 300})
		if (err == nil) != answered || size(m.asked[1])*3 > size(m.asked[0])*2 || !answered && len(m.asked) != 2 {
			t.Errorf("%d requests ended with %v", len(m.asked), err)
		}
	}
}
