package pg

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// DB is the base of each store.
type DB struct {
	Pool         *Pool
	ListenConfig *pgx.ConnConfig // for the listening connection
	Q            *dbsqlc.Queries
	TTL          time.Duration
	Cluster      bool // Citus: a statement over all sessions asks all nodes
	Clock        *Clock
	Tokens       atomic.Int64 // input and output of model calls, counted by this process since its start

	stalledAt    atomic.Int64 // the last look for stalled transactions, in nanoseconds since 1970
	failingUntil atomic.Int64 // end of the time in which the database counts as failing, in nanoseconds since 1970
}

// Options name a database and bound its connections. The options of package sql document each field.
type Options struct {
	URL       string
	DirectURL string
	Pooler    bool
	MaxConns  int
	LeaseTTL  time.Duration
	Configure func(*pgxpool.Config)
}

// Open fails when the database does not answer within ctx.
func Open(ctx context.Context, o Options) (*DB, error) {
	pool, listen, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.LeaseTTL <= 0 {
		o.LeaseTTL = 5 * time.Second
	}
	db := &DB{Pool: pool, ListenConfig: listen, Q: dbsqlc.New(), TTL: o.LeaseTTL, Clock: &Clock{}}
	err = db.Ping(ctx)
	if err == nil {
		db.Cluster, err = db.Q.OnCluster(ctx, db.Pool)
		db.Pool.blocks, db.Pool.Heartbeats.blocks, db.Pool.pages.blocks = db.Cluster, db.Cluster, db.Cluster
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// Close waits for connections in use.
func (d *DB) Close() {
	d.Pool.Close()
	d.Pool.Heartbeats.Close()
	if d.Pool.pages != nil {
		d.Pool.pages.Close()
	}
}

// ForPages returns the same database over the connections of the console. A statement there ends after 10 s, so that no page,
// search or export keeps a message waiting. It is closed with d.
func (d *DB) ForPages() *DB {
	return &DB{Pool: d.Pool.pages, ListenConfig: d.ListenConfig, Q: d.Q, TTL: d.TTL, Cluster: d.Cluster, Clock: d.Clock}
}

// failingTime follows each message that could not be stored.
const failingTime = 2 * time.Second

var errFailing = errors.New("a message could not be stored a moment ago")

// Ping reports whether the database answers and accepts writes. It closes the connections of a demoted server. A full
// disk or a hanging table shows only in failures of the last seconds.
func (d *DB) Ping(ctx context.Context) error {
	sent := time.Now()
	server, err := d.Q.ReadOnly(ctx, d.Pool.Heartbeats)
	if err == nil {
		d.Clock.Set(server.Clock, sent)
	}
	switch {
	case err != nil:
	case server.ReadOnly:
		d.Pool.renew()
		err = ErrReadOnly
	case time.Now().UnixNano() < d.failingUntil.Load():
		err = errFailing
	}
	if err != nil {
		return fmt.Errorf("asking the database for an answer: %w", err)
	}
	return nil
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

// AsNotFound converts pgx.ErrNoRows into sessions.ErrNotFound.
func AsNotFound(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return sessions.ErrNotFound
	}
	return err
}

// AsLost converts pgx.ErrNoRows of a statement that names its lease into sessions.ErrLeaseLost.
func AsLost(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return sessions.ErrLeaseLost
	}
	return err
}

const (
	// DivisionByZero is the code by which a statement ends its pipeline; see TurnWhole.
	DivisionByZero = "22012"
	// RootOfNegative is that of a second condition in such a statement; see MessageKept.
	RootOfNegative = "2201F"
	// LockNotAvailable is the code of a statement that does not wait for a lock; see TurnRead.
	LockNotAvailable = "55P03"
)

// IsCode reports whether an error has a SQLSTATE.
func IsCode(err error, code string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pg.Code == code
}

// IsConstraint reports whether an error is a violation of a constraint, or of the one of a shard, whose name ends in its number.
func IsConstraint(err error, name string) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return false
	}
	shard, has := strings.CutPrefix(pg.ConstraintName, name)
	return has && strings.Trim(strings.TrimPrefix(shard, "_"), "0123456789") == ""
}

// The server ends this transaction and its connection after 5 s of silence: a frozen process would hold its locks for
// hours. The setting ends with the transaction, so it works through a pooler, too.
//
//go:embed orders/begin.sql
var begin string

// The commit does not wait for the disk.
//
//go:embed orders/begin_unsynced.sql
var beginUnsynced string

const stalledTime = 5 * time.Second

// EndStalled ends transactions that block another one while their process is silent in the middle of a pipeline, as a frozen one is. The
// server has no time limit there. It asks every few seconds, however often it is called.
func (d *DB) EndStalled(ctx context.Context) error {
	now, last := time.Now().UnixNano(), d.stalledAt.Load()
	if now-last < int64(stalledTime) || !d.stalledAt.CompareAndSwap(last, now) {
		return nil
	}
	_, err := d.Q.StalledEnd(ctx, d.Pool.Heartbeats, stalledTime.Seconds())
	return err
}

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

const acceptPause = 100 * time.Millisecond

// RetryWhileDown repeats a try to store a message while the database is away or refuses work, until ctx's deadline. A
// message that is not accepted by then may never come again.
func (d *DB) RetryWhileDown(ctx context.Context, try func() error) error {
	t := time.NewTicker(acceptPause)
	defer t.Stop()
	_, patient := ctx.Deadline()
	var before error // error of an earlier try: the last one may fail only by the deadline
	for {
		err := try()
		if err == nil {
			d.failingUntil.Store(0)
			return nil
		}
		if err = AsRefused(err); !errors.Is(err, sessions.ErrRefused) {
			d.failingUntil.Store(time.Now().Add(failingTime).UnixNano())
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

// Replanned plans each statement for its own parameters.
func (d *DB) Replanned() dbsqlc.DBTX { return planEach{d.Pool} }
