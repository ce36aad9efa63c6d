package sql

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migrations is the folder of migrations, each named number_what.sql.
func Migrations() fs.FS {
	sub, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	return sub
}

// Migration is one step.
type Migration struct {
	Version   int64
	Name      string
	Applied   bool
	AppliedAt time.Time // zero until applied
}

// Migrate brings the schema up to date and returns the applied steps. Concurrent migrations wait for each other under
// an advisory lock, so url must lead to the server itself, not to a transaction pooler.
func Migrate(ctx context.Context, url string) ([]Migration, error) {
	provider, closeDB, err := migrator(url)
	if err != nil {
		return nil, err
	}
	defer closeDB()
	results, err := provider.Up(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrating the database: %w", err)
	}
	steps := make([]Migration, 0, len(results))
	for _, r := range results {
		steps = append(steps, Migration{
			Version: r.Source.Version, Name: r.Source.Path, Applied: true, AppliedAt: time.Now(),
		})
	}
	return steps, nil
}

// Status lists all steps of the schema in order.
func Status(ctx context.Context, url string) ([]Migration, error) {
	provider, closeDB, err := migrator(url)
	if err != nil {
		return nil, err
	}
	defer closeDB()
	all, err := provider.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the status of migrations: %w", err)
	}
	steps := make([]Migration, 0, len(all))
	for _, s := range all {
		steps = append(steps, Migration{
			Version: s.Source.Version, Name: s.Source.Path,
			Applied: s.State == goose.StateApplied, AppliedAt: s.AppliedAt,
		})
	}
	return steps, nil
}

// Migrated reports whether any step of the schema was ever applied. It needs no rights to change anything.
func Migrated(ctx context.Context, url string) (begun bool, err error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return false, fmt.Errorf("reading the database address: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close() //nolint:errcheck // nothing was written
	if err := db.QueryRowContext(ctx, "SELECT to_regclass('goose_db_version') IS NOT NULL").Scan(&begun); err != nil {
		return false, fmt.Errorf("looking for the schema: %w", err)
	}
	return begun, nil
}

func migrator(url string) (*goose.Provider, func(), error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the database address: %w", err)
	}
	db := stdlib.OpenDB(*config)
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return nil, nil, closing(db, fmt.Errorf("preparing the lock of migrations: %w", err))
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, Migrations(), goose.WithSessionLocker(locker))
	if err != nil {
		return nil, nil, closing(db, fmt.Errorf("reading the migrations: %w", err))
	}
	return provider, func() { _ = db.Close() }, nil
}

func closing(db *sql.DB, err error) error {
	_ = db.Close()
	return err
}
