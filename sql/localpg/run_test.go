package localpg

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A server whose process was killed may live on where the system does not end it with its parent.
func TestStartEndsALeftover(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "ebb-private-") //nolint:usetesting // the server's user has to pass, and its sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "postgres")
	first, err := Start(t.Context(), Options{Dir: data, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	first.once.Do(func() { close(first.stop) }) // the supervisor is gone
	if err := first.lock.Close(); err != nil {
		t.Fatal(err)
	}
	first.lock = nil
	pid := leftoverPID(t.Context(), data)
	if pid == 0 {
		t.Fatal("the running server is not seen as a leftover")
	}
	second, err := Start(t.Context(), Options{Dir: data, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.stopped:
	case <-time.After(time.Minute):
		t.Error("the first server still runs beside the second")
	}
	if now := leftoverPID(t.Context(), data); now == pid || now == 0 {
		t.Errorf("the server on the data is %d, was %d; want a new one", now, pid)
	}
	if err := second.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// A server that is killed is started again: without it nothing of Ebb works.
func TestServerStartsAgain(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "ebb-private-") //nolint:usetesting // the server's user has to pass, and its sockets need a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(), Options{Dir: filepath.Join(dir, "postgres"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	killed := leftoverPID(t.Context(), p.dir)
	p.signal(syscall.SIGKILL)
	deadline := time.After(time.Minute)
	for pid := killed; pid == killed || pid == 0; pid = leftoverPID(t.Context(), p.dir) {
		select {
		case <-deadline:
			t.Fatal("the killed server was not started again")
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := p.waitReady(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNoBinariesNamesThePackage(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"apt-get install postgresql", "brew install postgresql", "database.url"} {
		if !strings.Contains(errNoBinaries.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, errNoBinaries)
		}
	}
}

func TestLeftoverIgnoresStrangers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"of another program": "1\n" + dir, "our own": strconv.Itoa(os.Getpid()) + "\n" + dir,
		"long dead": "999999999\n", "nonsense": "x\n", "empty": "",
	} {
		if err := os.WriteFile(filepath.Join(dir, "postmaster.pid"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if pid := leftoverPID(t.Context(), dir); pid != 0 {
			t.Errorf("a pid file that is %s was believed: %d", name, pid)
		}
	}
}
