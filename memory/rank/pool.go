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

// Match is a found text: its index among the added ones, its score from 0 towards 1, and the reasons.
type Match struct {
	Place int
	Doc   Doc
	Score float64
	Why   []string
}

// Rank returns the n best, best first, and none if no text holds enough of the query: a chance match is worse than no
// result.
func (p *Pool) Rank(n int) []Match {
	order := p.scoreTexts()
	if !slices.ContainsFunc(order, func(i int) bool { return p.docs[i].carries }) {
		return nil
	}
	var finds []Match
	for _, i := range order {
		d := &p.docs[i]
		if len(finds) == n || d.score <= leastOfBest*p.docs[order[0]].score {
			break
		}
		if d.base == 0 && d.length == 0 {
			continue // "ok" only stands next to a match
		}
		finds = append(finds, Match{Place: i, Doc: d.Doc, Score: d.score / (d.score + p.maxScore()), Why: p.listReasons(d)})
	}
	return finds
}

// Adjacent are the places of events outside the pool, up to reach around the n best events, which may be answers.
func (p *Pool) Adjacent(n int) []int64 {
	known := make(map[int64]bool, len(p.docs))
	for i := range p.docs {
		known[p.docs[i].Seq] = true
	}
	var missing []int64
	for _, i := range p.scoreTexts() {
		d := &p.docs[i]
		if n == 0 || d.score <= 0 {
			break
		}
		if d.Seq == 0 {
			continue
		}
		n--
		for s := max(d.Seq-reach, 1); s <= d.Seq+reach; s++ {
			if !known[s] {
				known[s] = true
				missing = append(missing, s)
			}
		}
	}
	return missing
}

const (
	whyBeside = "beside a match"
	whyPerson = "person named"
	whyDate   = "date" // the date follows
)

func (p *Pool) listReasons(d *scoredDoc) []string {
	var why []string
	for i, c := range d.counts {
		t := p.q.terms[i]
		if c > 0 && t.kind != glyph && len(why) < maxWhy {
			why = append(why, t.shown)
		}
	}
	if len(why) == 0 {
		why = append(why, whyBeside)
	}
	if p.q.namesPersonOf(d.Doc) {
		why = append(why, whyPerson)
	}
	if f := p.q.dateFactor(d.At); f > 1 {
		why = append(why, whyDate+" "+d.At.In(p.q.now.Location()).Format(time.DateOnly))
	}
	return why
}

const maxWhy = 6
