package pg

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sql/dbsqlc"
)

// Pool are those that the store shares. A single statement that clashed with others is done again; what takes
// several is for [DB.InTx].
type Pool struct {
	*pgxpool.Pool
	// Heartbeats is what a replica's life hangs on: heartbeats, who leads, whether the server answers. None of them waits for a
	// place behind statements that hang.
	Heartbeats *Pool
}

// heartConns is how many connections Heartbeats holds at most.
const heartConns = 2

// connectTime bounds one try to connect where the address does not. A server that vanished without a word answers none of
// them, and one that came back answers the next.
const connectTime = 5 * time.Second

// connect makes the store's connections, none yet, and says how the one that listens is to be made.
func connect(ctx context.Context, o Options) (*Pool, *pgx.ConnConfig, error) {
	config, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the database address: %w", err)
	}
	listen := config.ConnConfig.Copy()
	if o.DirectURL != "" {
		if listen, err = pgx.ParseConfig(o.DirectURL); err != nil {
			return nil, nil, fmt.Errorf("reading the direct database address: %w", err)
		}
	}
	if o.Pooler {
		// The types of a statement are asked for once; after that it is one message, without a name that a server would have
		// to know.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	} else {
		config.AfterConnect = arrange // behind a pooler it would meet some connections of others, and not all of ours
	}
	config.MaxConns = 10
	if o.MaxConns > 0 {
		config.MaxConns = int32(min(o.MaxConns, math.MaxInt32))
	}
	for _, c := range []*pgx.ConnConfig{config.ConnConfig, listen} {
		writable(c)
		lively(c)
	}
	config.ShouldPing = broken
	p := &Pool{Heartbeats: &Pool{}}
	config.ConnConfig.OnPgError = p.heard
	heart := config.Copy()
	heart.MaxConns, heart.MinConns, heart.MinIdleConns = heartConns, 0, 0
	if p.Heartbeats.Pool, err = pgxpool.NewWithConfig(ctx, heart); err != nil {
		return nil, nil, fmt.Errorf("connecting to the database: %w", err)
	}
	if p.Pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		p.Heartbeats.Pool.Close()
		return nil, nil, fmt.Errorf("connecting to the database: %w", err)
	}
	return p, listen, nil
}

// renew has every connection made anew that is there now.
func (p *Pool) renew() {
	p.Reset()
	p.Heartbeats.Reset()
}

// writable bounds the time that a try to connect takes, and has it pass over hosts that take no writes where the address
// names several and does not say which of them is wanted.
func writable(c *pgx.ConnConfig) {
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = connectTime
	}
	for _, f := range c.Fallbacks {
		if c.ValidateConnect == nil && (f.Host != c.Host || f.Port != c.Port) {
			c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
		}
	}
}

// broken reports whether a connection that nobody used for a while was ended by the other side, which asking the server
// would tell as well: but where an answer takes seconds, it would take them from all that comes after it.
func broken(_ context.Context, p pgxpool.ShouldPingParams) bool {
	return p.IdleDuration > time.Second && p.Conn.PgConn().CheckConn() != nil //nolint:staticcheck // what it does not see, statements do
}

// heard looks at each error of a server before anybody else does, and says whether the connection is still of use.
func (p *Pool) heard(_ *pgconn.PgConn, e *pgconn.PgError) bool {
	if e.Code == readOnly {
		// The server was demoted, or its keepers made it so: connections that are made from now on may lead to another one.
		p.renew()
		return false
	}
	return !strings.EqualFold(e.Severity, "FATAL")
}

const readOnly = "25006"

// hinted says of a prepared statement that is unknown, or there already, what it comes from.
func hinted(err error) error {
	if IsCode(err, "26000") || IsCode(err, "42P05") {
		return fmt.Errorf("%w: where a pooler hands out connections by the transaction, database.pooler must be %q", err, "transaction")
	}
	return err
}

// arrange sets what is better for a connection. A server that refuses does without.
func arrange(ctx context.Context, c *pgx.Conn) error {
	if err := dbsqlc.New().ConnectionSettings(ctx, c); err != nil && c.IsClosed() {
		return err
	}
	return nil
}

// maxClashes is how often something is done that clashes with what others do at the same time.
const maxClashes = 10

// Clashed reports whether err says that a transaction was undone because of others at the same time, and that the same
// may be done again; it waits for a moment then, a random one, so that those who met do not meet again.
func Clashed(ctx context.Context, err error, tries int) bool {
	if tries >= maxClashes || !IsCode(err, serializationFailure) && !IsCode(err, deadlockDetected) {
		return false
	}
	t := time.NewTimer(rand.N(time.Millisecond << tries)) // half a second in all on average, at the very most one
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
)

// Exec implements dbsqlc.DBTX.
func (p *Pool) Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error) {
	for tries := 1; ; tries++ {
		tag, err := p.Pool.Exec(ctx, statement, args...)
		if !Clashed(ctx, err, tries) {
			return tag, hinted(err)
		}
	}
}

// QueryRow implements dbsqlc.DBTX.
func (p *Pool) QueryRow(ctx context.Context, statement string, args ...any) pgx.Row {
	return scan(func(dest []any) error {
		for tries := 1; ; tries++ {
			err := p.Pool.QueryRow(ctx, statement, args...).Scan(dest...)
			if !Clashed(ctx, err, tries) {
				return hinted(err)
			}
		}
	})
}

type scan func(dest []any) error

// Scan implements pgx.Row.
func (s scan) Scan(dest ...any) error { return s(dest) }

// Query implements dbsqlc.DBTX.
func (p *Pool) Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error) {
	again := func() (pgx.Rows, error) { return p.Pool.Query(ctx, statement, args...) }
	rows, err := again()
	return &patientRows{Rows: rows, ctx: ctx, again: again, tries: 1}, err
}

// patientRows asks anew where the question clashed before its first row was seen. A clash after that is the caller's.
type patientRows struct {
	pgx.Rows
	ctx   context.Context //nolint:containedctx // of the one call that the rows belong to
	again func() (pgx.Rows, error)
	tries int // 0: a row was seen
}

// Next implements pgx.Rows.
func (r *patientRows) Next() bool {
	for !r.Rows.Next() {
		if r.tries == 0 || !Clashed(r.ctx, r.Err(), r.tries) {
			return false
		}
		rows, _ := r.again() // its error is that of the rows, too
		r.Rows, r.tries = rows, r.tries+1
	}
	r.tries = 0
	return true
}

// planned has each statement planned for its own parameters. Whether the index on terms or that on places is the faster
// depends on the session: a plan that serves all of them reads the whole of the long ones.
type planEach struct{ *Pool }

// Query implements dbsqlc.DBTX.
func (p planEach) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return p.Pool.Query(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}
