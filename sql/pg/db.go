package pg

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
	Pool         *Pool
	ListenConfig *pgx.ConnConfig // of the connection that listens
	Q            *dbsqlc.Queries
	TTL          time.Duration

	doubt atomic.Int64 // until when it is doubted that messages can be stored, in nanoseconds since 1970
}

// Options name a database and bound its connections. The options of package sql document each field.
type Options struct {
	URL       string
	DirectURL string
	Pooler    bool
	MaxConns  int
	LeaseTTL  time.Duration
}

// Open connects to a database. It fails when the database does not answer within ctx.
func Open(ctx context.Context, o Options) (*DB, error) {
	pool, listen, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.LeaseTTL <= 0 {
		o.LeaseTTL = 5 * time.Second
	}
	db := &DB{Pool: pool, ListenConfig: listen, Q: dbsqlc.New(), TTL: o.LeaseTTL}
	if err := db.Ping(ctx); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// Close gives all connections back. It waits for those in use.
func (d *DB) Close() {
	d.Pool.Close()
	d.Pool.Heartbeats.Close()
}

// doubtTime is how long a message that could not be stored stands for all that may come.
const doubtTime = 2 * time.Second

// errDoubt says that the database answers, but does not do what it is there for.
var errDoubt = errors.New("a message could not be stored a moment ago")

// Ping asks the database whether it answers and takes writes: one that was demoted does not, and is left for good. Where a
// disk is full or a table hangs it answers as ever; then the messages of the last seconds tell.
func (d *DB) Ping(ctx context.Context) error {
	readOnly, err := d.Q.ReadOnly(ctx, d.Pool.Heartbeats)
	switch {
	case err != nil:
	case readOnly:
		d.Pool.renew()
		err = ErrReadOnly
	case time.Now().UnixNano() < d.doubt.Load():
		err = errDoubt
	}
	if err != nil {
		return fmt.Errorf("asking the database for an answer: %w", err)
	}
	return nil
}

// WithLease runs do in one transaction that holds the session's row, if the lease is the current one: a takeover comes
// before it, and do never runs, or after it. do gets the row as it stands, and may run more than once.
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

// AsNotFound turns the absence of a row into sessions.ErrNotFound.
func AsNotFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return sessions.ErrNotFound
	}
	return err
}

// DivisionByZero is how a statement says that it must be undone as a whole; see TurnCommit.
const DivisionByZero = "22012"

// IsCode reports whether an error of the server has a SQLSTATE.
func IsCode(err error, code string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == code
}

// begin opens a transaction that the server ends, with the connection, after 5 s in which nothing was asked. A process that
// is frozen or cut off would hold its locks for hours. The setting ends with the transaction: it works through a pooler, too.
//
//go:embed orders/begin.sql
var begin string

// InTx runs a transaction, and again where it clashed with another, or had to wait for a turn: do may run more than once.
func (d *DB) InTx(ctx context.Context, do func(pgx.Tx) error) error {
	for tries := 1; ; tries++ {
		err := pgx.BeginTxFunc(ctx, d.Pool, pgx.TxOptions{BeginQuery: begin}, do)
		if o, ok := errors.AsType[*OpenTurn](err); ok {
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

// WithSession runs do in one transaction that holds the session's row, whoever has its lease. It may run more than once.
func (d *DB) WithSession(ctx context.Context, key sessions.Key, do func(pgx.Tx, *dbsqlc.Session) error) error {
	return d.InTx(ctx, func(tx pgx.Tx) error {
		row, err := d.Q.SessionLock(ctx, tx, key)
		if err != nil {
			return AsNotFound(err)
		}
		return do(tx, &row)
	})
}

// acceptPause is how long Accept waits before it tries again.
const acceptPause = 100 * time.Millisecond

// RetryWhileDown repeats a try for a message while the database is away or refuses to work, until ctx's deadline, where it has
// one: a message that is not accepted in that time may never come again.
func (d *DB) RetryWhileDown(ctx context.Context, try func() error) error {
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
		if err = AsRefused(err); !errors.Is(err, sessions.ErrRefused) {
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

// Replanned returns the pool with each statement planned for its own parameters.
func (d *DB) Replanned() dbsqlc.DBTX { return planEach{d.Pool} }
