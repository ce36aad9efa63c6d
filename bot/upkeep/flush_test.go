package upkeep

import (
	"context"
	"fmt"
	"testing"

	"ebb/memory/extract"
	"ebb/sessions/llm"
)

// The reason of a failed flush holds no text of an error.
func TestFlushFailureReason(t *testing.T) {
	t.Parallel()
	for err, reason := range map[error]string{
		fmt.Errorf("x: %w", extract.ErrUnusable):                   "model called memory_save with nothing usable",
		fmt.Errorf("x: %w", &llm.CallError{Class: llm.Malformed}):  "model error: malformed",
		fmt.Errorf("x: %w", extract.ErrSpent):                      "tokens of the day are used up",
		fmt.Errorf("%w: %w", extract.ErrStorage, context.Canceled): "ran out of time",
	} {
		if got := flushFailureReason(err); got != reason {
			t.Errorf("%v: reason %q, want %q", err, got, reason)
		}
	}
}
