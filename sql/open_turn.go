package sql

import (
	"context"
	"fmt"
	"time"

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

func (d *DB) isOpen(ctx context.Context, db dbsqlc.DBTX, o *openTurn) (bool, error) {
	return d.q.TurnIsOpen(ctx, db, &dbsqlc.TurnIsOpenParams{SessionKey: o.key, Term: o.term, TtlSeconds: d.ttl.Seconds()})
}

// ended waits for the end of a turn. It holds nothing.
func (d *DB) ended(ctx context.Context, o *openTurn) error {
	t := time.NewTicker(cutPoll)
	defer t.Stop()
	for {
		if open, err := d.isOpen(ctx, d.pool, o); err != nil || !open {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", o, context.Cause(ctx))
		}
	}
}
