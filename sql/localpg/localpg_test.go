package localpg_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"ebb/sql/localpg"
	"ebb/sql/sqltest"
)

// holdVariable makes the test program run a private server on the folder that it names, until it is killed.
const holdVariable = "EBB_TEST_HOLD_PRIVATE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdVariable); dir != "" {
		p, err := localpg.Start(context.Background(), localpg.Options{Dir: dir, NoSync: true})
		if err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Stdout.WriteString(p.URL() + "\n")
		select {}
	}
	sqltest.Main(m)
}

// dataDir is a folder for data that any user can get to.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ebb-private-") //nolint:usetesting // the server's user has to pass, and its sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "data", "postgres")
}

func startPrivate(t *testing.T, dir string) *localpg.Server {
	t.Helper()
	p, err := localpg.Start(t.Context(), localpg.Options{Dir: dir, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopPrivate(t, p) })
	return p
}

func stopPrivate(t *testing.T, p *localpg.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func ask(t *testing.T, url, query string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var answer string
	if err := conn.QueryRow(t.Context(), query).Scan(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// keep leaves a word in the database.
func keep(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 'here'::text AS word"); err != nil {
		t.Fatal(err)
	}
}

func TestServerKeepsItsData(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := startPrivate(t, dir)
	if got := ask(t, p.URL(), "SELECT current_setting('listen_addresses') || '/' || current_setting('server_encoding')"); got != "/UTF8" {
		t.Errorf("the server's addresses and encoding are %q, want no address and UTF8", got)
	}
	keep(t, p.URL())
	stopPrivate(t, p)
	if _, err := pgx.Connect(t.Context(), p.URL()); err == nil {
		t.Error("the server answers after it was stopped")
	}
	stopPrivate(t, p) // twice is no harm

	again := startPrivate(t, dir)
	if got := ask(t, again.URL(), "SELECT word FROM kept"); got != "here" {
		t.Errorf("after a restart the data says %q", got)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("the data folder is open to others: %v (%v)", info.Mode(), err)
	}
}

func TestServerCreatesCopiesOfADatabase(t *testing.T) {
	t.Parallel()
	p := startPrivate(t, dataDir(t))
	template, err := p.NewDatabase(t.Context(), "the template", "")
	if err != nil {
		t.Fatal(err)
	}
	keep(t, template)
	for _, name := range []string{`one "copy"`, "another"} {
		url, err := p.NewDatabase(t.Context(), name, "the template")
		if err != nil {
			t.Fatal(err)
		}
		if got := ask(t, url, "SELECT word || ' in ' || current_database() FROM kept"); got != "here in "+name {
			t.Errorf("the copy says %q, want %q", got, "here in "+name)
		}
		if err := p.DropDatabase(t.Context(), name); err != nil {
			t.Error(err)
		}
		if conn, err := pgx.Connect(t.Context(), url); err == nil {
			t.Errorf("database %q answers after it was dropped", name)
			_ = conn.Close(t.Context())
		}
	}
	if _, err := p.NewDatabase(t.Context(), "the template", ""); err == nil {
		t.Error("a database was created twice")
	}
}

func TestServerRefusesASecondProcess(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := startPrivate(t, dir)
	_, err := localpg.Start(t.Context(), localpg.Options{Dir: dir, NoSync: true})
	if !errors.Is(err, localpg.ErrDataInUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a second start on the same data gave %v, want a refusal that names the folder", err)
	}
	if got := ask(t, p.URL(), "SELECT 'alive'"); got != "alive" {
		t.Error("the refused start harmed the first")
	}
}

func TestServerAfterItsProcessWasKilled(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	holder := exec.Command(os.Args[0])
	holder.Env = append(os.Environ(), holdVariable+"="+dir)
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = holder.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	url := strings.TrimSpace(line)
	if err != nil || !strings.HasPrefix(url, "postgres://") {
		t.Fatalf("the other process said %q (%v)", line, err)
	}
	keep(t, url)
	if _, err := localpg.Start(t.Context(), localpg.Options{Dir: dir}); !errors.Is(err, localpg.ErrDataInUse) {
		t.Errorf("starting beside another process gave %v", err)
	}
	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = holder.Wait() // it was killed

	p := startPrivate(t, dir)
	if got := ask(t, p.URL(), "SELECT word FROM kept"); got != "here" {
		t.Errorf("after a kill the data says %q", got)
	}
}

func TestServerRefusesAFolderOfOtherThings(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := localpg.Start(t.Context(), localpg.Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("starting on a folder of other things gave %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "thesis.txt")); err != nil {
		t.Error(err)
	}
}

// A home that only root can enter, such as /root, is no place for a server that may not run as root.
func TestServerFromAClosedHome(t *testing.T) {
	t.Parallel()
	home := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(home, "data", "postgres")
	var log bytes.Buffer
	ctx := zerolog.New(&log).WithContext(t.Context())
	p, err := localpg.Start(ctx, localpg.Options{Dir: dir, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	data := ask(t, p.URL(), "SELECT current_setting('data_directory')")
	stopPrivate(t, p)
	if os.Geteuid() != 0 {
		if data != dir {
			t.Errorf("the data is in %s, want %s", data, dir)
		}
		return
	}
	t.Cleanup(func() {
		for _, path := range []string{data, data + ".lock", data + ".log"} {
			_ = os.RemoveAll(path)
		}
	})
	if !strings.HasPrefix(data, "/var/lib/ebb/") || !strings.Contains(log.String(), data) || !strings.Contains(log.String(), dir) {
		t.Errorf("root's data is in %s, and the log says %s", data, log.String())
	}
	again := startPrivate(t, dir)
	if got := ask(t, again.URL(), "SELECT current_setting('data_directory')"); got != data {
		t.Errorf("the second start took %s, want the same place, %s", got, data)
	}
}

func TestServerWithALongPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(filepath.Dir(dataDir(t)), strings.Repeat("long/", 30), "postgres")
	p := startPrivate(t, dir)
	if got := ask(t, p.URL(), "SELECT 'here'"); got != "here" {
		t.Error(got)
	}
	stopPrivate(t, p)
}

func TestServerWithoutBinaries(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "PG_VERSION"), []byte("7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := localpg.Start(t.Context(), localpg.Options{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "PostgreSQL 7") || !strings.Contains(err.Error(), "install postgresql-7") {
		t.Errorf("data of a version that is not installed gave %v, want the package to install", err)
	}
}
