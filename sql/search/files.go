package search

import (
	"context"
	"fmt"

	"ebb/memory"
	"ebb/memory/rank"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/files"
)

const (
	maxOfPages = 1000 // pages of a query term
	maxPages   = 40   // pages whose terms are read
	pageChars  = 600  // characters of a page in a hit
	pageBits   = 20   // the number of a page, below the id of its file
)

// filePages finds pages of kept files by their terms. A session without such files costs no statement.
func (x *searching) filePages(ctx context.Context) error {
	hashes := x.query.MemoryKeys(0)
	if !x.scope.HasFiles || len(hashes) == 0 {
		return nil
	}
	scope := files.Scope(x.reader.Key)
	keys := make([]int64, len(hashes))
	for i, h := range hashes {
		keys[i] = scope.KeyFor(h)
	}
	rows, err := x.store.db.Q.FilePagesWithTerms(ctx, x.store.db.Pool, &dbsqlc.FilePagesWithTermsParams{
		SessionKey: x.reader.Key, Keys: keys, MaxRows: maxOfPages, Model: string(x.reader.Reads),
	})
	if err != nil {
		return err
	}
	g, counts := newGathering(len(hashes)), make([]int, len(hashes))
	for _, row := range rows {
		g.add(row.ID<<pageBits|int64(row.Page), 0, row.Place-1)
		counts[row.Place-1]++
	}
	x.total += len(g.texts)
	for i, h := range hashes {
		x.common[h] += counts[i]
		g.worth[i] = x.query.TermWeight(h, counts[i], len(g.texts))
	}
	best := g.rankByWeight()
	pages, err := x.readPages(ctx, best[:min(len(best), maxPages)], false)
	if err != nil {
		return err
	}
	for i := range pages {
		p := &pages[i]
		x.found = append(x.found, candidate{Doc: rank.Doc{At: p.CreatedAt, Keys: p.Terms}, page: p})
	}
	return nil
}

func (x *searching) readPages(ctx context.Context, places []int64, texts bool) ([]dbsqlc.FilePagesRow, error) {
	if len(places) == 0 {
		return nil, nil
	}
	p := dbsqlc.FilePagesParams{SessionKey: x.reader.Key, Texts: texts}
	for _, at := range places {
		p.Ids, p.Numbers = append(p.Ids, at>>pageBits), append(p.Numbers, int(at&(1<<pageBits-1)))
	}
	return x.store.db.Q.FilePages(ctx, x.store.db.Pool, &p)
}

// pageHits reads the texts of found pages, by place. One that is gone was forgotten meanwhile.
func (x *searching) pageHits(ctx context.Context, finds []rank.Match) (map[int]memory.Hit, error) {
	var places []int64
	for _, f := range finds {
		if p := x.found[f.Place].page; p != nil {
			places = append(places, p.ID<<pageBits|int64(p.Page))
		}
	}
	rows, err := x.readPages(ctx, places, true)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	hits := make(map[int]memory.Hit, len(rows))
	for _, f := range finds {
		for i := range rows {
			if r, p := &rows[i], x.found[f.Place].page; p != nil && r.ID == p.ID && r.Page == p.Page {
				hits[f.Place] = memory.Hit{
					Path: sessions.KeptPath(r.ID, r.Page), File: r.ID, Page: sessions.PageID{Media: r.MediaID, Number: r.Page}, Content: x.query.Piece(r.Body, min(x.chars, pageChars)), Who: citation(r), At: r.CreatedAt,
				}
			}
		}
	}
	return hits, nil
}

// citation names a page as an answer is to cite it.
func citation(r *dbsqlc.FilePagesRow) string {
	c := fmt.Sprintf("《%s》 第 %d 页 page %d", sessions.QuoteText(r.Name), r.Page, r.Page)
	if r.Version > 1 {
		c += fmt.Sprintf(" 第 %d 版 version %d", r.Version, r.Version)
	}
	return c
}
