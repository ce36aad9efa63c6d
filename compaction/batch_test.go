package compaction

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"ebb/compaction/compactiontest"
	"ebb/compaction/tokens"
)

// The figures are messages of which two make a reply, with a system prompt of 1,500 tokens and summaries of 800, and a
// cached token at a tenth. The best batches in a replay of long dialogues lie within 13 % of each.
func TestBatchSizeByTheTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		message float64 // tokens
		recent  float64 // messages
		want    float64 // messages
	}{
		{35.27, 4, 74},
		{35.27, 12, 76},
		{35.27, 40, 83},
		{176.4, 4, 35},
		{176.4, 12, 39},
		{176.4, 40, 50},
		{705.5, 4, 20},
		{705.5, 12, 27},
		{705.5, 40, 41},
	} {
		b := BatchSize(int(math.Round(2*c.message)), 1500, int(c.recent*c.message), 800, 0.1)
		if got := float64(b) / c.message; math.Abs(got-c.want) > 0.8 {
			t.Errorf("%v tokens a message, %v recent: %.1f messages, want %v", c.message, c.recent, got, c.want)
		}
	}
	if got, want := BatchSize(70, 1500, 1400, 800, 0), BatchSize(70, 1500, 1400, 800, 0.1); got != want {
		t.Errorf("without a price %d tokens, want %d", got, want)
	}
}

// tariff replays a long conversation that is compacted after every given number of replies, and returns the cost of a
// reply in uncached input tokens. It does not use the law: requests are paid for one by one.
func tariff(replies int, perReply, fixed, recent, summary int, c float64) float64 {
	const cycles = 3
	cost := 0.0
	for range cycles {
		for j := range replies {
			known := float64(recent + summary + j*perReply) // tokens between the fixed prefix and this reply
			price := c
			if j == 0 {
				price = 1 // the compaction before this request has changed all of it
			}
			cost += c*float64(fixed) + price*known + float64(perReply)
		}
		// One call that reads the prefix and what leaves from the cache, and writes the summary.
		cost += instructionTokens + c*float64(fixed+summary+replies*perReply) + outputPrice*float64(summary)
	}
	return cost / float64(cycles*replies)
}

// The law finds the batch that a search finds: within 15 % of its size, or one reply, and 3 % of its cost.
func TestBatchSizeIsTheOptimum(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(40, 1500).Draw(t, "per reply")
		fixed, recent := rapid.IntRange(500, 5000).Draw(t, "fixed"), rapid.IntRange(100, 20000).Draw(t, "recent")
		summary := rapid.IntRange(100, 1200).Draw(t, "summary")
		c := rapid.SampledFrom([]float64{0.02, 0.1, 0.2, 0.4}).Draw(t, "cache price")
		best, least := 0, math.Inf(1)
		for n := 1; n <= 600; n++ {
			if cost := tariff(n, m, fixed, recent, summary, c); cost < least {
				best, least = n, cost
			}
		}
		law := max(1, int(math.Round(float64(BatchSize(m, fixed, recent, summary, c))/float64(m))))
		if math.Abs(float64(law-best)) > max(1, 0.15*float64(best)) {
			t.Fatalf("the law says %d replies, the search %d", law, best)
		}
		if cost := tariff(law, m, fixed, recent, summary, c); cost > 1.03*least {
			t.Fatalf("%d replies cost %.1f each, %d cost %.1f", law, cost, best, least)
		}
	})
}

// A batch waits for what the law says and a little more, never for less than is worth a compaction, and grows with the
// price of what carries it.
func TestBatchSetsOff(t *testing.T) {
	t.Parallel()
	p := Policies["balanced"]
	sets := func(p Policy, w Window, turns, size int) bool {
		return p.Decide(w, State{Tail: compactiontest.Talk(turns, size), Fixed: 1500, Tokens: 5000}).Trigger == TriggerBatch
	}
	first := func(p Policy, w Window, size int) int {
		for turns := 20; turns < 2000; turns++ {
			if sets(p, w, turns, size) {
				return (2*turns - p.TailMessages) * (size + tokens.MessageOverhead)
			}
		}
		return 0
	}
	small := Window{Context: 32000, Threshold: 16000, Share: 0.5, FlushRatio: 0.9, Summary: 1200}
	law := BatchSize(2*35, 1500, 40*35, segmentSummary, 0.1)
	if got := first(p, small, 31); math.Abs(float64(got)-largerSide*float64(law)) > 100 {
		t.Errorf("a compaction after %d size, want about %.0f", got, largerSide*float64(law))
	}
	if got := first(p, seed, 31); got < seed.MinBatch() || got > seed.MinBatch()+100 {
		t.Errorf("a compaction after %d size, want %d, the least that is worth one", got, seed.MinBatch())
	}
	dear, cheap := p, p
	dear.CachePrice, cheap.CachePrice = 0.4, 0.02
	if d, c := first(dear, small, 31), first(cheap, small, 31); d >= c {
		t.Errorf("a batch of %d size where carrying them is dear, and of %d where it is cheap", d, c)
	}
}
