package replay

import (
	"slices"

	"ebb/cmd/lab/rig"
)

// Sizes of requests in the replay, the same for every policy.
const (
	systemTokens  = 1500 // system prompt and tools
	bytesPerBlock = 4
	blockOverhead = 4   // tokens of a message besides its text
	instruction   = 600 // tokens of a simulated policy's
	outputPrice   = 4   // price of an output token, in uncached input tokens
)

// Prices of a cached input token, in uncached ones.
var cachePrices = [4]float64{0.02, 0.1, 0.2, 1}

const targetPrice = 0.1

func blockTokens(text string) int {
	return (len(text)+bytesPerBlock-1)/bytesPerBlock + blockOverhead
}

// promptBlock is cached as a whole or not at all.
type promptBlock struct {
	id     string // equal ids are equal bytes
	tokens int
}

// callKind separates calls with different prefixes.
type callKind int

const (
	callMain callKind = iota // the conversation's own requests
	callSummary
	callFlush
	callKinds
)

// callSpend is in tokens, except calls.
type callSpend struct {
	calls, prompt, cached, output int
}

func (s *callSpend) addSpend(o callSpend) {
	s.calls, s.prompt, s.cached, s.output = s.calls+o.calls, s.prompt+o.prompt, s.cached+o.cached, s.output+o.output
}

func (s callSpend) uncachedCost() float64 { return float64(s.prompt - s.cached + outputPrice*s.output) }

// totalCost is in units of one uncached input token.
func (s callSpend) totalCost(price float64) float64 {
	return s.uncachedCost() + price*float64(s.cached)
}

type shareCount struct{ there, of int }

func (t *shareCount) addCount(o shareCount) { t.there, t.of = t.there+o.there, t.of+o.of }

// shareOf is 1 without things to count.
func (t shareCount) shareOf() float64 {
	if t.of == 0 {
		return 1
	}
	return float64(t.there) / float64(t.of)
}

// An identifier is followed through at most this number of compactions.
const agesKept = 20

type policyBill struct {
	spend    [callKinds]callSpend
	inline   int // calls that delayed a reply
	largest  int // tokens
	tailMin  int // fewest raw messages of a request after the first compaction; 0: without one
	tail     shareCount
	covered  shareCount           // past messages that a request shows, raw or summarized
	survived [agesKept]shareCount // by compactions since their message left the request: identifiers in a summary
}

func (b *policyBill) addBill(o policyBill) {
	for k := range b.spend {
		b.spend[k].addSpend(o.spend[k])
	}
	b.inline, b.largest = b.inline+o.inline, max(b.largest, o.largest)
	b.lowTail(o.tailMin)
	b.tail.addCount(o.tail)
	b.covered.addCount(o.covered)
	for i := range b.survived {
		b.survived[i].addCount(o.survived[i])
	}
}

func (b *policyBill) lowTail(messages int) {
	if b.tailMin == 0 || messages > 0 && messages < b.tailMin {
		b.tailMin = messages
	}
}

// The output of replies is the same for every policy, and not counted.
func (b policyBill) totalCost(price float64) float64 {
	sum := 0.0
	for _, s := range b.spend {
		sum += s.totalCost(price)
	}
	return sum
}

func (b policyBill) extraCalls() int { return b.spend[callSummary].calls + b.spend[callFlush].calls }

// cachedShare is of the conversation's own prompts.
func (b policyBill) cachedShare() float64 {
	return shareCount{b.spend[callMain].cached, b.spend[callMain].prompt}.shareOf()
}

// meanTail is in tokens.
func (b policyBill) meanTail() float64 { return rig.Ratio(float64(b.tail.there), float64(b.tail.of)) }

type billMeter struct {
	policyBill
	last   [callKinds][]promptBlock
	epoch  int         // number of compactions
	left   map[int]int // message: epoch in which it was first not raw
	marked int         // epoch in which identifiers were last counted
}

func newMeter() *billMeter { return &billMeter{left: map[int]int{}} }

// The request's common prefix with the previous one of its kind is cached.
func (m *billMeter) recordCall(kind callKind, request []promptBlock, output int) {
	m.callAfter(kind, m.last[kind], request, output)
	m.last[kind] = request
}

// callAfter is recordCall with another request's prefix in the cache.
func (m *billMeter) callAfter(kind callKind, before, request []promptBlock, output int) {
	s := callSpend{calls: 1, output: output}
	same := true
	for i, b := range request {
		s.prompt += b.tokens
		if same = same && i < len(before) && before[i].id == b.id; same {
			s.cached += b.tokens
		}
	}
	if kind == callMain {
		s.output = 0
		m.largest = max(m.largest, s.prompt)
	}
	m.spend[kind].addSpend(s)
}

type shownMessages struct {
	past       int               // messages
	raw        int               // newest messages, in their original words
	rawTotal   int               // tokens of raw
	summarized map[int]bool      // messages behind a summary of the request
	holds      func(string) bool // whether an identifier is in a summary
}

func (m *billMeter) recordShown(t recordedTalk, s shownMessages) {
	from := s.past - s.raw
	m.tail.addCount(shareCount{s.rawTotal, 1})
	if from > 0 {
		m.lowTail(s.raw)
	}
	covered := s.raw
	for i := range from {
		if s.summarized[i] {
			covered++
		}
	}
	m.covered.addCount(shareCount{covered, s.past})
	if m.marked == m.epoch { // identifiers only die in a compaction
		return
	}
	m.marked = m.epoch
	for i := range from {
		if t.said[i].mark == "" {
			continue
		}
		if _, ok := m.left[i]; !ok {
			m.left[i] = m.epoch
		}
		age := m.epoch - m.left[i]
		if age >= agesKept {
			continue
		}
		alive := 0
		if s.holds(t.said[i].mark) {
			alive = 1
		}
		m.survived[age].addCount(shareCount{alive, 1})
	}
}

func unionSets(sets ...map[int]bool) map[int]bool {
	out := map[int]bool{}
	for _, set := range sets {
		for i := range set {
			out[i] = true
		}
	}
	return out
}

func tokensOf(blocks []promptBlock) int {
	n := 0
	for _, b := range blocks {
		n += b.tokens
	}
	return n
}

// joinBlocks does not change its arguments.
func joinBlocks(parts ...[]promptBlock) []promptBlock { return slices.Concat(parts...) }
