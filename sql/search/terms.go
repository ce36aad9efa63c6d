package search

import (
	"context"
	"math"

	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// terms finds events with a rarer term or two common ones, and the newest. Reading all events of a common term would
// take longer than the rest in a session of fifty thousand. An old event with a single common word is rarely wanted.
func (x *searching) terms(ctx context.Context, keys []int64) error {
	if len(keys) == 0 {
		return nil
	}
	g := newGathering(len(keys))
	alone := make([][]int, len(keys))
	for i := range keys {
		alone[i] = []int{i}
	}
	counts, newest, err := x.lists(ctx, g, keys, alone)
	if err != nil {
		return err
	}
	rare := 0
	var common []int
	for i, k := range keys {
		n := counts[i]
		if n < maxOfTerm {
			rare += n
		} else {
			common = append(common, i)
			// Events are stored in about the order of their arrival. The density up to the last one read is
			// extrapolated.
			n = int(min(x.last, maxOfTerm*x.last/max(newest[i], 1)))
		}
		x.common[k], g.worth[i] = n, x.query.TermWeight(k, n, int(x.last))
	}
	var pairs [][]int
	for i, a := range common[:min(len(common), maxPaired)] {
		for _, b := range common[i+1 : min(len(common), maxPaired)] {
			pairs = append(pairs, []int{a, b})
		}
	}
	if len(pairs) > 0 {
		if _, _, err := x.lists(ctx, g, keys, pairs); err != nil {
			return err
		}
	}
	if len(common) > 0 {
		size := maxShort
		if rare == 0 {
			size = math.MaxInt32 // no other term
		}
		if err := x.recent(ctx, g, keys, common, size); err != nil {
			return err
		}
	}
	return x.read(ctx, g.best())
}

// The number and the last place are by list.
func (x *searching) lists(ctx context.Context, g *gathering, keys []int64, lists [][]int) (counts []int, newest []int64, err error) {
	texts := make([]string, len(lists))
	for i, list := range lists {
		of := make([]int64, len(list))
		for j, k := range list {
			of[j] = keys[k]
		}
		texts[i] = pg.ArrayText(of)
	}
	rows, err := x.Q.EventsFind(ctx, x.Replanned(), &dbsqlc.EventsFindParams{
		SessionKey: x.reader.Key, Lists: texts, MaxRows: maxOfTerm,
	})
	if err != nil {
		return nil, nil, err
	}
	counts, newest = make([]int, len(lists)), make([]int64, len(lists))
	for _, row := range rows {
		i := row.Place - 1
		counts[i]++
		newest[i] = max(newest[i], row.Seq)
		g.add(row.Seq, row.Size, lists[i]...)
	}
	return counts, newest, nil
}

func (x *searching) recent(ctx context.Context, g *gathering, keys []int64, common []int, size int) error {
	of := make([]int64, len(common))
	for i, k := range common {
		of[i] = keys[k]
	}
	rows, err := x.Q.EventsRecent(ctx, x.Pool, &dbsqlc.EventsRecentParams{
		SessionKey: x.reader.Key, FirstSeq: x.last - recentEvents, Keys: of, MaxSize: size, MaxRows: maxRecent,
	})
	if err != nil {
		return err
	}
	for _, row := range rows {
		for _, place := range row.Places {
			g.add(row.Seq, row.Size, common[place-1])
		}
	}
	return nil
}

func (x *searching) read(ctx context.Context, seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	rows, err := x.Q.EventsBeside(ctx, x.Pool, &dbsqlc.EventsBesideParams{
		SessionKey: x.reader.Key, Seqs: seqs, MaxBytes: maxTermBytes,
	})
	if err != nil {
		return err
	}
	for _, row := range rows {
		x.add(row)
	}
	return nil
}

func (x *searching) known() map[int64]bool {
	known := make(map[int64]bool, len(x.found))
	for _, c := range x.found {
		known[c.Seq] = true
	}
	return known
}
