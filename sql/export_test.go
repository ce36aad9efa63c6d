package sql

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// OpenTraced is Open, with a tracer that sees every statement before it is sent.
func OpenTraced(ctx context.Context, o Options, tracer pgx.QueryTracer) (*Store, error) {
	s, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	config := s.db.Pool.Config()
	config.ConnConfig.Tracer = tracer
	s.db.Pool.Close()
	s.db.Pool.Pool, err = pgxpool.NewWithConfig(ctx, config)
	return s, err
}

// OpenCounted is Open, with a count of the bytes that the server sends.
func OpenCounted(ctx context.Context, o Options, read *atomic.Int64) (*Store, error) {
	s, err := Open(ctx, o)
	if err != nil {
		return nil, err
	}
	config := s.db.Pool.Config()
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return &counted{c, read}, err
	}
	s.db.Pool.Close()
	s.db.Pool.Pool, err = pgxpool.NewWithConfig(ctx, config)
	return s, err
}

// DB is the database of all stores.
func (s *Store) DB() *pg.DB { return s.db }

// ServerCompares reports whether the server compares vectors.
func (s *Store) ServerCompares(ctx context.Context) (bool, error) {
	return s.comparer.ServerCompares(ctx)
}

// Hold runs do in a transaction that holds the row of a lease's session.
func (s *Store) Hold(ctx context.Context, l sessions.Lease, do func() error) error {
	return s.db.WithLease(ctx, l, func(pgx.Tx, *dbsqlc.Session) error { return do() })
}

// SetClock changes the clock of the process, and not the server's.
func (s *Store) SetClock(now time.Time) { s.db.Clock.Set(now, time.Now()) }

type counted struct {
	net.Conn
	read *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

func init() { stopWait = 4 * time.Second }
