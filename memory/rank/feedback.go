package rank

import (
	"cmp"
	"slices"
)

// expandQuery adds a part of the best texts' other terms to each score: a light form of RM3, after N. Abdul-Jaleel and
// others, "UMass at TREC 2004".
func (p *Pool) expandQuery() {
	terms := p.expansionTerms()
	if len(terms) == 0 {
		return
	}
	var filter hashFilter
	for h := range terms {
		filter.add(h)
	}
	for i := range p.docs {
		d := &p.docs[i]
		for _, k := range d.Keys {
			if h := lowHash(k); filter.mayHold(h) {
				d.base += feedbackPart * terms[h]
			}
		}
	}
}

// expansionTerms takes rare words of the best finds as further words of the query (pseudo relevance feedback): an answer seldom has
// the words of its question. Frequencies are counted in a second pass over all keys, behind a filter, since nearly no key is a
// candidate.
func (p *Pool) expansionTerms() map[uint32]float64 {
	best := make([]int, 0, feedbackDocs+1) // kept in order: a whole sort of a large pool takes longer than the rest
	for i := range p.docs {
		if p.docs[i].base <= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, p.docs[i].base, func(j int, base float64) int { return cmp.Compare(base, p.docs[j].base) })
		if at < feedbackDocs {
			best = slices.Insert(best, at, i)
			best = best[:min(len(best), feedbackDocs)]
		}
	}
	type candidate struct {
		hash          uint32
		df            float64
		rarity, share float64
	}
	var filter hashFilter
	var terms []candidate
	index := make(map[uint32]int)
	for _, i := range best {
		for _, k := range p.docs[i].Keys {
			h := lowHash(k)
			if _, known := p.index[h]; known || h&^flagMask == flagBase {
				continue
			}
			if _, known := index[h]; !known {
				index[h] = len(terms)
				terms = append(terms, candidate{hash: h})
				filter.add(h)
			}
			terms[index[h]].share += p.docs[i].base / p.docs[i].length
		}
	}
	for i := range p.docs {
		for _, k := range p.docs[i].Keys {
			if h := lowHash(k); filter.mayHold(h) {
				if at, ok := index[h]; ok {
					terms[at].df++
				}
			}
		}
	}
	for i := range terms {
		t := &terms[i]
		t.rarity = termRarity(float64(max(p.total, len(p.docs))), t.df)
		t.share *= t.rarity
	}
	slices.SortFunc(terms, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.share, a.share), cmp.Compare(a.hash, b.hash)) })
	weights := make(map[uint32]float64, feedbackTerms)
	for _, t := range terms[:min(len(terms), feedbackTerms)] {
		weights[t.hash] = t.rarity * t.share / terms[0].share
	}
	return weights
}
