package compaction

import (
	"slices"

	"ebb/sessions"
)

// SegmentTarget is the requested length of a new summary in tokens: a third of the budget, next to a roll-up of half.
func (p Policy) SegmentTarget(target int) int {
	if p.Rolling || p.RollUpTokens <= 0 {
		return target
	}
	return min(target, max(MinSummary, p.RollUpTokens/3))
}

// RollUpTarget is the requested length of a roll-up in tokens.
func (p Policy) RollUpTarget(target int) int {
	if p.RollUpTokens <= 0 {
		return target
	}
	return max(MinSummary, p.RollUpTokens/2)
}

// RollUpDue reports whether the active summaries and a new one are too many or too long. A rolling summary replaces
// the others by itself.
func (p Policy) RollUpDue(active []sessions.Summary, newest int) bool {
	if p.Rolling || len(active) < 2 || len(AfterEmptied(active)) < len(active) {
		return false
	}
	return p.RollUpSegments > 0 && len(active)+1 > p.RollUpSegments || p.RollUpTokens > 0 && TokensIn(active)+newest > p.RollUpTokens
}

// TokensIn sums the tokens of summaries.
func TokensIn(active []sessions.Summary) int {
	n := 0
	for _, s := range active {
		n += s.Tokens
	}
	return n
}

// AfterEmptied lists the summaries after the last one that an erasure emptied. It keeps its place until its range is
// summarized again; a continuation would lose the range.
func AfterEmptied(active []sessions.Summary) []sessions.Summary {
	for i, s := range slices.Backward(active) {
		if s.Emptied() {
			return active[i+1:]
		}
	}
	return active
}
