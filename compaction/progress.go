package compaction

import (
	"fmt"

	"ebb/compaction/tokens"
)

// Shares of a summary's budget.
const (
	RequiredShare = 4 // one part in four is for required identifiers
	healFrame     = 32
)

// SummaryTarget is the length in tokens to request: a quarter of the source and all of a continued summary, within the
// room of [Window.Target]. Offloaded results count whole, as far as [Policy.Progress] allows: their references are
// short. w is in counted tokens.
func (p Policy) SummaryTarget(w Window, s State, cut Cut) int {
	most := w.Summary
	if p.SummaryTokens > 0 {
		most = p.SummaryTokens
	}
	old := p.replacedTokens(s)
	gains := (p.MostSummary(cut.Source+old) - healFrame) * RequiredShare / (RequiredShare + 1) // with [HealAllowance]
	want := max(MinTarget, cut.Source/4+old, min(cut.Whole/4+old, gains))
	return max(MinSummary, min(most, w.Available(s.Fixed)-cut.Recent, want))
}

// LongestSummary is the maximum of a cut's summaries in tokens. It leaves [Window.MinBatch] below the size trigger
// once the whole plan has left. A summary of [Policy.SummaryTarget] with healed identifiers always fits.
func (p Policy) LongestSummary(w Window, s State, cut Cut) int {
	most := w.MaxSummary()
	if !p.Tokens {
		return most
	}
	kept := s.SummaryTokens
	switch {
	case p.Rolling:
		kept = 0
	case p.RollUpTokens > 0:
		kept = min(kept, p.RollUpTarget(0))
	}
	room := w.Trigger() - w.MinBatch() - budgetSlack - s.Fixed - cut.Recent - kept
	target := p.SegmentTarget(p.SummaryTarget(w, s, cut))
	return min(most, max(room, target+HealAllowance(target)))
}

// HealAllowance is the number of tokens that healing may add, without marks: each adds up to six.
func HealAllowance(budget int) int { return budget/RequiredShare + healFrame }

// minFreed tokens pay for a request with an uncached prefix.
const minFreed = 512

// MaxRatio is the longest summary relative to its source.
const MaxRatio = 0.8

// spareSummary may always be the length of a summary by count: three short turns hardly get shorter.
const spareSummary = 256

// Progress is the commit gate: an error is the reason not to commit. source and summary are the tokens of the
// summarized part before and after; source is 0 without a summary. By count, a summary only has to be shorter than its
// source, or short: its rhythm is its purpose.
func (p Policy) Progress(before, after, source, summary int) error {
	freed := before - after
	switch most := p.MostSummary(source); {
	case source > 0 && summary > most:
		return fmt.Errorf("summary of %d tokens for a source of %d, want at most %d", summary, source, most)
	case source > 0 && p.triggersByCount():
	case freed < minFreed:
		return fmt.Errorf("frees %d of %d tokens, want at least %d", freed, before, minFreed)
	}
	return nil
}

// Worth fails with ErrTooLittle where even the shortest summary would free nothing or not pass [Policy.Progress]: a person who asks for a
// compaction then pays for none. A continued summary is as long as it was, or as its budget.
func (p Policy) Worth(w Window, s State, cut Cut) error {
	if p.Mode == PruneOnly {
		return nil
	}
	source, summary := cut.Source+p.replacedTokens(s), min(p.SegmentTarget(p.SummaryTarget(w, s, cut)), MinSummary+p.replacedTokens(s))
	freed := source - summary - tokens.MessageOverhead
	if freed <= 0 || p.Progress(freed, 0, source, summary) != nil {
		return ErrTooLittle
	}
	return nil
}

// MostSummary is the longest summary in tokens that counts as progress.
func (p Policy) MostSummary(source int) int {
	most := int(MaxRatio * float64(source))
	if p.triggersByCount() {
		return max(most, spareSummary)
	}
	return min(most-1, source-minFreed-2*tokens.MessageOverhead)
}

// RearmAfter is Session.RearmTokens after an attempt. Without a trigger by size, a success arms at once, a failure
// after a little growth.
func (p Policy) RearmAfter(w Window, tokens int, gained bool) int {
	switch {
	case p.Tokens || p.Batch && !gained:
		return w.RearmAfter(tokens, gained)
	case gained:
		return 0
	}
	return tokens + leastBatch
}

func (p Policy) replacedTokens(s State) int {
	if p.Rolling {
		return s.SummaryTokens
	}
	return 0
}
