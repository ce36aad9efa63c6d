package compaction

import (
	"errors"
	"fmt"
	"math"
)

// Window holds the budgets of a conversation in tokens.
type Window struct {
	Context    int     // the model's window
	Reserve    int     // for the answer and for counting errors
	Threshold  int     // configured start of automatic compaction
	Share      float64 // share of Context for history after a compaction
	FlushRatio float64 // share of the trigger at which memory is flushed
	Summary    int     // target length of a summary
}

// FieldError is a setting that can't work. Key is its configuration key, With those it is compared with: if Key is not
// in the file, one of them was changed.
type FieldError struct {
	Key  string
	Got  any
	Want string
	With []string
}

// Error names setting, value and accepted values.
func (e *FieldError) Error() string { return fmt.Sprintf("%s is %v, want %s", e.Key, e.Got, e.Want) }

// LeastBudget is the minimum of a trigger and a target in tokens. An empty conversation takes about 620.
const LeastBudget = 1000

type fieldFaults []*FieldError

func (f *fieldFaults) wantSetting(ok bool, key string, got any, want string, with ...string) {
	if !ok {
		*f = append(*f, &FieldError{key, got, want, with})
	}
}

func (f fieldFaults) joinErrors() error {
	errs := make([]error, 0, len(f))
	for _, e := range f {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// Validate joins a [FieldError] for each problem.
func (w Window) Validate() error { return w.findFaults().joinErrors() }

func (w Window) findFaults() fieldFaults {
	var f fieldFaults
	f.wantSetting(w.Context > 0, "context_window", w.Context, "more than 0")
	f.wantSetting(w.Context <= 0 || w.Reserve >= 0 && w.Reserve < w.Context, "reserve_tokens", w.Reserve,
		fmt.Sprintf("0 to less than context_window (%d)", w.Context), "context_window")
	f.wantSetting(w.Threshold > 0, "auto_compact_threshold", w.Threshold, "more than 0")
	f.wantSetting(w.Share > 0 && w.Share <= 1, "max_history_share", w.Share, "more than 0 and at most 1") // false for NaN
	f.wantSetting(w.FlushRatio > 0 && w.FlushRatio < 1, "flush_ratio", w.FlushRatio, "more than 0 and less than 1")
	if len(f) == 0 {
		w.checkRoom(&f)
	}
	return f
}

func (w Window) checkRoom(f *fieldFaults) {
	least := LeastBudget // least share of the trigger
	if w.MaxTokens() > w.mostTarget() {
		least = int(math.Ceil(LeastBudget / leastTarget)) // Target is a share of Trigger here
	}
	switch {
	case w.Context <= least:
		f.wantSetting(false, "context_window", w.Context, fmt.Sprintf("at least %d, for reserve_tokens (%d) and a conversation", w.Reserve+least, w.Reserve))
	case w.Usable() < least:
		f.wantSetting(false, "reserve_tokens", w.Reserve,
			fmt.Sprintf("at most %d: a conversation needs %d of context_window (%d)", w.Context-least, least, w.Context), "context_window")
	case w.Threshold < least:
		f.wantSetting(false, "auto_compact_threshold", w.Threshold,
			fmt.Sprintf("at least %d: an empty conversation takes about 620, and a compaction has to leave %d", least, LeastBudget))
	case w.Target() < LeastBudget:
		share := math.Ceil(1e4*LeastBudget/float64(w.Context)) / 1e4
		f.wantSetting(false, "max_history_share", w.Share,
			fmt.Sprintf("at least %g, which is %d tokens of context_window (%d)", share, LeastBudget, w.Context), "context_window")
	}
}

// Counted converts the window into our counter's tokens. factor is the provider's count relative to ours.
func (w Window) Counted(factor float64) Window {
	if factor > 0 { // false for NaN
		for _, n := range []*int{&w.Context, &w.Reserve, &w.Threshold} {
			*n = int(float64(*n) / factor)
		}
	}
	return w
}

// Usable is the maximum of a request.
func (w Window) Usable() int { return w.Context - w.Reserve }

// MaxSummary bounds each summary.
func (w Window) MaxSummary() int { return w.Usable() / 4 }

// MaxTokens is the maximum after a compaction.
func (w Window) MaxTokens() int {
	return min(int(float64(w.Context)*w.Share), w.Usable())
}

// Trigger starts a compaction: the threshold, bounded by the window.
func (w Window) Trigger() int { return min(w.Threshold, w.Usable()) }

// FlushAt starts a flush, always below Trigger.
func (w Window) FlushAt() int { return min(int(float64(w.Trigger())*w.FlushRatio), w.Trigger()-1) }

// Target is the aim of a compaction: MaxTokens, but clearly below Trigger, so that each one has work. It is monotonic
// in MaxTokens.
func (w Window) Target() int { return min(w.MaxTokens(), w.mostTarget()) }

// mostTarget leaves room for the growth of [Window.RearmAfter], as far as a small Trigger allows.
func (w Window) mostTarget() int {
	t := w.Trigger()
	return max(int(leastTarget*float64(t)), t-max(w.MinBatch(), t/5))
}

// leastTarget is the minimum of mostTarget as a share of Trigger.
const leastTarget = 0.7

// IdleShare reports whether a smaller Share has the same effect, and which.
func (w Window) IdleShare() (enough float64, idle bool) {
	enough = math.Ceil(1e4*float64(w.mostTarget()+1)/float64(w.Context)) / 1e4 // a product may be rounded down
	return enough, w.Share > enough
}

// leastBatch is the minimum of [Window.MinBatch].
const leastBatch = 1000

// MinBatch is the least growth between two compactions.
func (w Window) MinBatch() int { return max(leastBatch, w.Trigger()/20) }

// RearmAfter is the size that re-arms the size trigger. A failed attempt waits for more growth; a quiet session is
// never retried.
func (w Window) RearmAfter(tokens int, gained bool) int {
	part := w.Trigger() / 4
	if gained {
		part = w.Trigger() * 15 / 100
	}
	return tokens + max(w.MinBatch(), part)
}

// budgetSlack is for framing that is not counted by message.
const budgetSlack = 500

// Available is the budget of conversation and summaries next to the fixed tokens. It may be negative.
func (w Window) Available(fixed int) int { return w.Target() - fixed - budgetSlack }
