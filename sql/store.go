package sql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

var (
	_ sessions.Store = (*Store)(nil)
	_ memory.Store   = (*Store)(nil)
)

// Options says where the database is and how it is used.
type Options struct {
	// URL is a PostgreSQL connection string. It may hold a password and is never logged.
	URL string
	// DirectURL leads to the server itself where URL leads to a pooler, for what a pooler can't do: LISTEN. Empty: URL.
	DirectURL string
	// Pooler says that URL leads to a pooler which hands out connections by the transaction and knows no prepared
	// statements, as PgBouncer before 1.21: every statement is then parsed anew by the server.
	Pooler bool
	// MaxConns is the most connections held at once, not counted the one that listens and two more for heartbeats and
	// the like. 0: 10.
	MaxConns int
	// LeaseTTL is the age at which a replica's heartbeat no longer keeps its leases. 0: 5 s.
	LeaseTTL time.Duration
	// Location is the time zone that the days in the paths of memories are of; memory_get must be given the same one.
	// nil: UTC.
	Location *time.Location
	// Embedder lets searches find by meaning too; nil: by words alone.
	Embedder memory.Embedder
	// EmbedWeight is what a find by meaning counts against one by words, 0 to 1.
	EmbedWeight float64
}

// Store keeps sessions and memory in PostgreSQL. It implements sessions.Store and memory.Store, and lists what
// administrators ask for.
type Store struct {
	pool   *connections
	direct *pgx.ConnConfig // of the connection that listens
	q      *dbsqlc.Queries
	ttl    time.Duration
	loc    *time.Location

	doubt atomic.Int64 // until when it is doubted that messages can be stored, in nanoseconds since 1970

	erasing chan struct{} // a place for each forgetting of a person under way

	meaning     meaning
	embedWeight float64
	comparer    comparer
	settles     together[*dbsqlc.OutboxSettleParams]
	embedMu     sync.Mutex
	embedded    map[string]int64 // by model: the memory up to which all have vectors
}

// handTime is how long a reply counts as being in the hand of the process that committed or listed it, before the
// sweep shows it to that same process again.
const handTime = time.Minute

// Open connects to a database whose schema is up to date; see [Migrate]. It fails when the database does not answer
// within ctx.
func Open(ctx context.Context, o Options) (*Store, error) {
	pool, listen, err := connect(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.LeaseTTL <= 0 {
		o.LeaseTTL = 5 * time.Second
	}
	s := &Store{pool: pool, direct: listen, q: dbsqlc.New(), ttl: o.LeaseTTL, loc: cmp.Or(o.Location, time.UTC)}
	s.settles.do, s.erasing = s.settleAll, make(chan struct{}, maxErasing)
	s.meaning.embedder, s.meaning.wait, s.meaning.compare = o.Embedder, embedWait, compareWait
	s.embedWeight, s.embedded = o.EmbedWeight, make(map[string]int64)
	if err := s.Ping(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close gives all connections back. It waits for those in use.
func (s *Store) Close() {
	s.pool.Close()
	s.pool.heart.Close()
}

// doubtTime is how long a message that could not be stored stands for all that may come.
const doubtTime = 2 * time.Second

// errDoubt says that the database answers, but does not do what it is there for.
var errDoubt = errors.New("a message could not be stored a moment ago")

// Ping asks the database whether it answers and takes writes: one that was demoted does not, and is left for good. Where a
// disk is full or a table hangs it answers as ever; then the messages of the last seconds tell.
func (s *Store) Ping(ctx context.Context) error {
	readOnly, err := s.q.ReadOnly(ctx, s.pool.heart)
	switch {
	case err != nil:
	case readOnly:
		s.pool.renew()
		err = ErrReadOnly
	case time.Now().UnixNano() < s.doubt.Load():
		err = errDoubt
	}
	if err != nil {
		return fmt.Errorf("asking the database for an answer: %w", err)
	}
	return nil
}

// fenced runs do in one transaction that holds the session's row, if the lease is the current one: a takeover comes
// before it, and do never runs, or after it. do gets the row as it stands, and may run more than once.
func (s *Store) fenced(ctx context.Context, l sessions.Lease, do func(pgx.Tx, *dbsqlc.Session) error) error {
	return s.patient(ctx, func(tx pgx.Tx) error {
		row, err := s.q.LeaseLock(ctx, tx, &dbsqlc.LeaseLockParams{
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
