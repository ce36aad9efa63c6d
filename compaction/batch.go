package compaction

import "math"

// What the law of the batch size reckons with, where the conversation does not say.
const (
	instruction    = 600 // tokens of the instructions that ask for a summary
	outputPrice    = 4.0 // of an output token, in uncached input tokens
	segmentSummary = 400 // tokens that a summary of one batch comes to
	defaultCached  = 0.1 // price of a cached input token where none is known
)

// largerSide is how far above the optimum a batch is put off: around it the cost is flat, and the larger side shows
// more of the conversation for the same money.
const largerSide = 1.25

// BatchSize is how many tokens to let pile up between two compactions so that their cost together is least. It is the
// economic order quantity, b = sqrt(2mK/c): a conversation that grows by perReply tokens with every reply pays c for
// each token that it carries along once more, and K for each compaction. K is what the request after it pays for
// reading recent and summary tokens uncached, the instructions, the summary's output, and the fixed prefix once more.
// All figures are tokens; cachePrice is the price of a cached input token as a part of an uncached one, and 0.1 where it
// is not above 0.
func BatchSize(perReply, fixed, recent, summary int, cachePrice float64) int {
	c := cachePrice
	if !(c > 0) { // NaN too
		c = defaultCached
	}
	s := float64(summary)
	k := (1-c)*(float64(recent)+s) + instruction + outputPrice*s + c*(float64(fixed)+s)
	return int(math.Sqrt(2 * float64(max(0, perReply)) * max(0, k) / c))
}

// batch is what has to pile up before a planned cut is worth it: the law's size, kept between the least growth that is
// worth a compaction and half of the window, and no less than what the commit gate will ask for.
func (p Policy) batch(w Window, s State, cut Cut) int {
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
