package pg

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sessions/retry"
	"ebb/sql/dbsqlc"
)

// Options name a database and bound its connections. The options of package sql document each field.
type Options struct {
	URL       string
	DirectURL string
	Pooler    bool
	MaxConns  int
	LeaseTTL  time.Duration
	Configure func(*pgxpool.Config)
}

// Pool repeats a single statement after a conflict with others. A sequence of statements needs [DB.InTx].
type Pool struct {
	*pgxpool.Pool
	// Heartbeats serves heartbeats, leader election and pings, which must not wait behind statements that hang.
	Heartbeats *Pool

	blocks bool // transactions need a block, as on a cluster
	// pages serves the console: messages must not wait behind its statements.
	pages *Pool
	// most bounds a statement outside a transaction, with the wait for its connection; 0: no bound.
	most time.Duration
}

const (
	heartbeatConns = 2
	pageConns      = 4
	pageStatement  = 10 * time.Second
)

// A vanished server answers no connection attempt, and a restored one answers the next.
const connectTime = 5 * time.Second

// connect opens no connection yet. The configuration is the listening connection's.
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
		// A statement's types are requested once. Then it is one message, without a name that a server would have to
		// know.
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	} else {
		config.AfterConnect = configureConn // a pooler would apply it to other clients' connections, and not to all of ours
	}
	config.MaxConns = 10
	if o.MaxConns > 0 {
		config.MaxConns = int32(min(o.MaxConns, math.MaxInt32))
	}
	for _, c := range []*pgx.ConnConfig{config.ConnConfig, listen} {
		writable(c)
		detectDeadConns(c)
		fixFormats(c)
	}
	config.ShouldPing = shouldPing
	p := &Pool{Heartbeats: &Pool{}}
	config.ConnConfig.OnPgError = p.staysUsable
	heartbeats := config.Copy()
	heartbeats.MaxConns, heartbeats.MinConns, heartbeats.MinIdleConns = heartbeatConns, 0, 0
	if p.Heartbeats.Pool, err = pgxpool.NewWithConfig(ctx, heartbeats); err != nil {
		return nil, nil, fmt.Errorf("connecting to the database: %w", err)
	}
	p.pages = &Pool{Heartbeats: p.Heartbeats, most: pageStatement}
	shown := heartbeats.Copy()
	shown.MaxConns = pageConns
	if p.pages.Pool, err = pgxpool.NewWithConfig(ctx, shown); err != nil {
		p.Heartbeats.Pool.Close()
		return nil, nil, fmt.Errorf("connecting to the database: %w", err)
	}
	if o.Configure != nil {
		o.Configure(config)
	}
	if p.Pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		p.Heartbeats.Pool.Close()
		p.pages.Pool.Close()
		return nil, nil, fmt.Errorf("connecting to the database: %w", err)
	}
	return p, listen, nil
}

func (p *Pool) renew() {
	p.Reset()
	p.Heartbeats.Reset()
	p.pages.Reset()
}

// withTimeout returns a context for one statement. The driver asks the server to cancel a statement whose context ends.
func (p *Pool) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.most <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, p.most)
}

// writable bounds a connection attempt. It also skips read-only hosts when the address names several and does not
// choose one kind.
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

// fixFormats keeps settings of the server, the database or the role from changing how texts and dates are read and written. Poolers in
// transaction mode track both parameters for each client.
func fixFormats(c *pgx.ConnConfig) {
	c.RuntimeParams["client_encoding"] = "UTF8"
	c.RuntimeParams["datestyle"] = "ISO"
}

// A ping would also report a connection that the other side ended, but a slow answer would delay the statements after
// it.
func shouldPing(_ context.Context, p pgxpool.ShouldPingParams) bool {
	return p.IdleDuration > time.Second && p.Conn.PgConn().CheckConn() != nil //nolint:staticcheck // what it does not see, statements do
}

// staysUsable reports whether the connection stays usable.
func (p *Pool) staysUsable(_ *pgconn.PgConn, e *pgconn.PgError) bool {
	if e.Code == readOnly {
		// The server was demoted, or its cluster manager made it read-only. New connections may lead to another server.
		p.renew()
		return false
	}
	return !strings.EqualFold(e.Severity, "FATAL")
}

func withHint(err error) error {
	if IsCode(err, "26000") || IsCode(err, "42P05") {
		return fmt.Errorf("%w: where a pooler hands out connections by the transaction, database.pooler must be %q", err, "transaction")
	}
	return err
}

// configureConn applies optional settings, which a server may refuse.
func configureConn(ctx context.Context, c *pgx.Conn) error {
	if err := dbsqlc.New().ConnectionSettings(ctx, c); err != nil && c.IsClosed() {
		return err
	}
	return nil
}

const maxClashes = 10

// The pauses sum up to half a second on average, and to one second at most.
var clashPauses = retry.Pauses{First: time.Millisecond, Max: 256 * time.Millisecond, Jitter: 1}

// Clashed reports whether concurrent transactions rolled this one back. It first waits a short random time, lest they
// meet again.
func Clashed(ctx context.Context, err error, tries int) bool {
	if tries >= maxClashes || !IsCode(err, serializationFailure) && !IsCode(err, deadlockDetected) {
		return false
	}
	return retry.Sleep(ctx, clashPauses.After(tries-1))
}

const (
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
)

// Exec implements dbsqlc.DBTX.
func (p *Pool) Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error) {
	ctx, end := p.withTimeout(ctx)
	defer end()
	for tries := 1; ; tries++ {
		tag, err := p.Pool.Exec(ctx, statement, args...)
		if !Clashed(ctx, err, tries) {
			return tag, withHint(err)
		}
	}
}

// QueryRow implements dbsqlc.DBTX.
func (p *Pool) QueryRow(ctx context.Context, statement string, args ...any) pgx.Row {
	return scan(func(dest []any) error {
		ctx, end := p.withTimeout(ctx)
		defer end()
		for tries := 1; ; tries++ {
			err := p.Pool.QueryRow(ctx, statement, args...).Scan(dest...)
			if !Clashed(ctx, err, tries) {
				return withHint(err)
			}
		}
	})
}

type scan func(dest []any) error

// Scan implements pgx.Row.
func (s scan) Scan(dest ...any) error { return s(dest) }

// Query implements dbsqlc.DBTX.
func (p *Pool) Query(ctx context.Context, statement string, args ...any) (pgx.Rows, error) {
	ctx, end := p.withTimeout(ctx)
	again := func() (pgx.Rows, error) { return p.Pool.Query(ctx, statement, args...) }
	rows, err := again()
	return &retryingRows{Rows: rows, ctx: ctx, end: end, again: again, tries: 1}, err
}

// A conflict before the first row repeats the query. A later one is the caller's.
type retryingRows struct {
	pgx.Rows
	ctx   context.Context //nolint:containedctx // of the one call that the rows belong to
	end   context.CancelFunc
	again func() (pgx.Rows, error)
	tries int // 0 after a row
}

// Close implements pgx.Rows.
func (r *retryingRows) Close() {
	r.Rows.Close()
	r.end()
}

// Next implements pgx.Rows.
func (r *retryingRows) Next() bool {
	for !r.Rows.Next() {
		if r.tries == 0 || !Clashed(r.ctx, r.Err(), r.tries) {
			return false
		}
		rows, _ := r.again()
		r.Rows, r.tries = rows, r.tries+1
	}
	r.tries = 0
	return true
}

// A plan for all parameters reads all facts of a reader's scopes, where few were found.
type planEach struct{ dbsqlc.DBTX }

// Query implements dbsqlc.DBTX.
func (p planEach) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return p.DBTX.Query(ctx, sql, append([]any{pgx.QueryExecModeCacheDescribe}, args...)...)
}
