package search

import (
	"cmp"
	"context"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/sql/dbsqlc"
	"ebb/sql/index"
	"ebb/sql/pg"
)

const (
	maxOfFacts  = 1000 // newest memories of a query term
	maxNewFacts = 200  // memories without terms
)

func (x *searching) memories(ctx context.Context) error {
	ids, err := x.facts(ctx)
	if err != nil || len(ids) == 0 && !x.scope.Backlog {
		return err
	}
	rows, err := x.store.visible.Rows(ctx, x.reader, ids, len(ids)+maxNewFacts)
	if err != nil {
		return err
	}
	for i := range rows {
		m := &rows[i]
		if len(m.Terms) == 0 {
			m.Terms = index.MemoryTerms(m.Scope, m.ScopeID, m.Content)
		}
		d := rank.Doc{At: cmp.Or(pg.OrZero(m.SaidAt), m.CreatedAt), Keys: m.Terms}
		d.Who = []string{string(m.SubjectID), string(m.SaidBy)}
		x.found = append(x.found, candidate{Doc: d, memory: m})
	}
	return nil
}

// The ids are never nil, which would disable the filter.
func (x *searching) facts(ctx context.Context) ([]int64, error) {
	r := x.reader
	scopes := []rank.Scope{
		index.MemoryScope(memory.ScopeTeam, string(r.Robot)), index.MemoryScope(memory.ScopeGroup, memory.GroupID(r.Robot, r.Conversation)),
		index.MemoryScope(memory.ScopeSession, string(r.Key)),
	}
	if r.Private {
		users, err := x.store.identities.IDs(ctx, x.store.db.Pool, r.Robot, r.Users...)
		if err != nil {
			return nil, err
		}
		for _, u := range users {
			scopes = append(scopes, index.MemoryScope(memory.ScopeUser, u))
		}
	}
	hashes := x.query.MemoryKeys(0) // no scope: the lower halves
	if len(hashes) == 0 {
		return []int64{}, nil
	}
	lists := make([]string, len(hashes))
	for i, h := range hashes {
		keys := make([]int64, len(scopes))
		for j, s := range scopes {
			keys[j] = s.KeyFor(h)
		}
		lists[i] = pg.ArrayText(keys)
	}
	rows, err := x.store.db.Q.MemoriesWithTerms(ctx, x.store.db.Pool, &dbsqlc.MemoriesWithTermsParams{Lists: lists, MaxRows: maxOfFacts})
	if err != nil {
		return nil, err
	}
	g, counts := newGathering(len(hashes)), make([]int, len(hashes))
	for _, row := range rows {
		g.add(row.ID, 0, row.Place-1)
		counts[row.Place-1]++
	}
	if !r.Private {
		rows, err := x.store.db.Q.MemoriesSaid(ctx, x.store.db.Pool, &dbsqlc.MemoriesSaidParams{
			Hashes: hashes, GroupID: memory.GroupID(r.Robot, r.Conversation), MaxRows: maxOfFacts,
		})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			g.add(row.ID, 0, row.Place-1)
			counts[row.Place-1]++
		}
	}
	x.total += len(g.texts)
	for i, h := range hashes {
		x.common[h] += counts[i]
		g.worth[i] = x.query.TermWeight(h, counts[i], len(g.texts))
	}
	return g.rankByWeight(), nil
}
