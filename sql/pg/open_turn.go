package pg

import (
	"context"
	"fmt"
	"time"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// cutPoll is the interval in which an erasure checks for the end of a turn.
const cutPoll = 50 * time.Millisecond

// OpenTurn says that an erasure must wait for a turn, since erasures ended [sessions.MaxCutTurns] earlier turns of its
// session.
type OpenTurn struct {
	Key  sessions.Key
	Term int64
}

// Error implements error.
func (o *OpenTurn) Error() string { return fmt.Sprintf("session %s has a turn under way", o.Key) }

// IsTurnOpen reports whether the turn is still open: its lease is current and alive.
func (d *DB) IsTurnOpen(ctx context.Context, db dbsqlc.DBTX, o *OpenTurn) (bool, error) {
	return d.Q.TurnIsOpen(ctx, db, &dbsqlc.TurnIsOpenParams{SessionKey: o.Key, Term: o.Term, TtlSeconds: d.TTL.Seconds()})
}

// ended waits for the end of a turn, without a transaction.
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
