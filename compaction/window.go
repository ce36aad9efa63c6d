package compaction

import (
	"fmt"
	"math"
)

// Window holds the token budgets of a conversation. All figures are tokens.
type Window struct {
	Context    int     // the model's whole window
	Reserve    int     // kept free for the answer and for errors of our counting
	Threshold  int     // where automatic compaction sets in, as configured
	Share      float64 // part of Context that history may keep after a compaction
	FlushRatio float64 // part of the trigger at which memory is flushed
	Summary    int     // aim for the length of a summary
}

// FieldError says which setting can't work. Key is the setting's name in the configuration, where its line can be
// looked up.
type FieldError struct {
	Key  string
	Got  any
	Want string
}

// Error is the setting, what it is and what it has to be.
func (e *FieldError) Error() string { return fmt.Sprintf("%s is %v, want %s", e.Key, e.Got, e.Want) }

// Validate names what can't work, with the figures, as a [FieldError].
func (w Window) Validate() error {
	switch {
	case w.Context <= 0:
		return &FieldError{"context_window", w.Context, "more than 0"}
	case w.Reserve < 0 || w.Reserve >= w.Context:
		return &FieldError{"reserve_tokens", w.Reserve, fmt.Sprintf("0 to less than context_window (%d)", w.Context)}
	case w.Threshold <= 0:
		return &FieldError{"auto_compact_threshold", w.Threshold, "more than 0"}
	case math.IsNaN(w.Share) || w.Share <= 0 || w.Share > 1:
		return &FieldError{"max_history_share", w.Share, "more than 0 and at most 1"}
	case math.IsNaN(w.FlushRatio) || w.FlushRatio <= 0 || w.FlushRatio >= 1:
		return &FieldError{"flush_ratio", w.FlushRatio, "more than 0 and less than 1"}
	}
	return nil
}

// Counted is the window as our own counter sees it. Budgets are in the provider's tokens and events are counted in
// ours; factor is the ratio of the two, as [Calibrate] learns it.
func (w Window) Counted(factor float64) Window {
	if factor > 0 { // false for NaN too
		for _, n := range []*int{&w.Context, &w.Reserve, &w.Threshold} {
			*n = int(float64(*n) / factor)
		}
	}
	return w
}

// Usable is what a request may hold at most.
func (w Window) Usable() int { return w.Context - w.Reserve }

// MaxTokens is what a compaction may leave at most.
func (w Window) MaxTokens() int {
	return min(int(float64(w.Context)*w.Share), w.Usable())
}

// Trigger is where compaction sets in: the threshold, as far as the window allows it.
func (w Window) Trigger() int { return min(w.Threshold, w.Usable()) }

// FlushAt is where memory is flushed; always below Trigger.
func (w Window) FlushAt() int { return min(int(float64(w.Trigger())*w.FlushRatio), w.Trigger()-1) }

// Target is what a compaction aims at. It lies clearly below Trigger, so that one that was triggered always has
// something to do.
func (w Window) Target() int {
	if m := w.MaxTokens(); float64(m) <= 0.9*float64(w.Trigger()) {
		return m
	}
	return int(0.7 * float64(w.Trigger()))
}

// leastBatch is the least growth between two compactions that is worth one in any window, in tokens.
const leastBatch = 1000

// MinBatch is the least growth between two compactions that is worth one.
func (w Window) MinBatch() int { return max(leastBatch, w.Trigger()/20) }

// RearmAfter is how large a context of so many tokens has to grow before its size sets off the next compaction: after
// one that gained room, and, more patiently, after one that did not. It goes by size, so that a quiet session is never
// tried again.
func (w Window) RearmAfter(tokens int, gained bool) int {
	part := w.Trigger() / 4
	if gained {
		part = w.Trigger() * 15 / 100
	}
	return tokens + max(w.MinBatch(), part)
}

// budgetSlack is kept out of every compaction's budget for framing that is not counted message by message.
const budgetSlack = 500

// minSummary is what a summary may take however small the window is.
const minSummary = 64

// Available is what conversation and summaries may take after a compaction, next to fixed tokens of system prompt,
// tools and pinned memory. It may be zero or less, where those fill the window.
func (w Window) Available(fixed int) int { return w.Target() - fixed - budgetSlack }

// SummaryCap is the length to ask of a summary where recent tokens stay raw.
func (w Window) SummaryCap(fixed, recent int) int {
	return max(minSummary, min(w.Available(fixed)-recent, w.Summary))
}
