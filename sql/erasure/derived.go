package erasure

import (
	"context"
	"ebb/memory/text"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ebb/memory/classify"
	"ebb/memory/dates"
	"ebb/sql/dbsqlc"
)

// retells reports whether a memory repeats another one that was consolidated into it: nearly all of it, or more of it
// than each other row does. The model did not record the sources of each row.
func retells(content, old string, others []string) bool {
	if sameStatement(old, content) {
		return true
	}
	bare := classify.TrimLead(dates.Strip(old))
	folded := text.Fold(content)
	if slices.ContainsFunc(numbersIn(text.Fold(bare)), func(n string) bool { return !strings.Contains(folded, n) }) {
		return false
	}
	grams := gramsOf(bare)
	shared := share(grams, gramsOf(content))
	return shared >= saidShare || shared >= aboutShare && !slices.ContainsFunc(others, func(o string) bool {
		return share(grams, gramsOf(o)) > shared
	})
}

// withDerived adds to memories the ones derived from them: their consolidations, with all rows of each, and the team's
// copies.
func (s *Store) withDerived(ctx context.Context, db dbsqlc.DBTX, ids []int64) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.Q.MemoriesDerived(ctx, db, ids)
}

// deleteFacts deletes memories. Other facts consolidated into one of them are in force again, or superseded by its
// corrections.
func (s *Store) deleteFacts(ctx context.Context, tx pgx.Tx, ids []int64) ([]dbsqlc.MemoriesForgetRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	under, err := s.Q.MemoriesUnder(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	rows, err := s.Q.MemoriesForget(ctx, tx, ids)
	if err != nil || len(under) == 0 {
		return rows, err
	}
	p := &dbsqlc.MemoriesRestoreParams{}
	best := 0.0
	for _, u := range under { // each with all candidates: the one that repeats most of it wins
		shared := share(gramsOf(u.Content), gramsOf(u.Consolidated))
		if last := len(p.Ids) - 1; last < 0 || p.Ids[last] != u.ID {
			p.Ids, p.Bys, best = append(p.Ids, u.ID), append(p.Bys, u.By), shared
		} else if shared > best {
			p.Bys[last], best = u.By, shared
		}
	}
	return rows, s.Q.MemoriesRestore(ctx, tx, p)
}
