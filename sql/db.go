package sql

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// DB is the database: its connections, its statements, and the kinds of transactions that stores run. Each store embeds
// it.
type DB struct {
	pool   *connections
	direct *pgx.ConnConfig // of the connection that listens
	q      *dbsqlc.Queries
	ttl    time.Duration

	doubt atomic.Int64 // until when it is doubted that messages can be stored, in nanoseconds since 1970
}

// dbOptions name a database and bound its connections; see [Options].
type dbOptions struct {
	URL       string
	DirectURL string
	Pooler    bool
	MaxConns  int
	LeaseTTL  time.Duration
}

// openDB connects to a database. It fails when the database does not answer within ctx.
func openDB(ctx context.Context, o dbOptions) (*DB, error) {
	pool, listen, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.LeaseTTL <= 0 {
		o.LeaseTTL = 5 * time.Second
	}
	db := &DB{pool: pool, direct: listen, q: dbsqlc.New(), ttl: o.LeaseTTL}
	if err := db.Ping(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// Close gives all connections back. It waits for those in use.
func (d *DB) Close() {
	d.pool.Close()
	d.pool.heart.Close()
}

// doubtTime is how long a message that could not be stored stands for all that may come.
const doubtTime = 2 * time.Second

// errDoubt says that the database answers, but does not do what it is there for.
var errDoubt = errors.New("a message could not be stored a moment ago")

// Ping asks the database whether it answers and takes writes: one that was demoted does not, and is left for good. Where a
// disk is full or a table hangs it answers as ever; then the messages of the last seconds tell.
func (d *DB) Ping(ctx context.Context) error {
	readOnly, err := d.q.ReadOnly(ctx, d.pool.heart)
	switch {
	case err != nil:
	case readOnly:
		d.pool.renew()
		err = ErrReadOnly
	case time.Now().UnixNano() < d.doubt.Load():
		err = errDoubt
	}
	if err != nil {
		return fmt.Errorf("asking the database for an answer: %w", err)
	}
	return nil
}

// fenced runs do in one transaction that holds the session's row, if the lease is the current one: a takeover comes
// before it, and do never runs, or after it. do gets the row as it stands, and may run more than once.
func (d *DB) fenced(ctx context.Context, l sessions.Lease, do func(pgx.Tx, *dbsqlc.Session) error) error {
	return d.patient(ctx, func(tx pgx.Tx) error {
		row, err := d.q.LeaseLock(ctx, tx, &dbsqlc.LeaseLockParams{
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

// found turns the absence of a row into sessions.ErrNotFound.
func found(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return sessions.ErrNotFound
	}
	return err
}

// divisionByZero is how a statement says that it must be undone as a whole; see TurnCommit.
const divisionByZero = "22012"

func isCode(err error, code string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == code
}

// begin opens a transaction that the server ends, with the connection, after 5 s in which nothing was asked. A process that
// is frozen or cut off would hold its locks for hours. The setting ends with the transaction: it works through a pooler, too.
//
//go:embed orders/begin.sql
var begin string

// patient runs a transaction, and again where it clashed with another, or had to wait for a turn: do may run more than once.
func (d *DB) patient(ctx context.Context, do func(pgx.Tx) error) error {
	for tries := 1; ; tries++ {
		err := pgx.BeginTxFunc(ctx, d.pool, pgx.TxOptions{BeginQuery: begin}, do)
		if o, ok := errors.AsType[*openTurn](err); ok {
			if err := d.ended(ctx, o); err != nil {
				return err
			}
			continue
		}
		if !clashed(ctx, err, tries) {
			return err
		}
	}
}

// locked runs do in one transaction that holds the session's row, whoever has its lease. It may run more than once.
func (d *DB) locked(ctx context.Context, key sessions.Key, do func(pgx.Tx, *dbsqlc.Session) error) error {
	return d.patient(ctx, func(tx pgx.Tx) error {
		row, err := d.q.SessionLock(ctx, tx, key)
		if err != nil {
			return found(err)
		}
		return do(tx, &row)
	})
}

// acceptPause is how long Accept waits before it tries again.
const acceptPause = 100 * time.Millisecond

// insist repeats a try for a message while the database is away or refuses to work, until ctx's deadline, where it has
// one: a message that is not accepted in that time may never come again.
func (d *DB) insist(ctx context.Context, try func() error) error {
	t := time.NewTicker(acceptPause)
	defer t.Stop()
	_, patient := ctx.Deadline()
	var before error // of an earlier try: the last one may end with the time alone
	for {
		err := try()
		if err == nil {
			d.doubt.Store(0)
			return nil
		}
		if err = refused(err); !errors.Is(err, sessions.ErrRefused) {
			d.doubt.Store(time.Now().Add(doubtTime).UnixNano())
		}
		if patient && !errors.Is(err, sessions.ErrRefused) {
			select {
			case <-t.C:
				if ctx.Err() == nil {
					before = err
				}
				continue
			case <-ctx.Done():
			}
		}
		if before != nil && errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w; the try before: %w", err, before)
		}
		return err
	}
}
