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

// Validate names what can't work, with the figures.
func (w Window) Validate() error {
	switch {
	case w.Context <= 0:
		return fmt.Errorf("context_window is %d, want more than 0", w.Context)
	case w.Reserve < 0 || w.Reserve >= w.Context:
		return fmt.Errorf("reserve_tokens is %d, want 0 to less than context_window (%d)", w.Reserve, w.Context)
	case w.Threshold <= 0:
		return fmt.Errorf("auto_compact_threshold is %d, want more than 0", w.Threshold)
	case math.IsNaN(w.Share) || w.Share <= 0 || w.Share > 1:
		return fmt.Errorf("max_history_share is %v, want more than 0 and at most 1", w.Share)
	case math.IsNaN(w.FlushRatio) || w.FlushRatio <= 0 || w.FlushRatio >= 1:
		return fmt.Errorf("flush_ratio is %v, want more than 0 and less than 1", w.FlushRatio)
	}
	return nil
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

// MinBatch is the least growth between two compactions that is worth one.
func (w Window) MinBatch() int { return max(1000, w.Trigger()/20) }

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
