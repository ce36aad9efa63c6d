package pg

import (
	"context"
	_ "embed"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// The server ends this transaction and its connection after 5 s of silence: a frozen process would hold its locks for
// hours. The setting ends with the transaction, so it works through a pooler, too.
//
//go:embed orders/begin.sql
var begin string

// The commit does not wait for the disk.
//
//go:embed orders/begin_unsynced.sql
var beginUnsynced string

// InTx repeats a transaction after a conflict or a wait for an open turn, so do may run more than once.
func (d *DB) InTx(ctx context.Context, do func(pgx.Tx) error) error { return d.inTx(ctx, begin, do) }

func (d *DB) inTx(ctx context.Context, begin string, do func(pgx.Tx) error) error {
	for tries := 1; ; tries++ {
		err := pgx.BeginTxFunc(ctx, d.Pool, pgx.TxOptions{BeginQuery: begin}, do)
		if o, ok := errors.AsType[*OpenWork](err); ok {
			if err := d.ended(ctx, o); err != nil {
				return err
			}
			continue
		}
		if !Clashed(ctx, err, tries) {
			return err
		}
	}
}

// WithLease runs do in a transaction that locks the session's row, when the lease is the current one. A takeover
// before it prevents do; a later one waits. do may run more than once.
func (d *DB) WithLease(ctx context.Context, l sessions.Lease, do func(pgx.Tx, *dbsqlc.Session) error) error {
	return d.InTx(ctx, func(tx pgx.Tx) error {
		row, err := d.Q.LeaseLock(ctx, tx, &dbsqlc.LeaseLockParams{
			SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term,
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return sessions.ErrLeaseLost
		}
		if err != nil {
			return err
		}
		return do(tx, &row)
	})
}

// WithSession is WithLease under any lease. A log without its session gets one. It returns sessions.ErrNotFound for an unknown
// session. Sessions that the work locks too are locked with this one, in the order of their keys.
func (d *DB) WithSession(ctx context.Context, key sessions.Key, do func(pgx.Tx, *dbsqlc.Session) error, too ...sessions.Key) error {
	return d.withSession(ctx, begin, key, do, too)
}

// WithSessionUnsynced is WithSession with a commit that does not wait for the disk. A crash of the server may lose
// it, so the caller makes a later commit that waits, or repeats the work.
func (d *DB) WithSessionUnsynced(ctx context.Context, key sessions.Key, do func(pgx.Tx, *dbsqlc.Session) error, too ...sessions.Key) error {
	return d.withSession(ctx, beginUnsynced, key, do, too)
}

func (d *DB) withSession(
	ctx context.Context, begin string, key sessions.Key, do func(pgx.Tx, *dbsqlc.Session) error, too []sessions.Key,
) error {
	return d.inTx(ctx, begin, func(tx pgx.Tx) error {
		if len(too) > 0 {
			if err := d.LockSessions(ctx, tx, append([]sessions.Key{key}, too...)); err != nil {
				return err
			}
		}
		row, err := d.Q.SessionLock(ctx, tx, key)
		if errors.Is(err, pgx.ErrNoRows) { // perhaps the row alone was deleted
			if err := d.Revive(ctx, PipelineIn(tx), key); err != nil {
				return err
			}
			row, err = d.Q.SessionLock(ctx, tx, key)
		}
		if err != nil {
			return AsNotFound(err)
		}
		return do(tx, &row)
	})
}

// Revive creates the missing sessions of logs, free of a lease. An unknown log has none.
func (d *DB) Revive(ctx context.Context, p *Pipeline, logs ...sessions.Key) error {
	for _, key := range slices.Compact(slices.Sorted(slices.Values(logs))) { // in one order, lest two of them wait for each other
		d.ReviveUnder(ctx, p, &dbsqlc.SessionReviveParams{SessionKey: key})
	}
	return p.Send(ctx)
}

// ReviveUnder queues the creation of a session, if it is missing.
func (d *DB) ReviveUnder(ctx context.Context, p *Pipeline, r *dbsqlc.SessionReviveParams) {
	d.Q.SummariesEnd(ctx, p, []sessions.Key{r.SessionKey})
	d.Q.SessionRevive(ctx, p, []*dbsqlc.SessionReviveParams{r})
}
