package compaction

import (
	"errors"
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
// looked up, and With those of the settings that it is held against: where Key is not in the file, one of them is what
// somebody changed.
type FieldError struct {
	Key  string
	Got  any
	Want string
	With []string
}

// Error is the setting, what it is and what it has to be.
func (e *FieldError) Error() string { return fmt.Sprintf("%s is %v, want %s", e.Key, e.Got, e.Want) }

// LeastBudget is what a trigger and a target have to be at least, in tokens. A conversation in which nobody has said
// anything takes about 620, with its instructions and tools.
const LeastBudget = 1000

// faults are what is wrong with settings.
type faults []*FieldError

// want notes a setting unless it is ok; with are the keys that it is held against.
func (f *faults) want(ok bool, key string, got any, want string, with ...string) {
	if !ok {
		*f = append(*f, &FieldError{key, got, want, with})
	}
}

// err is all of them, joined; nil for none.
func (f faults) err() error {
	errs := make([]error, 0, len(f))
	for _, e := range f {
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// Validate names what can't work, with the figures: a [FieldError] for each, joined.
func (w Window) Validate() error { return w.faults().err() }

func (w Window) faults() faults {
	var f faults
	f.want(w.Context > 0, "context_window", w.Context, "more than 0")
	f.want(w.Context <= 0 || w.Reserve >= 0 && w.Reserve < w.Context, "reserve_tokens", w.Reserve,
		fmt.Sprintf("0 to less than context_window (%d)", w.Context), "context_window")
	f.want(w.Threshold > 0, "auto_compact_threshold", w.Threshold, "more than 0")
	f.want(w.Share > 0 && w.Share <= 1, "max_history_share", w.Share, "more than 0 and at most 1") // false for NaN too
	f.want(w.FlushRatio > 0 && w.FlushRatio < 1, "flush_ratio", w.FlushRatio, "more than 0 and less than 1")
	if len(f) == 0 {
		w.roomFor(&f)
	}
	return f
}

// roomFor looks for budgets that no conversation fits into.
func (w Window) roomFor(f *faults) {
	least := LeastBudget // of Trigger
	if w.MaxTokens() > w.mostTarget() {
		least = int(math.Ceil(LeastBudget / leastTarget)) // Target is a part of Trigger then
	}
	switch {
	case w.Context <= least:
		f.want(false, "context_window", w.Context, fmt.Sprintf("at least %d, for reserve_tokens (%d) and a conversation", w.Reserve+least, w.Reserve))
	case w.Usable() < least:
		f.want(false, "reserve_tokens", w.Reserve,
			fmt.Sprintf("at most %d: a conversation needs %d of context_window (%d)", w.Context-least, least, w.Context), "context_window")
	case w.Threshold < least:
		f.want(false, "auto_compact_threshold", w.Threshold,
			fmt.Sprintf("at least %d: a conversation in which nobody has spoken takes about 620, and a compaction has to leave %d", least, LeastBudget))
	case w.Target() < LeastBudget:
		share := math.Ceil(1e4*LeastBudget/float64(w.Context)) / 1e4
		f.want(false, "max_history_share", w.Share,
			fmt.Sprintf("at least %g, which is %d tokens of context_window (%d)", share, LeastBudget, w.Context), "context_window")
	}
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

// Target is what a compaction aims at: MaxTokens, but clearly below Trigger, so that one that was triggered always has
// something to do. It never falls when MaxTokens grows.
func (w Window) Target() int { return min(w.MaxTokens(), w.mostTarget()) }

// mostTarget is the largest Target, whatever the share: it leaves room for the growth that [Window.RearmAfter] waits for, as
// far as a small Trigger has that room.
func (w Window) mostTarget() int {
	t := w.Trigger()
	return max(int(leastTarget*float64(t)), t-max(w.MinBatch(), t/5))
}

// leastTarget is the part of Trigger that the largest Target is at least.
const leastTarget = 0.7

// IdleShare reports whether Share is so large that a smaller one would do the same, and that one.
func (w Window) IdleShare() (enough float64, idle bool) {
	enough = math.Ceil(1e4*float64(w.mostTarget()+1)/float64(w.Context)) / 1e4 // a product may be rounded down
	return enough, w.Share > enough
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
const MinSummary = 64

// Available is what conversation and summaries may take after a compaction, next to fixed tokens of system prompt,
// tools and pinned memory. It may be zero or less, where those fill the window.
func (w Window) Available(fixed int) int { return w.Target() - fixed - budgetSlack }

// SummaryCap is the length to ask of a summary where recent tokens stay raw.
func (w Window) SummaryCap(fixed, recent int) int {
	return max(MinSummary, min(w.Available(fixed)-recent, w.Summary))
}
