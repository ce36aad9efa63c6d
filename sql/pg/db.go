package pg

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

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
