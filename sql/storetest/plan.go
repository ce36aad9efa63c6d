package storetest

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Planner stands where queries expect a database, and instead of running them has them explained.
type Planner struct {
	*pgxpool.Pool
	Plan string
}

// Query implements dbsqlc.DBTX: no row comes back.
func (p *Planner) Query(ctx context.Context, query string, args ...any) (pgx.Rows, error) {
	rows, err := p.Pool.Query(ctx, "EXPLAIN "+query, args...)
	if err != nil {
		return nil, err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	p.Plan = strings.Join(lines, "\n")
	return p.Pool.Query(ctx, "SELECT WHERE false")
}

// QueryRow implements dbsqlc.DBTX: the row has one number.
func (p *Planner) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	rows, err := p.Query(ctx, query, args...)
	if err != nil {
		return failedRow{err}
	}
	rows.Close()
	return p.Pool.QueryRow(ctx, "SELECT 0::bigint")
}

// SendBatch implements dbsqlc.DBTX: the plan is that of the last statement, and nothing is changed.
func (p *Planner) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		rows, err := p.Query(ctx, q.SQL, q.Arguments...)
		if err != nil {
			p.Plan = err.Error()
			continue
		}
		rows.Close()
	}
	return noResults{}
}

type noResults struct{ pgx.BatchResults }

// Exec implements pgx.BatchResults.
func (noResults) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, nil }

// QueryRow implements pgx.BatchResults.
func (noResults) QueryRow() pgx.Row { return failedRow{pgx.ErrNoRows} }

// Close implements pgx.BatchResults.
func (noResults) Close() error { return nil }

// failedRow is the row of a query that failed.
type failedRow struct{ err error }

// Scan implements pgx.Row.
func (r failedRow) Scan(...any) error { return r.err }

// Exec implements dbsqlc.DBTX: nothing is changed.
func (p *Planner) Exec(ctx context.Context, query string, args ...any) (pgconn.CommandTag, error) {
	rows, err := p.Query(ctx, query, args...)
	if err == nil {
		rows.Close()
	}
	return pgconn.CommandTag{}, err
}

// RowPlanner explains queries of one row, too. The row has no value.
type RowPlanner struct{ *Planner }

// QueryRow implements dbsqlc.DBTX.
func (p RowPlanner) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	rows, err := p.Query(ctx, query, args...)
	if err == nil {
		rows.Close()
	}
	return p.Pool.QueryRow(ctx, "SELECT WHERE false")
}
