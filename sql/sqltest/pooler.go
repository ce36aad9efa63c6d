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

// Pooler puts a PgBouncer in transaction mode before the server of the database at address, and returns what makes the
// address of any database there lead through it. It hands out three connections to a database, so that those who use it
// share them. It ends with the test.
func Pooler(tb testing.TB, address string) (through func(address string) string) {
	tb.Helper()
	program, err := findPooler()
	if err != nil {
		tb.Fatal(err)
	}
	server := parse(tb, address)
	port, err := freePort()
	if err != nil {
		tb.Fatalf("looking for a free port: %v", err)
	}
	dir := tb.TempDir()
	own := &syscall.SysProcAttr{}
	if os.Getuid() == 0 { // which PgBouncer refuses to serve: whoever serves the database will do
		info, err := os.Stat(server.Host)
		if err != nil {
			tb.Fatalf("looking whose the server is: %v", err)
		}
		stat := info.Sys().(*syscall.Stat_t)
		own.Credential = &syscall.Credential{Uid: stat.Uid, Gid: stat.Gid}
	}
	conf := fmt.Sprintf(`[databases]
* = host=%s port=%d user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 1000
ignore_startup_parameters = extra_float_digits
`, server.Host, server.Port, server.User, port)
	path := filepath.Join(dir, "pooler.ini")
	if err := os.WriteFile(path, []byte(conf), 0o644); err != nil {
		tb.Fatal(err)
	}
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		_ = os.Chmod(d, 0o755) // others' folders are as open as they are
	}
	cmd := exec.Command(program, path)
	cmd.SysProcAttr = own
	log, err := os.Create(filepath.Join(dir, "pooler.log"))
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stderr, cmd.Stdout = log, log
	if err := cmd.Start(); err != nil {
		tb.Fatalf("starting PgBouncer: %v", err)
	}
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		_ = log.Close()
	})
	through = func(address string) string {
		u := url.URL{
			Scheme: "postgres", User: url.User(server.User), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
			Path: "/" + parse(tb, address).Database, RawQuery: "sslmode=disable",
		}
		return u.String()
	}
	if err := answers(tb, through(address)); err != nil {
		said, _ := os.ReadFile(log.Name())
		tb.Fatalf("PgBouncer does not answer: %v: %s", err, said)
	}
	return through
}

func parse(tb testing.TB, address string) *pgx.ConnConfig {
	tb.Helper()
	config, err := pgx.ParseConfig(address)
	if err != nil {
		tb.Fatalf("reading the database address: %v", err)
	}
	return config
}

// answers waits until the database at an address answers.
func answers(tb testing.TB, address string) error {
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

// findPooler looks on PATH and where Debian and Homebrew keep servers.
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
