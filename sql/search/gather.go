package search

import (
	"cmp"
	"slices"

	"ebb/memory/rank"
)

const (
	maxGathered  = 400    // texts of a search, of events and memories each
	maxTermBytes = 40_000 // bytes of the terms in one read
)

// Scoring reads a text's whole list of terms. So only the texts with most of the query's terms, or with the rarest, are
// read.
type gathering struct {
	worth []float64 // by query term
	texts map[int64]*gathered
}

// gathered is a text by its place in the log or its id.
type gathered struct {
	id    int64
	size  int // number of its terms; 0 if unknown
	terms []int
	worth float64
}

func newGathering(terms int) *gathering {
	return &gathering{worth: make([]float64, terms), texts: make(map[int64]*gathered)}
}

func (g *gathering) add(id int64, size int, terms ...int) {
	t := g.texts[id]
	if t == nil {
		t = &gathered{id: id, size: size}
		g.texts[id] = t
	}
	for _, i := range terms {
		if !slices.Contains(t.terms, i) {
			t.terms = append(t.terms, i)
		}
	}
}

// rankByWeight orders by falling weight, then the newest first. As in the scores, a term in a long text weighs less. Otherwise
// long texts would hide an answer of a few words.
func (g *gathering) rankByWeight() []int64 {
	all, sizes := make([]*gathered, 0, len(g.texts)), 0
	for _, t := range g.texts {
		all = append(all, t)
		sizes += t.size
	}
	average := float64(max(sizes, 1)) / float64(max(len(all), 1))
	for _, t := range all {
		t.worth = 0
		slices.Sort(t.terms) // so that equal terms have equal sums
		for _, i := range t.terms {
			t.worth += g.worth[i]
		}
		t.worth *= rank.Once(float64(t.size) / average)
	}
	slices.SortFunc(all, func(a, b *gathered) int { return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(b.id, a.id)) })
	ids := make([]int64, 0, min(len(all), maxGathered))
	for _, t := range all[:min(len(all), maxGathered)] {
		ids = append(ids, t.id)
	}
	return ids
}
