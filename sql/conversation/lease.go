package conversation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Beat implements sessions.Leaser.
func (s *Store) Beat(ctx context.Context, owner sessions.ReplicaID) (time.Time, error) {
	row, err := s.Q.ReplicaBeat(ctx, s.Pool.Heartbeats, string(owner))
	if err != nil {
		return time.Time{}, fmt.Errorf("writing the heartbeat of replica %s: %w", owner, err)
	}
	return row.HeartbeatAt, nil
}

// Mark implements sessions.Elector.
func (s *Store) Mark(ctx context.Context, owner sessions.ReplicaID, st sessions.ReplicaStatus) error {
	_, err := s.Q.ReplicaMark(ctx, s.Pool.Heartbeats, &dbsqlc.ReplicaMarkParams{Owner: owner, Connected: st.Connected, Draining: st.Draining})
	if err != nil {
		return fmt.Errorf("noting how replica %s stands: %w", owner, err)
	}
	return nil
}

// Leader implements sessions.Elector.
func (s *Store) Leader(ctx context.Context) (sessions.Leader, error) {
	row, err := s.Q.ReplicaLeads(ctx, s.Pool.Heartbeats, s.TTL.Seconds())
	if errors.Is(err, pgx.ErrNoRows) {
		return sessions.Leader{}, nil
	}
	if err != nil {
		return sessions.Leader{}, fmt.Errorf("asking which replica leads: %w", err)
	}
	return sessions.Leader{Replica: row.ID, Connected: row.Connected}, nil
}

// IsLeader reports whether a replica is the leader. Around a takeover two replicas may see themselves as leader.
func (s *Store) IsLeader(ctx context.Context, replica sessions.ReplicaID) (bool, error) {
	l, err := s.Leader(ctx)
	return err == nil && l.Replica == replica, err
}

// Acquire implements sessions.Leaser.
func (s *Store) Acquire(
	ctx context.Context, key sessions.Key, owner sessions.ReplicaID,
) (sessions.Lease, error) {
	row, err := s.Q.LeaseAcquire(ctx, s.Pool, &dbsqlc.LeaseAcquireParams{
		SessionKey: key, Owner: string(owner), TtlSeconds: s.TTL.Seconds(),
	})
	if err == nil && row.Owner != string(owner) {
		err = sessions.ErrLeaseHeld
	}
	if err != nil {
		return sessions.Lease{}, fmt.Errorf("acquiring a lease: %w", pg.AsNotFound(err))
	}
	return sessions.Lease{Key: key, Owner: owner, Term: row.Term}, nil
}

// Release implements sessions.Leaser.
func (s *Store) Release(ctx context.Context, l sessions.Lease) error {
	row, err := s.Q.LeaseRelease(ctx, s.Pool, &dbsqlc.LeaseReleaseParams{SessionKey: string(l.Key), Owner: string(l.Owner), Term: l.Term})
	if err := pg.Require(row.Freed, err, sessions.ErrLeaseLost); err != nil {
		return fmt.Errorf("releasing a lease: %w", err)
	}
	return nil
}

// Rest implements sessions.Leaser.
func (s *Store) Rest(ctx context.Context, owner sessions.ReplicaID, keys []sessions.Key, rest, unflushed time.Duration) ([]sessions.Key, error) {
	p := &dbsqlc.LeasesRestParams{Owner: string(owner), RestSeconds: rest.Seconds(), UnflushedSeconds: unflushed.Seconds()}
	p.SessionKeys = make([]string, len(keys))
	for i, key := range keys {
		p.SessionKeys[i] = string(key)
	}
	rows, err := s.Q.LeasesRest(ctx, s.Pool, p)
	if err != nil {
		return nil, fmt.Errorf("releasing the idle leases of replica %s: %w", owner, err)
	}
	freed := make([]sessions.Key, len(rows))
	for i, key := range rows {
		freed[i] = sessions.Key(key)
	}
	return freed, nil
}

// Resign implements sessions.Leaser.
func (s *Store) Resign(ctx context.Context, owner sessions.ReplicaID) (int, error) {
	row, err := s.Q.LeasesResign(ctx, s.Pool, string(owner))
	if err != nil {
		return 0, fmt.Errorf("giving up the leases of replica %s: %w", owner, err)
	}
	return int(row.N), nil
}
