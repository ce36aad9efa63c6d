package sql

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"ebb/sessions/periodic"
	"ebb/sql/citus"
	"ebb/sql/dbsqlc"
)

const schemaName = "schema.sql"

//go:embed schema.sql migrations/*.sql
var schemaFiles embed.FS

// SchemaFiles has schema.sql, the schema of a new database, and the folder migrations, each named number_what.sql, which bring an
// older database to the same schema.
func SchemaFiles() fs.FS { return schemaFiles }

// Migrations begin after the schema of this version, which a release of this commit makes.
const (
	baseline       = 45
	baselineCommit = "976f4093"
)

// ErrOldSchema reports a database that lacks migrations of this program.
var ErrOldSchema = errors.New("the database's schema is older than this program: run bot migrate")

// TooOldError is an ErrOldSchema that no migration of this program mends. Nothing was changed in the database.
type TooOldError struct {
	Version int64
}

// Error names the way out.
func (e TooOldError) Error() string {
	return fmt.Sprintf("the database's schema has version %d, and this program migrates from version %d on: run bot migrate of commit %s first",
		e.Version, baseline, baselineCommit)
}

// Is makes it an ErrOldSchema.
func (TooOldError) Is(target error) bool { return target == ErrOldSchema }

// NewerError reports a schema that a newer release migrated. An older release may serve on it, or fail, as the migration says.
type NewerError struct {
	Version int64 // the schema's
	Known   int64 // the newest one of this program
}

// Error names the way out.
func (e NewerError) Error() string {
	return fmt.Sprintf("the database's schema has version %d of a newer release, and this program knows version %d: run that release, or restore a backup of before",
		e.Version, e.Known)
}

// RunningError reports replicas that a pending migration would break. Nothing was changed in the database.
type RunningError struct {
	Replicas int
	Step     string
}

// Error names the way out.
func (e RunningError) Error() string {
	return fmt.Sprintf("no older release can run on the schema after %s, and some of its replicas run (%d): stop them first", e.Step, e.Replicas)
}

// Migration is one step.
type Migration struct {
	Version   int64
	Name      string
	Applied   bool
	AppliedAt time.Time // zero until applied
}

// Migrate brings the schema up to date and returns the applied steps. A new database gets the whole schema in one step, of the newest
// version. Concurrent migrations wait for each other under an advisory lock, so url must lead to the server itself, not to a
// transaction pooler. New tables of a distributed installation are distributed. It fails with a TooOldError where no migration
// begins, and with a RunningError while replicas run that a migration would break.
func Migrate(ctx context.Context, url string) ([]Migration, error) {
	m, err := openMigrator(url)
	if err != nil {
		return nil, err
	}
	defer m.close()
	steps, err := m.create(ctx)
	if err != nil || steps != nil {
		return steps, err
	}
	if steps, err = m.update(ctx, url); err != nil {
		return nil, err
	}
	return steps, m.complete(ctx) // also what an interrupted run left
}

// update applies the pending steps. Each start of a replica comes here, mostly without any: one statement shows that.
func (m *migrator) update(ctx context.Context, url string) (steps []Migration, err error) {
	pending, err := m.provider.HasPending(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for pending migrations: %w", err)
	}
	if !pending {
		return nil, nil
	}
	if err := m.awaitStop(ctx, url); err != nil {
		return nil, err
	}
	results, err := m.provider.Up(ctx)
	if err != nil {
		return nil, fmt.Errorf("migrating the database: %w", err)
	}
	for _, r := range results {
		steps = append(steps, Migration{
			Version: r.Source.Version, Name: r.Source.Path, Applied: true, AppliedAt: time.Now(),
		})
	}
	return steps, nil
}

// complete distributes new tables of a distributed installation.
func (m *migrator) complete(ctx context.Context) error {
	conn, err := m.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connecting to the database: %w", err)
	}
	defer func() { _ = conn.Close() }()
	return conn.Raw(func(c any) error { return citus.Complete(ctx, c.(*stdlib.Conn).Conn()) }) //nolint:forcetypeassert // openMigrator opened it
}

// Status lists the steps after the baseline in order. It needs no rights to change anything. It fails with a TooOldError where no
// migration begins.
func Status(ctx context.Context, url string) ([]Migration, error) {
	m, err := openMigrator(url)
	if err != nil {
		return nil, err
	}
	defer m.close()
	version, err := m.version(ctx, m.db)
	if err != nil {
		return nil, err
	}
	var steps []Migration
	if version == 0 { // goose would create its table
		for _, s := range m.provider.ListSources() {
			steps = append(steps, Migration{Version: s.Version, Name: s.Path})
		}
		return steps, nil
	}
	all, err := m.provider.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the status of migrations: %w", err)
	}
	for _, s := range all {
		steps = append(steps, Migration{
			Version: s.Source.Version, Name: s.Source.Path,
			Applied: s.State == goose.StateApplied, AppliedAt: s.AppliedAt,
		})
	}
	return steps, nil
}

// CheckNewer fails with a NewerError where the schema is of a newer release. It needs no rights to change anything.
func CheckNewer(ctx context.Context, url string) error {
	m, err := openMigrator(url)
	if err != nil {
		return err
	}
	defer m.close()
	version, err := m.version(ctx, m.db)
	if err != nil {
		return err
	}
	known := int64(baseline)
	for _, s := range m.provider.ListSources() {
		known = max(known, s.Version)
	}
	if version > known {
		return NewerError{Version: version, Known: known}
	}
	return nil
}

type migrator struct {
	db       *sql.DB
	locker   lock.SessionLocker
	store    database.StoreExtender
	provider *goose.Provider
}

func openMigrator(url string) (*migrator, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("reading the database address: %w", err)
	}
	m := &migrator{db: stdlib.OpenDB(*config)}
	if err := m.prepare(); err != nil {
		m.close()
		return nil, fmt.Errorf("preparing migrations: %w", err)
	}
	return m, nil
}

func (m *migrator) prepare() error {
	store, err := database.NewStore(database.DialectPostgres, goose.DefaultTablename)
	if err != nil {
		return err
	}
	m.store = store.(database.StoreExtender)                                                     //nolint:forcetypeassert // goose has it for PostgreSQL
	if m.locker, err = lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300)); err != nil { // a try each second, for five minutes
		return err
	}
	files, err := fs.Sub(schemaFiles, "migrations")
	if err != nil {
		return err
	}
	m.provider, err = goose.NewProvider(goose.DialectPostgres, m.db, files, goose.WithSessionLocker(m.locker))
	return err
}

func (m *migrator) close() { _ = m.db.Close() }

// version is that of the newest applied step, and 0 in a new database.
func (m *migrator) version(ctx context.Context, db database.DBTxConn) (int64, error) {
	var version int64
	there, err := m.store.TableExists(ctx, db)
	if err == nil && there {
		version, err = m.store.GetLatestVersion(ctx, db)
	}
	if err != nil {
		return 0, fmt.Errorf("reading the version of the schema: %w", err)
	}
	if 0 < version && version < baseline {
		return 0, TooOldError{version}
	}
	return version, nil
}

// create gives a new database the schema, in one transaction, and returns no steps for any other database.
func (m *migrator) create(ctx context.Context) (steps []Migration, err error) {
	if version, err := m.version(ctx, m.db); err != nil || version > 0 {
		return nil, err
	}
	conn, err := m.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if err := m.locker.SessionLock(ctx, conn); err != nil {
		return nil, fmt.Errorf("waiting for another migration: %w", err)
	}
	defer func() { _ = m.locker.SessionUnlock(context.WithoutCancel(ctx), conn) }() // the connection's end frees it, too
	if version, err := m.version(ctx, conn); err != nil || version > 0 {            // another one was first
		return nil, err
	}
	if err := conn.Raw(func(c any) error { return findEncoding(ctx, c.(*stdlib.Conn).Conn()) }); err != nil { //nolint:forcetypeassert // opened by stdlib
		return nil, fmt.Errorf("creating the schema: %w", err)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // without effect after the commit
	version, err := m.installSchema(ctx, tx)
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return nil, fmt.Errorf("creating the schema: %w", err)
	}
	return []Migration{{Version: version, Name: schemaName, Applied: true, AppliedAt: time.Now()}}, nil
}

// installSchema creates the schema and records all steps as applied.
func (m *migrator) installSchema(ctx context.Context, tx *sql.Tx) (version int64, err error) {
	schema, err := schemaFiles.ReadFile(schemaName)
	if err != nil {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx, string(schema)); err != nil {
		return 0, err
	}
	versions := []int64{baseline}
	for _, s := range m.provider.ListSources() {
		versions = append(versions, s.Version)
	}
	there, err := m.store.TableExists(ctx, tx)
	if err == nil && !there {
		versions = slices.Insert(versions, 0, 0) // goose expects it
		err = m.store.CreateVersionTable(ctx, tx)
	}
	for _, version = range versions {
		if err == nil {
			err = m.store.Insert(ctx, tx, database.InsertRequest{Version: version})
		}
	}
	return version, err
}

// A migration whose first line ends with needsStop breaks replicas of older releases.
const needsStop = "No older release can run on it."

// A replica runs that had a heartbeat within the last heartbeatSeconds. One that was killed needs as long to be known as dead.
const heartbeatSeconds = 15

var stopWait = (heartbeatSeconds + 5) * time.Second

// awaitStop returns when no replica runs that a pending migration breaks.
func (m *migrator) awaitStop(ctx context.Context, url string) error {
	step, err := m.findBreaking(ctx)
	if err != nil || step == "" {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	running := 0
	ended := time.Now().Add(stopWait)
	return periodic.Poll(ctx, time.Second, func() (bool, error) {
		if running, err = dbsqlc.New().ReplicasRunning(ctx, conn, heartbeatSeconds); err != nil {
			return false, fmt.Errorf("looking for running replicas: %w", err)
		}
		if running > 0 && time.Now().After(ended) {
			return false, RunningError{Replicas: running, Step: step}
		}
		return running == 0, nil
	})
}

// findBreaking returns the name of the first pending migration that breaks replicas of older releases.
func (m *migrator) findBreaking(ctx context.Context) (string, error) {
	all, err := m.provider.Status(ctx)
	if err != nil {
		return "", fmt.Errorf("reading the status of migrations: %w", err)
	}
	for _, s := range all {
		content, err := fs.ReadFile(schemaFiles, path.Join("migrations", s.Source.Path))
		if err != nil {
			return "", err
		}
		first, _, _ := strings.Cut(string(content), "\n")
		if s.State == goose.StatePending && strings.HasSuffix(first, needsStop) {
			return s.Source.Path, nil
		}
	}
	return "", nil
}
