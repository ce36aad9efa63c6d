// Package localpg supervises a PostgreSQL of Ebb's own, on a socket that only its user can open.
package localpg

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"ebb/sessions/periodic"
)

// ErrDataInUse says that another process runs a private PostgreSQL on the same data.
var ErrDataInUse = errors.New("the data is in use by another process")

const (
	roleName     = "ebb"
	databaseName = "ebb"
	portName     = "5432" // in the socket's name; no port is opened
)

// Options name the data and settings of a local PostgreSQL.
type Options struct {
	// Dir holds the data and is created at the first start. Dir.lock is its lock, Dir.log the server's log. PostgreSQL refuses to
	// run as root. A process of root gives the folder to another user, or uses one under /var/lib/ebb when that user
	// cannot reach Dir.
	Dir string
	// NoSync trades safety against a crash of the machine for speed.
	NoSync bool
	// Buffers is the server's cache in PostgreSQL's notation ("1GB"); empty: its default.
	Buffers string
}

// Server is alive until Stop. It opens no port, and its socket is in a folder that is closed to other users.
type Server struct {
	dir     string
	sockets string
	bin     string
	user    *account
	noSync  bool
	buffers string
	lock    *os.File
	log     *os.File

	stop    chan struct{}
	stopped chan struct{} // closed when the server has ended and will not restart
	once    sync.Once

	mu      sync.Mutex
	process *os.Process // nil while there is none
}

// Start creates the data at the first start and returns when the server answers. It first stops a server that
// outlived its process, for example after a kill -9. It fails with [ErrDataInUse] while another process holds the
// data.
func Start(ctx context.Context, o Options) (*Server, error) {
	p := &Server{noSync: o.NoSync, buffers: o.Buffers, stop: make(chan struct{}), stopped: make(chan struct{})}
	if err := p.start(ctx, o.Dir); err != nil {
		p.release()
		return nil, fmt.Errorf("starting a private PostgreSQL in %s: %w", o.Dir, err)
	}
	return p, nil
}

// start takes the lock of the data before it touches anything in them: two processes must not start servers on one folder. From there
// on a failure stops what was started.
func (p *Server) start(ctx context.Context, dir string) (err error) {
	if p.user, err = serverAccount(); err != nil {
		return err
	}
	if p.dir, err = placeData(ctx, dir, p.user); err != nil {
		return err
	}
	if p.lock, err = lockData(p.dir + ".lock"); err != nil {
		return err
	}
	if p.bin, err = findBinaries(ctx, p.dir); err != nil {
		return err
	}
	if err := endLeftover(ctx, p.dir); err != nil {
		return err
	}
	if err := p.makeData(ctx); err != nil {
		return err
	}
	if err := p.placeSocket(); err != nil {
		return err
	}
	if p.log, err = os.OpenFile(p.dir+".log", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600); err != nil {
		return err
	}
	failed := make(chan error, 1)
	go p.supervise(context.WithoutCancel(ctx), failed)
	if err := p.waitReady(ctx, failed); err != nil {
		return errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
	}
	// Other processes find the server's address in the lock file after our id.
	holder := fmt.Sprintf("%d\n%s\n", os.Getpid(), p.URL())
	if _, err := p.lock.WriteAt([]byte(holder), 0); err != nil {
		return errors.Join(err, p.Stop(context.WithoutCancel(ctx)))
	}
	zerolog.Ctx(ctx).Info().Str("data", p.dir).Str("binaries", p.bin).Msg("Private PostgreSQL started")
	return nil
}

// Made reports whether a private PostgreSQL has its data in dir. It creates nothing.
func Made(dir string) (bool, error) {
	user, err := serverAccount()
	if err != nil {
		return false, err
	}
	path, _, err := dataPath(dir, user)
	if err != nil {
		return false, err
	}
	_, err = os.Stat(filepath.Join(path, "PG_VERSION"))
	return !errors.Is(err, os.ErrNotExist), nil // An open by us gives a better error.
}

// Running is the connection string of another process's server on dir, or empty.
func Running(ctx context.Context, dir string) (string, error) {
	user, err := serverAccount()
	if err != nil {
		return "", err
	}
	place, err := placeData(ctx, dir, user)
	if err != nil {
		return "", err
	}
	lock, err := lockData(place + ".lock")
	if err == nil {
		return "", lock.Close() // no process holds it
	}
	if !errors.Is(err, ErrDataInUse) {
		return "", err
	}
	holder, err := os.ReadFile(place + ".lock")
	if err != nil {
		return "", err
	}
	_, address, _ := strings.Cut(strings.TrimSpace(string(holder)), "\n")
	return address, nil
}

// URL holds no secret, since the folder of the socket is the guard.
func (p *Server) URL() string { return p.url(databaseName) }

func (p *Server) url(database string) string {
	q := url.Values{"host": {p.sockets}, "port": {portName}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User(roleName), Path: "/" + database, RawQuery: q.Encode()}
	return u.String()
}

// Stop rolls back open transactions and ends the server cleanly. When ctx ends first, the server ends at once and
// recovers at its next start. It may be called more than once.
func (p *Server) Stop(ctx context.Context) error {
	p.once.Do(func() { close(p.stop) })
	p.signal(syscall.SIGINT)
	select {
	case <-p.stopped:
	case <-ctx.Done():
		p.signal(syscall.SIGQUIT)
		select {
		case <-p.stopped:
		case <-time.After(5 * time.Second):
			return fmt.Errorf("stopping the private PostgreSQL in %s: %w", p.dir, ctx.Err())
		}
	}
	p.release()
	return nil
}

// Discard also deletes the data.
func (p *Server) Discard(ctx context.Context) error {
	if err := p.Stop(ctx); err != nil {
		return err
	}
	var err error
	for _, path := range []string{p.dir, p.dir + ".lock", p.dir + ".log"} {
		err = errors.Join(err, os.RemoveAll(path))
	}
	if filepath.Dir(p.dir) == sharedHome {
		_ = os.Remove(sharedHome) // fails while other data is there
	}
	return err
}

func (p *Server) signal(s os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process != nil {
		_ = p.process.Signal(s) // it may have ended by itself
	}
}

func (p *Server) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sockets != "" && p.sockets != p.dir {
		_ = os.RemoveAll(p.sockets)
	}
	for _, f := range []*os.File{p.log, p.lock} { // the lock last
		if f != nil {
			_ = f.Close()
		}
	}
	p.log, p.lock = nil, nil
}

// The complete cluster is moved to its place, so an interrupted start leaves nothing that looks like data.
func (p *Server) makeData(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(p.dir, "PG_VERSION")); err == nil {
		return nil
	}
	if entries, err := os.ReadDir(p.dir); err == nil && len(entries) > 0 {
		return errors.New("the folder is not empty, and holds no database")
	}
	fresh := p.dir + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := p.user.mkdir(fresh); err != nil {
		return err
	}
	var err error
	for _, locale := range []string{"C.UTF-8", "en_US.UTF-8", "C"} {
		if err = p.initdb(ctx, fresh, locale); err == nil {
			break
		}
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(fresh))
	}
	if err := os.Remove(p.dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(fresh, p.dir)
}

func (p *Server) initdb(ctx context.Context, dir, locale string) error {
	args := []string{
		"-D", dir, "-U", roleName, "--auth-local=trust", "--auth-host=reject", "--encoding=UTF8", "--locale=" + locale,
	}
	if p.noSync {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "initdb"), args...)
	p.user.prepareCommand(cmd, dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb with locale %s: %w: %s", locale, err, lastLines(out))
	}
	return nil
}

// The socket is in the data's folder unless its path would be too long.
func (p *Server) placeSocket() error {
	const longest = 103 // limit of macOS; Linux takes 107
	p.sockets = p.dir
	if len(filepath.Join(p.dir, ".s.PGSQL."+portName)) <= longest {
		return nil
	}
	dir, err := os.MkdirTemp("/tmp", "ebb-")
	if err != nil {
		return err
	}
	p.sockets = dir
	return p.user.chown(dir)
}

const pollInterval = 20 * time.Millisecond

// waitReady also creates the database at the first start.
func (p *Server) waitReady(ctx context.Context, failed <-chan error) error {
	var last error
	err := periodic.Poll(ctx, pollInterval, func() (bool, error) {
		if last = p.makeDatabase(ctx); last == nil {
			return true, nil
		}
		select {
		case failure := <-failed:
			out, _ := os.ReadFile(p.dir + ".log")
			return false, fmt.Errorf("the server ended: %w: %s", failure, lastLines(out))
		default:
		}
		return false, nil
	})
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the server does not answer: %w", errors.Join(err, last))
	}
	return err
}

func (p *Server) makeDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.url(maintenance))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var there bool
	err = conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", databaseName).Scan(&there)
	if err != nil || there {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+databaseName)
	return err
}

const maintenance = "postgres"

// NewDatabase returns the address of a copy of template. An empty template gives an empty database. The template
// must have no connections.
func (p *Server) NewDatabase(ctx context.Context, name, template string) (string, error) {
	if template == "" {
		template = "template1"
	}
	err := p.execute(ctx, "CREATE DATABASE "+quoted(name)+" TEMPLATE "+quoted(template))
	if err != nil {
		return "", fmt.Errorf("create database %s: %w", name, err)
	}
	return p.url(name), nil
}

// DropDatabase closes the database's connections first.
func (p *Server) DropDatabase(ctx context.Context, name string) error {
	if err := p.execute(ctx, "DROP DATABASE "+quoted(name)+" WITH (FORCE)"); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }

func (p *Server) execute(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, p.url(maintenance))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement)
	return err
}
