package replay

import (
	"slices"

	"ebb/cmd/lab/rig"
)

// Sizes of requests, by the rule of this replay: the same for every policy.
const (
	systemTokens  = 1500 // system prompt and tools
	bytesPerBlock = 4    // bytes of text a token
	blockOverhead = 4    // tokens of a message besides its text
	instruction   = 600  // tokens of a simulated policy's instruction to its summarizer
	outputPrice   = 4    // price of an output token, in uncached input tokens
)

// cachePrices are what a cached input token may cost, in uncached ones; the third is what targets are set for.
var cachePrices = [4]float64{0.02, 0.1, 0.2, 1}

// targetPrice is the cache price that targets speak of.
const targetPrice = 0.1

// blockTokens is what a text takes as a message of its own.
func blockTokens(text string) int {
	return (len(text)+bytesPerBlock-1)/bytesPerBlock + blockOverhead
}

// promptBlock is a piece of a request that a provider's cache takes whole or not at all.
type promptBlock struct {
	id     string // two blocks with the same id are the same bytes
	tokens int
}

// callKind separates calls whose prefixes are compared and reported on their own.
type callKind int

const (
	callMain callKind = iota // the conversation's own requests
	callSummary
	callFlush
	callKinds
)

// callSpend is what calls of one kind took, in tokens.
type callSpend struct {
	calls, prompt, cached, output int
}

func (s *callSpend) addSpend(o callSpend) {
	s.calls, s.prompt, s.cached, s.output = s.calls+o.calls, s.prompt+o.prompt, s.cached+o.cached, s.output+o.output
}

// uncachedCost is the input that is paid in full, and the output: cost units that no cache price changes.
func (s callSpend) uncachedCost() float64 { return float64(s.prompt - s.cached + outputPrice*s.output) }

// totalCost is in units of one uncached input token.
func (s callSpend) totalCost(price float64) float64 {
	return s.uncachedCost() + price*float64(s.cached)
}

// shareCount counts how many of some things are there.
type shareCount struct{ there, of int }

func (t *shareCount) addCount(o shareCount) { t.there, t.of = t.there+o.there, t.of+o.of }

// shareOf is the part that is there; 1 of nothing.
func (t shareCount) shareOf() float64 {
	if t.of == 0 {
		return 1
	}
	return float64(t.there) / float64(t.of)
}

// agesKept is how many compactions an identifier's way is followed.
const agesKept = 20

type policyBill struct {
	spend    [callKinds]callSpend
	inline   int // calls that a reply had to wait for
	largest  int // tokens of the largest main request
	tailMin  int // messages that are raw in a request, at the least, once something is not; 0: nothing ever left
	tail     shareCount
	covered  shareCount           // past messages that a request shows raw or in a summary
	survived [agesKept]shareCount // by compactions since their message left the request: identifiers that a summary still has
}

// addBill joins the bills of two conversations.
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

// totalCost is of all calls. The replies' own output is left out: it is the same for every policy.
func (b policyBill) totalCost(price float64) float64 {
	sum := 0.0
	for _, s := range b.spend {
		sum += s.totalCost(price)
	}
	return sum
}

// extraCalls is the number of calls besides those of the conversation itself.
func (b policyBill) extraCalls() int { return b.spend[callSummary].calls + b.spend[callFlush].calls }

// cachedShare is the part of the conversation's own prompts that the cache held.
func (b policyBill) cachedShare() float64 {
	return shareCount{b.spend[callMain].cached, b.spend[callMain].prompt}.shareOf()
}

// meanTail is the raw part of a request, in tokens.
func (b policyBill) meanTail() float64 { return rig.Ratio(float64(b.tail.there), float64(b.tail.of)) }

type billMeter struct {
	policyBill
	last   [callKinds][]promptBlock
	epoch  int         // compactions so far
	left   map[int]int // message: epoch in which it was first not raw
	marked int         // epoch in which identifiers were last looked for
}

func newMeter() *billMeter { return &billMeter{left: map[int]int{}} }

// recordCall accounts a request: what it has in common with the one before of its kind is cached.
func (m *billMeter) recordCall(kind callKind, request []promptBlock, output int) {
	m.callAfter(kind, m.last[kind], request, output)
	m.last[kind] = request
}

// callAfter is call for a request whose prefix the cache has from another one.
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
	raw        int               // the newest of them, as they were said
	rawTotal   int               // tokens of those
	summarized map[int]bool      // messages that a summary in the request goes back to
	holds      func(string) bool // reports whether an identifier is in a summary
}

// recordShown accounts what a main request shows of talk.
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

// unionSets joins the sets of summarized messages.
func unionSets(sets ...map[int]bool) map[int]bool {
	out := map[int]bool{}
	for _, set := range sets {
		for i := range set {
			out[i] = true
		}
	}
	return out
}

// tokensOf sums blocks.
func tokensOf(blocks []promptBlock) int {
	n := 0
	for _, b := range blocks {
		n += b.tokens
	}
	return n
}

// joinBlocks joins blocks without touching those it is given.
func joinBlocks(parts ...[]promptBlock) []promptBlock { return slices.Concat(parts...) }
