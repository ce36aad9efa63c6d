package erasure

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ebb/memory/similarity"
	"ebb/sql/dbsqlc"
	"ebb/sql/vectors"
)

// withDerived adds the consolidations of memories, with all rows of each, and the team's copies.
func (s *Store) withDerived(ctx context.Context, db dbsqlc.DBTX, ids []int64) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.db.Q.MemoriesDerived(ctx, db, ids)
}

// Facts consolidated into a deleted one are in force again, or superseded by its corrections.
func (s *Store) deleteFacts(ctx context.Context, tx pgx.Tx, ids []int64) ([]dbsqlc.MemoriesForgetRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	under, err := s.db.Q.MemoriesUnder(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.Q.MemoriesForget(ctx, tx, ids)
	if err != nil || len(under) == 0 {
		return rows, err
	}
	p := &dbsqlc.MemoriesRestoreParams{}
	best := 0.0
	for _, u := range under { // The candidate that repeats most of it wins.
		shared := similarity.Share(u.Content, u.Consolidated)
		if last := len(p.Ids) - 1; last < 0 || p.Ids[last] != u.ID {
			p.Ids, p.Bys, best = append(p.Ids, u.ID), append(p.Bys, u.By), shared
		} else if shared > best {
			p.Bys[last], best = u.By, shared
		}
	}
	return rows, s.db.Q.MemoriesRestore(ctx, tx, p)
}

// deleteDerived also deletes what was derived from memories. It returns the memories' texts and the number of vectors.
func (s *Store) deleteDerived(ctx context.Context, tx pgx.Tx, ids []int64) (contents []string, removed int, err error) {
	if len(ids) == 0 {
		return nil, 0, nil
	}
	readers, err := s.identities.Readers(ctx, tx, ids)
	if err != nil {
		return nil, 0, err
	}
	// A save holds its session and waits for facts.
	if _, err := s.lockReaders(ctx, tx, &dbsqlc.ReadersToLockParams{SessionKeys: readers, Leased: true, Facts: []string{}}); err != nil {
		return nil, 0, err
	}
	facts, err := s.deleteFacts(ctx, tx, ids)
	if err != nil || len(facts) == 0 {
		return nil, 0, err
	}
	var hashes [][]byte
	for _, f := range facts {
		contents, hashes = append(contents, f.Content), append(hashes, vectors.Hash(f.Content))
	}
	shown := asShown(contents)
	// No session pins or repeats a deleted fact from now on.
	changed, err := s.lockReaders(ctx, tx, &dbsqlc.ReadersToLockParams{SessionKeys: readers, Leased: true, Replies: true, Facts: shown})
	if err != nil {
		return nil, 0, err
	}
	for _, step := range []func() error{
		func() error {
			return s.db.Q.PinnedErase(ctx, tx, &dbsqlc.PinnedEraseParams{SessionKeys: changed, Facts: shown})
		},
		func() error {
			return s.db.Q.PinnedBeforeErase(ctx, tx, &dbsqlc.PinnedBeforeEraseParams{SessionKeys: changed, Facts: shown})
		},
		func() error {
			return s.repliesWithout(ctx, tx, changed, contents)
		},
		func() error {
			return s.db.Q.FlushesForget(ctx, tx, &dbsqlc.FlushesForgetParams{SessionKeys: readers, Ids: ids})
		},
		func() error { return s.db.Q.DigestsReopen(ctx, tx, ids) },
	} {
		if err := step(); err != nil {
			return nil, 0, err
		}
	}
	n, err := s.eraseVectors(ctx, tx, hashes)
	return contents, int(n), err
}

func (s *Store) eraseVectors(ctx context.Context, tx pgx.Tx, hashes [][]byte) (int64, error) {
	if len(hashes) == 0 {
		return 0, nil
	}
	return s.db.Q.EmbeddingsErase(ctx, tx, hashes)
}
