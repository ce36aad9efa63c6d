package sql

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

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
	// MaxConns is the most connections held at once, the one that listens not counted. 0: 10.
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
	pool   *pgxpool.Pool
	direct *pgx.ConnConfig // of the connection that listens
	q      *dbsqlc.Queries
	ttl    time.Duration
	loc  *time.Location

	meaning     meaning
	embedWeight float64
	comparer    comparer
	embedMu     sync.Mutex
	embedded    map[string]int64 // by model: the memory up to which all have vectors
}

// handTime is how long a reply counts as being in the hand of the process that committed or listed it, before the
// sweep shows it to that same process again.
const handTime = time.Minute

// Open connects to a database whose schema is up to date; see [Migrate]. It fails when the database does not answer
// within ctx.
func Open(ctx context.Context, o Options) (*Store, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("reading the database address: %w", err)
	}
	listen := config.ConnConfig.Copy()
	if o.DirectURL != "" {
		if listen, err = pgx.ParseConfig(o.DirectURL); err != nil {
			return nil, fmt.Errorf("reading the direct database address: %w", err)
		}
	}
	if o.Pooler {
		// The types of a statement are asked for once; after that it is one message, without a name that a server would have
		// to know.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	} else {
		config.AfterConnect = noCompiler // behind a pooler it would meet some connections of others, and not all of ours
	}
	config.MaxConns = 10
	if o.MaxConns > 0 {
		config.MaxConns = int32(min(o.MaxConns, math.MaxInt32))
	}
	if o.LeaseTTL <= 0 {
		o.LeaseTTL = 5 * time.Second
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the database: %w", err)
	}
	s := &Store{pool: pool, direct: listen, q: dbsqlc.New(), ttl: o.LeaseTTL, loc: cmp.Or(o.Location, time.UTC)}
	s.meaning.embedder, s.meaning.wait, s.meaning.compare = o.Embedder, embedWait, compareWait
	s.embedWeight, s.embedded = o.EmbedWeight, make(map[string]int64)
	if err := s.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// noCompiler keeps the server from compiling the plans of a connection: it judges by what it guesses a statement to cost,
// and compiles for tens of milliseconds what a search is done with in two. A server that knows no compiler does without.
func noCompiler(ctx context.Context, c *pgx.Conn) error {
	if _, err := dbsqlc.New().CompilerOff(ctx, c); err != nil && c.IsClosed() {
		return err
	}
	return nil
}

// Close gives all connections back. It waits for those in use.
func (s *Store) Close() { s.pool.Close() }

// Ping asks the database for an answer.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return fmt.Errorf("asking the database for an answer: %w", err)
	}
	return nil
}

// fenced runs do in one transaction that holds the session's row, if the lease is the current one: a takeover comes
// before it, and do never runs, or after it. do gets the row as it stands.
func (s *Store) fenced(ctx context.Context, l sessions.Lease, do func(pgx.Tx, *dbsqlc.Session) error) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
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
