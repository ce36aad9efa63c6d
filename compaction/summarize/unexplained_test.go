package summarize

import (
	"fmt"
	"testing"

	"ebb/compaction/compactiontest"
)

// A refusal of a large request without a known reason is tried once on half, and a second one is final.
func TestUnexplainedRefusalIsHalvedOnce(t *testing.T) {
	t.Parallel()
	size := func(r CompleteRequest) int { return compactiontest.Counter().Count(r.User) }
	for limit, answered := range map[int]bool{5000: true, 10: false} {
		m := &modelFunc{answer: func(_ int, r CompleteRequest) (Completion, error) {
			if size(r) > limit {
				return Completion{}, fmt.Errorf("model main: %w", fault{unexplained: true})
			}
			return good(), nil
		}}
		_, err := summarizer(m).Summarize(t.Context(), Request{Events: compactiontest.Talk(300, 20), Target: 300})
		if (err == nil) != answered || size(m.asked[1])*3 > size(m.asked[0])*2 || !answered && len(m.asked) != 2 {
			t.Errorf("%d requests ended with %v", len(m.asked), err)
		}
	}
}
