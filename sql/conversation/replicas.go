package conversation

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Replicas knows the running replicas, and which of them leads.
type Replicas struct{ db *pg.DB }

// NewReplicas returns the replicas of a database.
func NewReplicas(db *pg.DB) *Replicas { return &Replicas{db} }

// Mark implements sessions.Elector. It notifies every other replica of a change.
func (s *Replicas) Mark(ctx context.Context, owner sessions.ReplicaID, st sessions.ReplicaStatus) error {
	n, err := s.db.Q.ReplicaMark(ctx, s.db.Pool.Heartbeats, &dbsqlc.ReplicaMarkParams{Owner: owner, Connected: st.Connected, Draining: st.Draining})
	if err != nil {
		return fmt.Errorf("noting how replica %s stands: %w", owner, err)
	}
	if n > 0 {
		wake(ctx, s.db.Q, s.db.Pool.Heartbeats, toAll)
	}
	return nil
}

// Leader implements sessions.Elector.
func (s *Replicas) Leader(ctx context.Context) (sessions.Leader, error) {
	row, err := s.db.Q.ReplicaLeads(ctx, s.db.Pool.Heartbeats, s.db.TTL.Seconds())
	if errors.Is(err, pgx.ErrNoRows) {
		return sessions.Leader{}, nil
	}
	if err != nil {
		return sessions.Leader{}, fmt.Errorf("asking which replica leads: %w", err)
	}
	return sessions.Leader{Replica: row.ID, Connected: row.Connected}, nil
}

// IsLeader reports whether a replica is the leader. Around a takeover two replicas may see themselves as leader.
func (s *Replicas) IsLeader(ctx context.Context, replica sessions.ReplicaID) (bool, error) {
	l, err := s.Leader(ctx)
	return err == nil && l.Replica == replica, err
}
