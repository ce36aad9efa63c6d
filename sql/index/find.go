package index

import (
	"context"
	"math"
	"slices"

	"ebb/memory/rank"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// Found are the indexed events of a session that have some terms.
type Found struct {
	Places [][]int64 // places of each term, in order
	wanted map[uint32]int
	sizes  []sizes
	added  map[int64]int
}

type sizes struct {
	first   int64
	classes []byte
}

// PlacesOf reads the places of the events that have each of some terms: lower halves of keys.
func (s *Logs) PlacesOf(ctx context.Context, key sessions.Key, terms []int64) (*Found, error) {
	f := &Found{Places: make([][]int64, len(terms)), wanted: make(map[uint32]int, len(terms)), added: make(map[int64]int)}
	if len(terms) == 0 {
		return f, nil
	}
	rows, err := s.db.Q.PostingsFind(ctx, s.db.Pool, &dbsqlc.PostingsFindParams{SessionKey: key, Hashes: terms})
	if err != nil {
		return nil, err
	}
	for i, k := range terms {
		f.wanted[uint32(k&math.MaxUint32)] = i //nolint:gosec // the lower half
	}
	for _, r := range rows {
		if r.Sizes {
			f.sizes = append(f.sizes, sizes{r.FirstSeq, r.Body})
			continue
		}
		if err := eachTerm(r.Body, func(h uint32, places []int64) {
			if i, ok := f.wanted[h]; ok {
				f.Places[i] = append(f.Places[i], places...)
			}
		}); err != nil {
			return nil, err
		}
	}
	for _, places := range f.Places {
		slices.Sort(places)
	}
	return f, nil
}

// Add adds an event that is not indexed yet, by its keys.
func (f *Found) Add(place int64, keys []int64) {
	for _, h := range rank.TermHashes(keys) {
		if i, ok := f.wanted[h]; ok {
			if at, known := slices.BinarySearch(f.Places[i], place); !known {
				f.Places[i] = slices.Insert(f.Places[i], at, place)
			}
		}
	}
	f.added[place] = len(keys)
}

// Size is the number of terms of an event, approximate for one that is indexed.
func (f *Found) Size(place int64) int {
	if n, ok := f.added[place]; ok {
		return n
	}
	for _, z := range f.sizes {
		if i := place - z.first; i >= 0 && i < int64(len(z.classes)) && z.classes[i] > 0 {
			return sizeOfClass[z.classes[i]]
		}
	}
	return 0
}

// All are the places of the events that have all of some terms, in order.
func (f *Found) All(terms ...int) []int64 {
	if len(terms) == 0 {
		return nil
	}
	all := slices.Clone(f.Places[terms[0]])
	for _, t := range terms[1:] {
		all = slices.DeleteFunc(all, func(place int64) bool {
			_, ok := slices.BinarySearch(f.Places[t], place)
			return !ok
		})
	}
	return all
}

// Terms are the keys of stored terms, in no scope.
func Terms(stored []byte) []int64 { return unpackTerms(stored) }
