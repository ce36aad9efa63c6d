package compaction

import (
	"fmt"

	"ebb/compaction/tokens"
)

// Share of a summary's budget for required identifiers, and the heading of their list, in tokens.
const (
	RequiredShare = 4 // one part in four
	healFrame     = 32
)

// MaxSummaryShare bounds a summary: one part in four of a chat request.
const MaxSummaryShare = 4

// HealAllowance is the length in tokens that healing may add to a draft with a given budget. Each marked value adds up to
// six more.
func HealAllowance(budget int) int { return budget/RequiredShare + healFrame }

// minFreed is the least that a compaction must free, in tokens, to count as progress: less is not worth a request
// whose prefix no cache knows.
const minFreed = 512

// maxRatio is the length of a summary, as a part of what it tells, from which on it is no progress.
const MaxRatio = 0.8

// spareSummary is what a summary may take however little it tells, where counts asked for it: three short turns need
// about as much to be told as they took.
const spareSummary = 256

// counts reports whether messages or turns set the policy's compactions off.
func (p Policy) counts() bool { return p.Window > 0 || p.MaxMessages > 0 || p.Segment > 0 }

// Progress is the commit gate: it says why a compaction that was computed must not be committed, or nil. Success means
// that the context became smaller, not that a model answered. It is measured against the part that was told, whatever the
// size of the rest: source and summary are the tokens of what is told and of what tells it. Where no summary was made,
// source is 0. A compaction that a count asked for only has to be shorter than its source, or short: its rhythm is the
// point of it.
func (p Policy) Progress(before, after, source, summary int) error {
	freed := before - after
	switch most := p.MostSummary(source); {
	case source > 0 && summary > most:
		return fmt.Errorf("summary of %d tokens for a source of %d, want at most %d", summary, source, most)
	case source > 0 && p.counts():
	case freed < minFreed:
		return fmt.Errorf("frees %d of %d tokens, want at least %d", freed, before, minFreed)
	}
	return nil
}

// MostSummary is the longest summary, in tokens, that counts as progress for a source of so many.
func (p Policy) MostSummary(source int) int {
	most := int(MaxRatio * float64(source))
	if p.counts() {
		return max(most, spareSummary)
	}
	return min(most-1, source-minFreed-2*tokens.MessageOverhead)
}

// RearmAfter is Session.RearmTokens after a compaction that left, or found, so many tokens. A policy that does not go
// by size is armed at once by one that gained, and after one that did not by a little more talk.
func (p Policy) RearmAfter(w Window, tokens int, gained bool) int {
	switch {
	case p.Tokens || p.Batch && !gained:
		return w.RearmAfter(tokens, gained)
	case gained:
		return 0
	}
	return tokens + leastBatch
}
