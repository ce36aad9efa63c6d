package search

import (
	"cmp"
	"slices"

	"ebb/memory/rank"
)

const (
	maxGathered  = 400    // texts that are read for one search, of events and of memories each
	maxTermBytes = 80_000 // of the terms of events that are read at once
)

// gathering chooses among the texts that the indexes on terms name. What a search scores is each text's whole list of
// terms, which is as long as the text: so only those are read that most of what is looked for names, or the rarest of it.
type gathering struct {
	worth []float64 // of each of the query's terms, for a text that has it
	texts map[int64]*gathered
}

// gathered is a text by its place in the log or its id.
type gathered struct {
	id    int64
	size  int // bytes of all its terms; 0 where that is not known
	terms []int
	worth float64
}

func newGathering(terms int) *gathering {
	return &gathering{worth: make([]float64, terms), texts: make(map[int64]*gathered)}
}

// add says that a text of some size has some of the query's terms.
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

// best are the texts to read, those that are worth most first, of equals the newest. A long text has any term more easily
// than a short one, so that it says less for it, as it does when they are scored: else long ones would take all the room
// that there is for reading, and hide an answer of a few words.
func (g *gathering) best() []int64 {
	all, sizes := make([]*gathered, 0, len(g.texts)), 0
	for _, t := range g.texts {
		all = append(all, t)
		sizes += t.size
	}
	average := float64(max(sizes, 1)) / float64(max(len(all), 1))
	for _, t := range all {
		t.worth = 0
		slices.Sort(t.terms) // so that equals add up to the same
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
