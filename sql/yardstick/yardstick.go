package yardstick

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sql/dbsqlc"
)

// These statements are commands to the server rather than queries.
var (
	//go:embed table.sql
	yardstickTable string
	//go:embed slow.sql
	yardstickSlow string
	//go:embed vacuum.sql
	yardstickVacuum string
	//go:embed checkpoint.sql
	yardstickCheckpoint string
)

// Yardstick measures the smallest durable write: one changed row, one commit, in a table of its own.
type Yardstick struct {
	pool *pgxpool.Pool
	q    *dbsqlc.Queries
}

// Open makes up to conns connections, and as many rows.
func Open(ctx context.Context, url string, conns int) (*Yardstick, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("reading the database address: %w", err)
	}
	config.MaxConns = int32(min(max(conns, 1), 1000))
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the database: %w", err)
	}
	y := &Yardstick{pool: pool, q: dbsqlc.New()}
	if _, err = pool.Exec(ctx, yardstickTable); err == nil {
		err = y.q.YardstickFill(ctx, pool)
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("making the table of the yardstick: %w", err)
	}
	return y, nil
}

// Close closes the connections.
func (y *Yardstick) Close() { y.pool.Close() }

// Commit changes the row of a worker, 0 to 999, and returns when the change is on disk.
func (y *Yardstick) Commit(ctx context.Context, worker int) error {
	if err := y.q.YardstickCommit(ctx, y.pool, worker); err != nil {
		return fmt.Errorf("committing a row of the yardstick: %w", err)
	}
	return nil
}

// Server returns the server's version and whether it waits for the disk.
func (y *Yardstick) Server(ctx context.Context) (version string, durable bool, err error) {
	row, err := y.q.YardstickServer(ctx, y.pool)
	if err != nil {
		return "", false, fmt.Errorf("asking the server for its version: %w", err)
	}
	return row.Version, row.Durable, nil
}

// Tidy finishes the server's own housekeeping, which would disturb the next measurement.
func (y *Yardstick) Tidy(ctx context.Context) error {
	for _, order := range []string{yardstickVacuum, yardstickCheckpoint} {
		if _, err := y.pool.Exec(ctx, order); err != nil {
			return fmt.Errorf("tidying the server: %w", err)
		}
	}
	return nil
}

// SlowCommits delays every durable commit of later connections by micros microseconds, 0 for none. A workload's added
// time then counts the commits that it waits for.
func (y *Yardstick) SlowCommits(ctx context.Context, micros int) error {
	err := pgx.BeginFunc(ctx, y.pool, func(tx pgx.Tx) error {
		if _, err := y.q.YardstickDelay(ctx, tx, strconv.Itoa(micros)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, yardstickSlow)
		return err
	})
	if err != nil {
		return fmt.Errorf("setting how long a commit lasts: %w", err)
	}
	return nil
}
