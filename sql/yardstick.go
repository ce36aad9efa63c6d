package sql

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Yardstick does the least that a server can be asked to keep: one row changed, one commit. What Ebb does with a server
// is measured beside it. It makes a table of its own, so it is for databases that are made to be measured.
type Yardstick struct{ pool *pgxpool.Pool }

// OpenYardstick connects with up to conns connections and makes a row for each of as many workers.
func OpenYardstick(ctx context.Context, url string, conns int) (*Yardstick, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("reading the database address: %w", err)
	}
	config.MaxConns = int32(min(max(conns, 1), 1000))
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the database: %w", err)
	}
	// Room on the page for the next version of a row: nothing but the row and its commit is written.
	for _, statement := range []string{
		"CREATE TABLE IF NOT EXISTS yardstick (worker integer PRIMARY KEY, n bigint NOT NULL DEFAULT 0) WITH (fillfactor = 10)",
		"INSERT INTO yardstick (worker) SELECT generate_series(0, 999) ON CONFLICT DO NOTHING",
	} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			pool.Close()
			return nil, fmt.Errorf("making the table of the yardstick: %w", err)
		}
	}
	return &Yardstick{pool: pool}, nil
}

// Close gives the connections back.
func (y *Yardstick) Close() { y.pool.Close() }

// Commit changes the row of a worker, 0 to 999, and returns when that is on disk.
func (y *Yardstick) Commit(ctx context.Context, worker int) error {
	if _, err := y.pool.Exec(ctx, "UPDATE yardstick SET n = n + 1 WHERE worker = $1", worker); err != nil {
		return fmt.Errorf("committing a row of the yardstick: %w", err)
	}
	return nil
}

// Server is the version of the server and whether it waits for the disk.
func (y *Yardstick) Server(ctx context.Context) (version string, durable bool, err error) {
	row := y.pool.QueryRow(ctx, "SELECT split_part(current_setting('server_version'), ' ', 1), current_setting('fsync')::boolean")
	if err := row.Scan(&version, &durable); err != nil {
		return "", false, fmt.Errorf("asking the server for its version: %w", err)
	}
	return version, durable, nil
}

// Tidy leaves no work for the server's own housekeeping, which would else fall into what is measured next.
func (y *Yardstick) Tidy(ctx context.Context) error {
	for _, statement := range []string{"VACUUM ANALYZE", "CHECKPOINT"} {
		if _, err := y.pool.Exec(ctx, statement); err != nil {
			return fmt.Errorf("tidying the server: %w", err)
		}
	}
	return nil
}

// SlowCommits makes every durable commit of later connections last micros microseconds longer, 0 for no longer: what a
// stretch of work loses by that is the number of commits that it waits for.
func (y *Yardstick) SlowCommits(ctx context.Context, micros int) error {
	var database string
	if err := y.pool.QueryRow(ctx, "SELECT quote_ident(current_database())").Scan(&database); err != nil {
		return fmt.Errorf("asking for the name of the database: %w", err)
	}
	for _, setting := range []string{"commit_siblings = 0", fmt.Sprintf("commit_delay = %d", micros)} {
		if _, err := y.pool.Exec(ctx, "ALTER DATABASE "+database+" SET "+setting); err != nil {
			return fmt.Errorf("setting how long a commit lasts: %w", err)
		}
	}
	return nil
}
