package erasure

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// Readers are locked in the order of their keys.
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
