package rank

import (
	"math"
	"slices"
	"time"
)

// Doc is an event or a memory, without its words.
type Doc struct {
	Seq       int64 // place of an event in its log; 0 for a memory
	At        time.Time
	Who       []string // ids of the speaker and the subject
	Assistant bool     // the bot said it
	Outdated  bool     // its statement was corrected later
	Keys      []int64
}

type scoredDoc struct {
	Doc
	counts  []uint8 // counts of each term of the query
	length  float64
	flags   uint32
	sitting int
	base    float64 // BM25 of its own terms
	score   float64
	carries bool // it justifies a result
}

// Pool ranks the candidates of a query.
type Pool struct {
	q     Query
	docs  []scoredDoc
	total int            // texts in the scopes
	index map[uint32]int // hash of a term of the query -> its index
	sieve hashFilter
	df    []float64
	// common is the number of texts with a term, in and outside the pool.
	common []float64
}

// A query's terms are few, and texts many: the filter excludes most hashes.
type hashFilter [1 << 14]bool

func (s *hashFilter) add(h uint32)          { s[h%uint32(len(s))] = true }
func (s *hashFilter) mayHold(h uint32) bool { return s[h%uint32(len(s))] }

// Pool makes a pool for scopes with total texts.
func (q Query) Pool(total int) *Pool {
	p := &Pool{q: q, total: total, index: make(map[uint32]int, len(q.terms)), df: make([]float64, len(q.terms)), common: make([]float64, len(q.terms))}
	for i, t := range q.terms {
		p.index[t.hash] = i
		p.sieve.add(t.hash)
	}
	return p
}

// Add adds texts, each once.
func (p *Pool) Add(docs ...Doc) {
	p.docs = slices.Grow(p.docs, len(docs))
	counts := make([]uint8, len(docs)*len(p.q.terms))
	for _, d := range docs {
		x := scoredDoc{Doc: d, counts: counts[:len(p.q.terms):len(p.q.terms)]}
		counts = counts[len(p.q.terms):]
		for _, k := range d.Keys {
			h := lowHash(k)
			if h&^flagMask == flagBase {
				x.flags = h & flagMask
				continue
			}
			x.length++
			if !p.sieve.mayHold(h) {
				continue
			}
			if i, ok := p.index[h]; ok && x.counts[i] < math.MaxUint8 && (!p.q.terms[i].name || d.Seq == 0) {
				if x.counts[i]++; x.counts[i] == 1 {
					p.df[i]++
				}
			}
		}
		p.docs = append(p.docs, x)
	}
}

// Common adds the number of texts with a key's term, in and outside the pool; scopes add up.
func (p *Pool) Common(key int64, n int) {
	if i, ok := p.index[lowHash(key)]; ok {
		p.common[i] += float64(n)
	}
}
