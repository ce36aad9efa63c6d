package erasure

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// spare returns a [pg.OpenWork] if an erasure must not end the running work of a locked session. The turn that asks for the
// erasure goes on anyway.
func (s *Store) spare(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, asking sessions.Lease) error {
	owner := pg.OrZero(row.LeaseOwner)
	if max(row.CutTurns, row.CutUpkeep) < sessions.MaxCuts || owner == "" {
		return nil
	}
	o := &pg.OpenWork{
		Key: row.SessionKey, Term: row.LeaseTerm,
		Asks: row.SessionKey == asking.Key && owner == asking.Owner && row.LeaseTerm == asking.Term,
	}
	open, err := s.IsWorkOpen(ctx, tx, o)
	if err != nil || !open {
		return err
	}
	return o
}
