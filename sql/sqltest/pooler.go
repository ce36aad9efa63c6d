package sqltest

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Bouncer is a PgBouncer in transaction mode before the server of a database. Clients share three connections to a
// database.
type Bouncer struct {
	tb      testing.TB
	server  *pgx.ConnConfig
	port    int
	program string
	dir     string
	cmd     *exec.Cmd
}

// Pooler starts a PgBouncer until the test ends.
func Pooler(tb testing.TB, address string) *Bouncer {
	tb.Helper()
	return PoolerOf(tb, address, `pool_mode = transaction
default_pool_size = 3
max_client_conn = 1000
ignore_startup_parameters = extra_float_digits
`)
}

// PoolerOf adds lines of the section pgbouncer.
func PoolerOf(tb testing.TB, address, settings string) *Bouncer {
	tb.Helper()
	b := &Bouncer{tb: tb, server: parse(tb, address), dir: tb.TempDir()}
	var err error
	if b.program, err = findPooler(); err != nil {
		tb.Fatal(err)
	}
	if b.port, err = freePort(); err != nil {
		tb.Fatalf("looking for a free port: %v", err)
	}
	conf := fmt.Sprintf(`[databases]
* = host=%s port=%d user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
server_login_retry = 1
%s`, b.server.Host, b.server.Port, b.server.User, b.port, settings)
	if err := os.WriteFile(filepath.Join(b.dir, "pooler.ini"), []byte(conf), 0o644); err != nil {
		tb.Fatal(err)
	}
	for d := b.dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		_ = os.Chmod(d, 0o755) // fails on other users' folders
	}
	b.Start()
	tb.Cleanup(b.Stop)
	return b
}

// Start returns once the database answers. It may follow a Stop.
func (b *Bouncer) Start() {
	b.tb.Helper()
	b.cmd = exec.Command(b.program, filepath.Join(b.dir, "pooler.ini"))
	if os.Getuid() == 0 { // PgBouncer refuses to run as root: the database's own user serves
		info, err := os.Stat(b.server.Host)
		if err != nil {
			b.tb.Fatalf("looking whose the server is: %v", err)
		}
		stat := info.Sys().(*syscall.Stat_t)
		b.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}}
	}
	log, err := os.Create(filepath.Join(b.dir, "pooler.log"))
	if err != nil {
		b.tb.Fatal(err)
	}
	defer log.Close()
	b.cmd.Stderr, b.cmd.Stdout = log, log
	if err := b.cmd.Start(); err != nil {
		b.tb.Fatalf("starting PgBouncer: %v", err)
	}
	if err := answers(b.tb, b.through(b.server.Database)); err != nil {
		said, _ := os.ReadFile(log.Name())
		b.tb.Fatalf("PgBouncer does not answer: %v: %s", err, said)
	}
}

// Stop ends the pooler and every connection through it at once.
func (b *Bouncer) Stop() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait() // it was killed
}

// Through returns an address through the pooler.
func (b *Bouncer) Through(address string) string { return b.through(parse(b.tb, address).Database) }

func (b *Bouncer) through(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(b.server.User), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(b.port)),
		Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

func parse(tb testing.TB, address string) *pgx.ConnConfig {
	tb.Helper()
	config, err := pgx.ParseConfig(address)
	if err != nil {
		tb.Fatalf("reading the database address: %v", err)
	}
	return config
}

func answers(tb testing.TB, address string) error {
	tb.Helper()
	for deadline := time.Now().Add(startTime); ; {
		conn, err := pgx.Connect(tb.Context(), address)
		if err == nil {
			return conn.Close(tb.Context())
		}
		if time.Now().After(deadline) || tb.Context().Err() != nil {
			return err
		}
		select {
		case <-tb.Context().Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func findPooler() (string, error) {
	if path, err := exec.LookPath("pgbouncer"); err == nil {
		return path, nil
	}
	for _, path := range []string{"/usr/sbin/pgbouncer", "/opt/homebrew/bin/pgbouncer", "/usr/local/bin/pgbouncer"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("PgBouncer is not on this machine: install the package pgbouncer")
}
