package erasure

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ebb/memory/similarity"
	"ebb/sql/dbsqlc"
)

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
		shared := similarity.Share(u.Content, u.Consolidated)
		if last := len(p.Ids) - 1; last < 0 || p.Ids[last] != u.ID {
			p.Ids, p.Bys, best = append(p.Ids, u.ID), append(p.Bys, u.By), shared
		} else if shared > best {
			p.Bys[last], best = u.By, shared
		}
	}
	return rows, s.Q.MemoriesRestore(ctx, tx, p)
}
