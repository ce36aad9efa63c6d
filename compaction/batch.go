package compaction

import "math"

const (
	instructionTokens = 600 // tokens of a summary request's instructions
	outputPrice       = 4.0 // price of an output token, in uncached input tokens
	segmentSummary    = 400
	defaultCached     = 0.1 // price of a cached input token when unknown
)

// largerSide scales the optimum: the cost is flat around it, and a larger batch shows more.
const largerSide = 1.25

// BatchSize is the number of tokens between two compactions of the least total cost, by the economic order quantity, b
// = sqrt(2mK/c). A conversation grows by m = perReply tokens, pays c for each repeated token, and K for each
// compaction. K is the price of recent and summary tokens read uncached, of instructions and summary output, and of
// the fixed prefix once more. cachePrice is relative to an uncached token; 0 or less means 0.1.
func BatchSize(perReply, fixed, recent, summary int, cachePrice float64) int {
	c := cachePrice
	if !(c > 0) { // also NaN
		c = defaultCached
	}
	s := float64(summary)
	k := (1-c)*(float64(recent)+s) + instructionTokens + outputPrice*s + c*(float64(fixed)+s)
	return int(math.Sqrt(2 * float64(max(0, perReply)) * max(0, k) / c))
}

// batchTokens is the source size at which a cut pays off, at most half of the target.
func (p Policy) batchTokens(w Window, s State, cut Cut) int {
	turns := max(1, len(TurnStarts(s.Tail)))
	summary := w.Summary
	if p.SummaryTokens > 0 {
		summary = p.SummaryTokens
	}
	if !p.Rolling {
		summary = min(summary, segmentSummary)
	}
	b := BatchSize(TokensOf(s.Tail)/turns, s.Fixed, cut.Recent, summary, p.CachePrice)
	b = min(int(largerSide*float64(b)), w.Target()/2)
	return max(b, w.MinBatch(), minFreed+summary)
}
