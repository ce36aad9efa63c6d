package pg

import (
	"context"
	"fmt"
	"time"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// cutPoll is how often an erasure looks whether the turn has ended that it waits for.
const cutPoll = 50 * time.Millisecond

// OpenTurn says that an erasure has to wait for a turn: erasures ended [sessions.MaxCutTurns] turns of its session before.
type OpenTurn struct {
	Key  sessions.Key
	Term int64
}

// Error implements error.
func (o *OpenTurn) Error() string { return fmt.Sprintf("session %s has a turn under way", o.Key) }

// IsTurnOpen reports whether the turn is still under way: its lease is current and alive.
func (d *DB) IsTurnOpen(ctx context.Context, db dbsqlc.DBTX, o *OpenTurn) (bool, error) {
	return d.Q.TurnIsOpen(ctx, db, &dbsqlc.TurnIsOpenParams{SessionKey: o.Key, Term: o.Term, TtlSeconds: d.TTL.Seconds()})
}

// ended waits for the end of a turn. It holds nothing.
func (d *DB) ended(ctx context.Context, o *OpenTurn) error {
	t := time.NewTicker(cutPoll)
	defer t.Stop()
	for {
		if open, err := d.IsTurnOpen(ctx, d.Pool, o); err != nil || !open {
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", o, context.Cause(ctx))
		}
	}
}
