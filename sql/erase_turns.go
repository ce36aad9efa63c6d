package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// cutPoll is how often an erasure looks whether the turn has ended that it waits for.
const cutPoll = 50 * time.Millisecond

// openTurn says that an erasure has to wait for a turn: erasures ended [sessions.MaxCutTurns] turns of its session before.
type openTurn struct {
	key  sessions.Key
	term int64
}

func (o *openTurn) Error() string { return fmt.Sprintf("session %s has a turn under way", o.key) }

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

func (s *Store) isOpen(ctx context.Context, db dbsqlc.DBTX, o *openTurn) (bool, error) {
	return s.q.TurnIsOpen(ctx, db, &dbsqlc.TurnIsOpenParams{SessionKey: o.key, Term: o.term, TtlSeconds: s.ttl.Seconds()})
}

// ended waits for the end of a turn. It holds nothing.
func (s *Store) ended(ctx context.Context, o *openTurn) error {
	t := time.NewTicker(cutPoll)
	defer t.Stop()
	for {
		if open, err := s.isOpen(ctx, s.pool, o); err != nil || !open {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", o, context.Cause(ctx))
		}
	}
}
