// Package sqltest gives each test a PostgreSQL database of its own, with the schema in place.
//
// The server is the one at EBB_TEST_DATABASE_URL, whose user may create databases, or one that the test process
// starts on a copy of kept data, and ends. Scenarios need 300 connections. EBB_TEST_CITUS_URL names the coordinator of a Citus cluster instead: databases are distributed over its nodes. A test that needs a database fails where none can be had. A package's TestMain should be [Main],
// which stops the server; on Linux it ends with its process anyhow.
package sqltest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"ebb/sessions/retry"
	"ebb/sql"
	"ebb/sql/localpg"
)

// A server or a template takes long on a busy machine.
const startTime = 2 * time.Minute

// The first test that needs a server starts the one of this process.
var server struct {
	sync.Mutex
	url      string // database to create others from
	nodes    []node // each has all databases; the first is at url
	template string
	version  int                // like 150014
	filled   map[string]*filled // by the statements
	private  *localpg.Server
	dir      string
	err      error
}

// filled is a database that tests share.
type filled struct {
	once sync.Once
	name string
	err  error
}

// node is a server of a cluster, or the only one.
type node struct {
	url  string
	idle chan *pgx.Conn
}

// Main runs a package's tests and stops the server after them. It is meant for TestMain, and does not return.
func Main(m interface{ Run() int }) { Exit(m.Run()) }

// Exit stops the server and ends the process with code, or 1 if the server does not stop.
func Exit(code int) { os.Exit(Stop(code)) }

// Stop stops the server and returns code, or 1 if the server does not stop. It is for a TestMain with work after it.
func Stop(code int) int {
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// New opens a pool on a new database with the newest schema, until the test ends.
func New(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.New(tb.Context(), URL(tb))
	if err != nil {
		tb.Fatalf("connecting to the test's database: %v", err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// URL returns the address of a new database with the newest schema. The database is dropped when the test ends. A
// failed test on a server that outlives it keeps and names the database.
func URL(tb testing.TB) string {
	tb.Helper()
	return create(tb, copyOf)
}

// Empty returns the address of an empty database.
func Empty(tb testing.TB) string {
	tb.Helper()
	return create(tb, func(name, _ string) string { return "CREATE DATABASE " + name + " TEMPLATE template0" })
}

// Encoded returns the address of an empty database with an encoding of PostgreSQL.
func Encoded(tb testing.TB, encoding string) string {
	tb.Helper()
	return create(tb, func(name, _ string) string {
		return "CREATE DATABASE " + name + " ENCODING '" + encoding + "' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
	})
}

// Filled opens a pool on a database with the newest schema that the statements have filled. Tests of this process with the same
// statements share it, and only read: to fill a large table takes seconds. Exit drops the database.
func Filled(tb testing.TB, statements ...string) *pgxpool.Pool {
	tb.Helper()
	base, template, err := start()
	if err != nil {
		tb.Fatalf("starting a PostgreSQL for tests: %v", err)
	}
	key := strings.Join(statements, ";")
	server.Lock()
	f := server.filled[key]
	if f == nil {
		f = &filled{name: newName()}
		server.filled[key] = f
	}
	server.Unlock()
	f.once.Do(func() { f.err = fill(context.WithoutCancel(tb.Context()), f.name, template, statements) })
	if f.err != nil {
		tb.Fatalf("filling the tests' database: %v", f.err)
	}
	pool, err := pgxpool.New(tb.Context(), onDatabase(base, f.name))
	if err != nil {
		tb.Fatalf("connecting to the tests' database: %v", err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

func fill(ctx context.Context, name, template string, statements []string) error {
	if err := order(ctx, copyOf(name, template)); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, onDatabase(server.url, name))
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return errors.Join(err, conn.Close(ctx))
		}
	}
	return conn.Close(ctx)
}

// copyOf copies files where the server can choose: that takes half of the CPU of a copy through the server's log, its default since 15.
func copyOf(name, template string) string {
	statement := fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", name, template)
	if server.version >= 15_0000 {
		statement += " STRATEGY FILE_COPY"
	}
	return statement
}

func newName() string { return "ebb_test_" + strings.ToLower(rand.Text()) }

func create(tb testing.TB, statement func(name, template string) string) string {
	tb.Helper()
	base, template, err := start()
	if err != nil {
		tb.Fatalf("starting a PostgreSQL for tests: %v", err)
	}
	name := newName()
	if err := order(tb.Context(), statement(name, template)); err != nil {
		tb.Fatalf("making the test's database: %v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() && os.Getenv("EBB_TEST_DATABASE_URL") != "" {
			tb.Logf("the database %s is kept for a look at it", name)
			return
		}
		ctx := context.WithoutCancel(tb.Context())
		if err := drop(ctx, name); err != nil {
			tb.Errorf("removing the test's database: %v", err)
		}
	})
	return onDatabase(base, name)
}

func start() (base, template string, err error) {
	server.Lock()
	defer server.Unlock()
	if server.url != "" || server.err != nil {
		return server.url, server.template, server.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	server.filled = map[string]*filled{}
	if server.err = startServer(ctx); server.err == nil {
		server.template, server.err = makeTemplate(ctx, server.url)
	}
	return server.url, server.template, server.err
}

func startServer(ctx context.Context) error {
	if url := os.Getenv(ClusterVariable); url != "" {
		return joinCluster(ctx, url)
	}
	if server.url = os.Getenv("EBB_TEST_DATABASE_URL"); server.url != "" {
		server.nodes = []node{newNode(server.url)}
		return nil
	}
	sweep()
	dir, err := OpenDir(prefix)
	if err != nil {
		return err
	}
	server.dir = dir
	if err := copyData(ctx, filepath.Join(dir, "pg")); err != nil {
		return err
	}
	if server.private, err = localpg.Start(ctx, localpg.Options{Dir: filepath.Join(dir, "pg"), NoSync: true}); err != nil {
		return err
	}
	server.url = server.private.URL()
	server.nodes = []node{newNode(server.url)}
	return nil
}

func stop() error {
	server.Lock()
	defer server.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	for _, f := range server.filled {
		if server.private == nil {
			if err := drop(ctx, f.name); err != nil {
				return err
			}
		}
	}
	for _, n := range server.nodes {
		n.close(ctx)
	}
	if server.private != nil {
		cancel() // its data goes: a checkpoint would be for nothing
		if err := server.private.Stop(ctx); err != nil {
			return err
		}
	}
	if server.dir == "" {
		return nil
	}
	return os.RemoveAll(server.dir)
}

const prefix = "ebb-sqltest-"

// Data is in memory, with at least room bytes free there, or else on disk.
const (
	memory = "/dev/shm"
	room   = 4 << 30
	disk   = "/tmp"
)

// OpenDir makes a folder that the server's user can enter, short enough for the name of a socket. A disk costs
// several times the CPU of memory: each database has hundreds of files, and ext4 looks for inodes other than those of
// recently deleted ones.
func OpenDir(prefix string) (string, error) {
	parent := disk
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err == nil && uint64(fs.Bavail)*uint64(fs.Bsize) >= room { //nolint:unconvert // the types differ by system
		parent = memory
	}
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o711)
}

// sweep removes the folders of killed test processes, whose locks are free.
func sweep() {
	locks, _ := filepath.Glob(filepath.Join(memory, prefix+"*", "pg.lock"))
	others, _ := filepath.Glob(filepath.Join(disk, prefix+"*", "pg.lock"))
	for _, path := range append(locks, others...) {
		info, err := os.Stat(path)
		if err != nil || time.Since(info.ModTime()) < time.Minute { // perhaps created and not locked yet
			continue
		}
		f, err := os.Open(path)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		_ = f.Close()
	}
}

// The template is named by the hash of the schema's files. It gets its name when it is complete, since several test
// processes may share a server.
func makeTemplate(ctx context.Context, base string) (string, error) {
	sum, err := hashSchema()
	if err != nil {
		return "", err
	}
	name := "ebb_template_" + sum
	if len(server.nodes) > 1 {
		name += "_cluster"
	}
	conn, err := pgx.Connect(ctx, base)
	if err != nil {
		return "", fmt.Errorf("connecting to the test server: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtext($1))", name); err != nil {
		return "", fmt.Errorf("locking the template: %w", err)
	}
	var there bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1), current_setting('server_version_num')::int", name).Scan(&there, &server.version)
	if err != nil || there {
		return name, err
	}
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + name + "_new WITH (FORCE)", "CREATE DATABASE " + name + "_new"} {
		if err := order(ctx, statement); err != nil {
			return "", fmt.Errorf("making the template: %w", err)
		}
	}
	if _, err := sql.Migrate(ctx, onDatabase(base, name+"_new")); err != nil {
		return "", err
	}
	if len(server.nodes) > 1 {
		if err := distribute(ctx, name+"_new"); err != nil {
			return "", fmt.Errorf("distributing the template: %w", err)
		}
	}
	if err := order(ctx, "ALTER DATABASE "+name+"_new RENAME TO "+name); err != nil {
		return "", fmt.Errorf("naming the template: %w", err)
	}
	return name, nil
}

func hashSchema() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(sql.SchemaFiles(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(sql.SchemaFiles(), path)
		fmt.Fprintf(h, "%s %d\n", path, len(content))
		h.Write(content)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:6]), err
}

// order executes a statement on each node, at the same time.
func order(ctx context.Context, statement string) error {
	errs := make([]error, len(server.nodes))
	var all sync.WaitGroup
	for i, n := range server.nodes {
		all.Go(func() { errs[i] = n.order(ctx, statement) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// drop begins with the coordinator, which would open connections to the others again.
func drop(ctx context.Context, name string) error {
	ctx, stop := context.WithTimeout(ctx, startTime)
	defer stop()
	statement := "DROP DATABASE " + name + " WITH (FORCE)"
	for i, n := range server.nodes {
		// The server waits 5 s for the end of connections, and the maintenance daemon of a busy cluster takes longer.
		err := retry.Do(ctx, retry.Pauses{First: time.Second, Max: time.Second}, func() error {
			err := n.order(ctx, statement)
			if e, ok := errors.AsType[*pgconn.PgError](err); err == nil || ok && e.Code == objectInUse {
				return err
			}
			return retry.Permanent(err)
		})
		if err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
	}
	return nil
}

// objectInUse is the code of a database to which connections are open.
const objectInUse = "55006"

func newNode(url string) node { return node{url, make(chan *pgx.Conn, 8)} }

func (n node) close(ctx context.Context) {
	for range len(n.idle) {
		_ = (<-n.idle).Close(ctx) // the server may be gone
	}
}

// order keeps its connections, since a new one takes more CPU than the statement.
func (n node) order(ctx context.Context, statement string) error {
	var conn *pgx.Conn
	select {
	case conn = <-n.idle:
	default:
		var err error
		if conn, err = pgx.Connect(ctx, n.url); err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, statement)
	if conn.IsClosed() {
		return err
	}
	select {
	case n.idle <- conn:
	default:
		err = errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return err
}

func onDatabase(address, name string) string {
	if u, err := url.Parse(address); err == nil && u.Scheme != "" {
		u.Path = "/" + name
		return u.String()
	}
	return address + " dbname=" + name // in the other notation the last word counts
}
