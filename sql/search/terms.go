package search

import (
	"context"
	"maps"
	"math"
	"slices"

	"ebb/sql/dbsqlc"
	"ebb/sql/index"
)

// terms finds events with a rarer term or two common ones, and the newest. Reading all events of a common term would
// take longer than the rest in a session of fifty thousand. An old event with a single common word is rarely wanted.
func (x *searching) terms(ctx context.Context, keys []int64) error {
	if len(keys) == 0 {
		return nil
	}
	f, err := x.store.logs.PlacesOf(ctx, x.reader.Key, keys)
	if err != nil {
		return err
	}
	for seq, e := range x.newest {
		f.Add(seq, e.keys)
	}
	g, rare := newGathering(len(keys)), 0
	add := func(places []int64, terms ...int) {
		for _, place := range places[:min(len(places), maxOfTerm)] {
			g.add(place, f.Size(place), terms...)
		}
	}
	var common []int
	for i, k := range keys {
		n := len(f.Places[i])
		if n < maxOfTerm {
			rare += n
		} else {
			common = append(common, i)
		}
		add(f.Places[i], i)
		x.common[k], g.worth[i] = n, x.query.TermWeight(k, n, int(x.last))
	}
	for i, a := range common[:min(len(common), maxPaired)] {
		for _, b := range common[i+1 : min(len(common), maxPaired)] {
			add(f.All(a, b), a, b)
		}
	}
	if len(common) > 0 {
		size := maxShort
		if rare == 0 {
			size = math.MaxInt // no other term
		}
		x.addRecent(f, g, common, size)
	}
	return x.read(ctx, g.rankByWeight())
}

// addRecent adds the last events with common terms.
func (x *searching) addRecent(f *index.Found, g *gathering, common []int, size int) {
	terms := make(map[int64][]int)
	for _, i := range common {
		for _, place := range slices.Backward(f.Places[i]) {
			if place < x.last-recentEvents {
				break
			}
			if f.Size(place) <= size {
				terms[place] = append(terms[place], i)
			}
		}
	}
	places := slices.Sorted(maps.Keys(terms))
	for _, place := range places[max(len(places)-maxRecent, 0):] {
		g.add(place, f.Size(place), terms[place]...)
	}
}

// read takes events that are not indexed yet from memory, and the others by their stored terms: texts are not read for a ranking.
func (x *searching) read(ctx context.Context, seqs []int64) error {
	var stored []int64
	for _, seq := range seqs {
		if e, ok := x.newest[seq]; ok {
			x.add(e.EventsBesideRow, e.keys)
		} else {
			stored = append(stored, seq)
		}
	}
	if len(stored) == 0 {
		return nil
	}
	rows, err := x.store.db.Q.EventsBeside(ctx, x.store.db.Pool, &dbsqlc.EventsBesideParams{
		SessionKey: x.reader.Key, Seqs: stored, MaxBytes: maxTermBytes,
	})
	if err != nil {
		return err
	}
	for _, row := range rows {
		x.add(row, index.Terms(row.Terms))
	}
	return nil
}

func (x *searching) knownEvents() map[int64]bool {
	known := make(map[int64]bool, len(x.found))
	for _, c := range x.found {
		known[c.Seq] = true
	}
	return known
}
