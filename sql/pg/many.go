package pg

import (
	"context"
	"crypto/sha256"
	"slices"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// LockSessions locks the rows of sessions until the transaction ends, in the order of their keys, in one round trip. Rows that are
// gone are left out.
func (d *DB) LockSessions(ctx context.Context, tx dbsqlc.DBTX, keys []sessions.Key) error {
	if len(keys) == 0 {
		return nil
	}
	return Done(d.Q.SessionsLock(ctx, tx, inOrder(keys)).Exec)
}

// ShareSessions protects sessions from erasure and deletion until the transaction ends. It waits for those in progress.
func (d *DB) ShareSessions(ctx context.Context, tx dbsqlc.DBTX, keys []sessions.Key) error {
	if len(keys) == 0 {
		return nil
	}
	return Done(d.Q.SessionsShare(ctx, tx, inOrder(keys)).Exec)
}

func inOrder(keys []sessions.Key) []sessions.Key {
	return slices.Compact(slices.Sorted(slices.Values(keys)))
}

// Gone is a deleted memory.
type Gone dbsqlc.MemoriesExpireRow

// ExpireVectors deletes the vectors of deleted memories. Those of texts that another memory in force of the scope has stay.
func (d *DB) ExpireVectors(ctx context.Context, tx dbsqlc.DBTX, gone []Gone) error {
	if len(gone) == 0 {
		return nil
	}
	all := make([]*dbsqlc.EmbeddingsExpireParams, len(gone))
	for i, g := range gone {
		hash := sha256.Sum256([]byte(g.Content))
		all[i] = &dbsqlc.EmbeddingsExpireParams{
			ScopeKey: string(g.Scope) + "|" + g.ScopeID, ContentHash: hash[:], Scope: g.Scope, ScopeID: g.ScopeID, Content: g.Content,
		}
	}
	return Done(d.Q.EmbeddingsExpire(ctx, tx, all).Exec)
}
