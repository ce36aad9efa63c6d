package erasure

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// lockReaders locks readers in the order of their keys, and returns the locked ones.
func (s *Store) lockReaders(ctx context.Context, tx pgx.Tx, p *dbsqlc.ReadersLockParams) ([]string, error) {
	keys, err := s.Q.ReadersLock(ctx, tx, p)
	return asStrings(keys), err
}

func asStrings(keys []sessions.Key) []string {
	list := make([]string, len(keys))
	for i, key := range keys {
		list[i] = string(key)
	}
	return list
}
