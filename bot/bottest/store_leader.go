package bottest

import (
	"context"

	"ebb/sessions"
)

// Mark implements sessions.Elector.
func (s *Store) Mark(ctx context.Context, o sessions.ReplicaID, st sessions.ReplicaStatus) error {
	_, err := do(s, "mark", func() (none, error) { return none{}, s.Mem.Replicas.Mark(ctx, o, st) })
	return err
}

// Leader implements sessions.Elector.
func (s *Store) Leader(ctx context.Context) (sessions.Leader, error) {
	return do(s, "leader", func() (sessions.Leader, error) { return s.Mem.Replicas.Leader(ctx) })
}
