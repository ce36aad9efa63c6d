package sql

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// spare returns an [openTurn] where an erasure must not end the turn under way in a locked session. The turn that asks for
// the erasure goes on anyway.
func (s *Store) spare(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, asking sessions.Lease) error {
	owner := orZero(row.LeaseOwner)
	if row.CutTurns < sessions.MaxCutTurns || owner == "" ||
		row.SessionKey == asking.Key && owner == asking.Owner && row.LeaseTerm == asking.Term {
		return nil
	}
	o := &openTurn{key: row.SessionKey, term: row.LeaseTerm}
	open, err := s.isOpen(ctx, tx, o)
	if err != nil || !open {
		return err
	}
	return o
}
