package sql

import (
	"context"

	"ebb/sql/dbsqlc"
)

// terms looks for events that have a term of the query. A term that very many have is not followed to the last of them:
// in a session of fifty thousand events that alone would take longer than all the rest. Those with a rarer term, or with
// two of the common ones, are all there; what has a single common word hardly ever is what is looked for.
func (x *searching) terms(ctx context.Context, keys []int64) error {
	if len(keys) == 0 {
		return nil
	}
	lists := make([]string, len(keys))
	for i, k := range keys {
		lists[i] = arrayText([]int64{k})
	}
	counts, newest, err := x.lists(ctx, lists)
	if err != nil {
		return err
	}
	rare := 0
	var common []int64
	for i, k := range keys {
		if counts[i] < maxOfTerm {
			rare += counts[i]
			continue
		}
		common = append(common, k)
		// They come in about the order in which they were said: as dense as up to the last of them they go on.
		x.common[k] = int(min(x.last, maxOfTerm*x.last/max(newest[i], 1)))
	}
	if len(common) == 0 {
		return nil
	}
	var pairs []string
	for i, a := range common[:min(len(common), maxPaired)] {
		for _, b := range common[i+1 : min(len(common), maxPaired)] {
			pairs = append(pairs, arrayText([]int64{a, b}))
		}
	}
	if len(pairs) > 0 {
		if _, _, err := x.lists(ctx, pairs); err != nil {
			return err
		}
	}
	if rare > 0 {
		return nil
	}
	rows, err := x.q.EventsRecent(ctx, x.pool, &dbsqlc.EventsRecentParams{
		SessionKey: x.reader.Key, FirstSeq: x.last - recentEvents, Keys: common, MaxRows: maxOfTerm,
	})
	if err != nil {
		return err
	}
	known := x.known()
	for _, row := range rows {
		if !known[orZero(row.Seq)] {
			x.add(dbsqlc.EventsBesideRow(row))
		}
	}
	return nil
}

// lists reads events by lists of terms, and tells of each list how many it read and the last of them.
func (x *searching) lists(ctx context.Context, lists []string) (counts []int, newest []int64, err error) {
	rows, err := x.q.EventsFind(ctx, planned{x.pool}, &dbsqlc.EventsFindParams{
		SessionKey: x.reader.Key, Lists: lists, MaxRows: maxOfTerm,
	})
	if err != nil {
		return nil, nil, err
	}
	counts, newest = make([]int, len(lists)), make([]int64, len(lists))
	known := x.known()
	for _, row := range rows {
		seq := orZero(row.Seq)
		counts[row.Place-1]++
		newest[row.Place-1] = max(newest[row.Place-1], seq)
		if !known[seq] {
			known[seq] = true
			x.add(dbsqlc.EventsBesideRow{
				Seq: row.Seq, Role: row.Role, SenderID: row.SenderID, SenderNick: row.SenderNick, CreatedAt: row.CreatedAt, Terms: row.Terms,
			})
		}
	}
	return counts, newest, nil
}

// known are the places of the events that were found so far.
func (x *searching) known() map[int64]bool {
	known := make(map[int64]bool, len(x.found))
	for _, c := range x.found {
		known[c.Seq] = true
	}
	return known
}
