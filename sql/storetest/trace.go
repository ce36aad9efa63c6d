package storetest

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sql"
)

// Killer ends a connection's server process before the statement with the number that left has come down to.
type Killer struct {
	Pool *pgxpool.Pool
	Left int // 0: never
	Seen []string
	Err  error
}

// TraceQueryStart implements pgx.QueryTracer.
func (k *Killer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	k.Seen = append(k.Seen, data.SQL)
	if k.Left--; k.Left == 0 {
		k.Err = k.kill(ctx, conn.PgConn().PID())
	}
	return ctx
}

// kill asks until the process is gone. The server's own wait looks ten times a second, and a test kills hundreds.
func (k *Killer) kill(ctx context.Context, pid uint32) error {
	for there := true; there; {
		err := k.Pool.QueryRow(ctx, "SELECT coalesce(bool_and(pg_terminate_backend(pid)), false) FROM pg_stat_activity WHERE pid = $1", int64(pid)).Scan(&there)
		if err != nil {
			return err
		}
	}
	return nil
}

// TraceBatchStart implements pgx.BatchTracer.
func (k *Killer) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	var all []string
	for _, q := range data.Batch.QueuedQueries {
		all = append(all, q.SQL)
	}
	return k.TraceQueryStart(ctx, conn, pgx.TraceQueryStartData{SQL: strings.Join(all, ";\n")})
}

// TraceBatchQuery implements pgx.BatchTracer.
func (k *Killer) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (k *Killer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceQueryEnd implements pgx.QueryTracer.
func (k *Killer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Counting opens a chat whose store counts what the server sends it.
func Counting(t *testing.T, url string) (*Chat, *atomic.Int64) {
	t.Helper()
	read := new(atomic.Int64)
	s, err := sql.Open(t.Context(), sql.Options{URL: url, Configure: func(c *pgxpool.Config) {
		dial := c.ConnConfig.DialFunc
		c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &counted{conn, read}, err
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return NewChat(t, s, "cid", "zhang", false), read
}

type counted struct {
	net.Conn
	read *atomic.Int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.read.Add(int64(n))
	return n, err
}

// TraceQueryStart implements pgx.QueryTracer.
func (l *Late) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if do := l.Do; do != nil && strings.Contains(data.SQL, l.Word) {
		l.Do = nil
		do()
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (l *Late) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Late does something before a statement runs that is known by a word.
type Late struct {
	Word string
	Do   func()
}
