package erasure

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// spare returns a [pg.OpenTurn] when an erasure must not end the open turn of a locked session. The asking turn
// continues anyway.
func (s *Store) spare(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, asking sessions.Lease) error {
	owner := pg.OrZero(row.LeaseOwner)
	if row.CutTurns < sessions.MaxCutTurns || owner == "" ||
		row.SessionKey == asking.Key && owner == asking.Owner && row.LeaseTerm == asking.Term {
		return nil
	}
	o := &pg.OpenTurn{Key: row.SessionKey, Term: row.LeaseTerm}
	open, err := s.IsTurnOpen(ctx, tx, o)
	if err != nil || !open {
		return err
	}
	return o
}
