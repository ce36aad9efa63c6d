package sql

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ebb/sql/dbsqlc"
)

// retold adds to memories those that tell them on: what they were consolidated into, and the team's copies.
func (s *Store) retold(ctx context.Context, tx pgx.Tx, ids []int64) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.q.MemoriesRetold(ctx, tx, ids)
}

// deleteFacts deletes memories. What else was consolidated into one of them is in force again, or superseded by what
// corrected that.
func (s *Store) deleteFacts(ctx context.Context, tx pgx.Tx, ids []int64) ([]dbsqlc.MemoriesForgetRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	under, err := s.q.MemoriesUnder(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	rows, err := s.q.MemoriesForget(ctx, tx, ids)
	if err != nil || len(under) == 0 {
		return rows, err
	}
	p := &dbsqlc.MemoriesRestoreParams{}
	for _, u := range under {
		p.Ids, p.Bys = append(p.Ids, u.ID), append(p.Bys, u.By)
	}
	return rows, s.q.MemoriesRestore(ctx, tx, p)
}
