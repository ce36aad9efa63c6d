package sql

import (
	"context"
	"fmt"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// Beat implements sessions.Leaser.
func (s *Store) Beat(ctx context.Context, owner sessions.ReplicaID) error {
	if _, err := s.q.ReplicaBeat(ctx, s.pool, string(owner)); err != nil {
		return fmt.Errorf("writing the heartbeat of replica %s: %w", owner, err)
	}
	return nil
}

// Acquire implements sessions.Leaser.
func (s *Store) Acquire(
	ctx context.Context, key sessions.Key, owner sessions.ReplicaID,
) (sessions.Lease, error) {
	row, err := s.q.LeaseAcquire(ctx, s.pool, &dbsqlc.LeaseAcquireParams{
		SessionKey: key, Owner: string(owner), TtlSeconds: s.ttl.Seconds(),
	})
	if err == nil && row.Owner != string(owner) {
		err = sessions.ErrLeaseHeld
	}
	if err != nil {
		return sessions.Lease{}, fmt.Errorf("acquiring session %s: %w", key, found(err))
	}
	return sessions.Lease{Key: key, Owner: owner, Term: row.Term}, nil
}

// Release implements sessions.Leaser.
func (s *Store) Release(ctx context.Context, l sessions.Lease) error {
	_, err := s.q.LeaseRelease(ctx, s.pool, &dbsqlc.LeaseReleaseParams{SessionKey: string(l.Key), Owner: string(l.Owner), Term: l.Term})
	if err != nil {
		return fmt.Errorf("releasing session %s at term %d: %w", l.Key, l.Term, err)
	}
	return nil
}

// Resign implements sessions.Leaser.
func (s *Store) Resign(ctx context.Context, owner sessions.ReplicaID) (int, error) {
	row, err := s.q.LeasesResign(ctx, s.pool, string(owner))
	if err != nil {
		return 0, fmt.Errorf("giving up the leases of replica %s: %w", owner, err)
	}
	return int(row.N), nil
}
