package compaction

import (
	"slices"

	"ebb/sessions"
)

// segmentTarget is the length to ask of a new summary, in tokens. Of what segments may take together, a third is the
// newest's: next to a roll-up, which takes half, there is room for one more.
func (p Policy) SegmentTarget(target int) int {
	if p.Rolling || p.RollUpTokens <= 0 {
		return target
	}
	return min(target, max(MinSummary, p.RollUpTokens/3))
}

// rollUpTarget is the length to ask of a roll-up, in tokens.
func (p Policy) RollUpTarget(target int) int {
	if p.RollUpTokens <= 0 {
		return target
	}
	return max(MinSummary, p.RollUpTokens/2)
}

// rollUpDue reports whether the active summaries and a new one are too many or too long for one view, where the older
// ones can become one. A rolling summary takes the others' place anyhow.
func (p Policy) RollUpDue(active []sessions.Summary, newest int) bool {
	if p.Rolling || len(active) < 2 || len(AfterEmptied(active)) < len(active) {
		return false
	}
	return p.RollUpSegments > 0 && len(active)+1 > p.RollUpSegments || p.RollUpTokens > 0 && TokensIn(active)+newest > p.RollUpTokens
}

func TokensIn(active []sessions.Summary) int {
	n := 0
	for _, s := range active {
		n += s.Tokens
	}
	return n
}

// afterEmptied is the summaries behind the last one that an erasure emptied. That one keeps its place until it is written
// again: a summary that continued it would have lost its range.
func AfterEmptied(active []sessions.Summary) []sessions.Summary {
	for i, s := range slices.Backward(active) {
		if s.Emptied() {
			return active[i+1:]
		}
	}
	return active
}
