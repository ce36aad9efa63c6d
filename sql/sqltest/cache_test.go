package sqltest_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Processes that start at the same time share the data that one of them makes, also after another one was killed while it made it.
func TestDataIsMadeOnce(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	run := func() *exec.Cmd {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestEmptyIsEmpty$")
		for _, v := range os.Environ() {
			if !strings.HasPrefix(v, "XDG_CACHE_HOME=") && !strings.HasPrefix(v, "HOME=") && !strings.HasPrefix(v, "EBB_TEST_") {
				c.Env = append(c.Env, v)
			}
		}
		c.Env = append(c.Env, "HOME="+home)
		return c
	}
	kept := func(name string) (found []string) {
		_ = filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
			if base := filepath.Base(path); err == nil && strings.HasPrefix(base, name) {
				found = append(found, base)
				return fs.SkipDir
			}
			return nil
		})
		return found
	}
	killed := run()
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); len(kept("sqltest.lock")) == 0; { // it makes the data from here on
		if time.Since(began) > time.Minute {
			t.Fatal("the process locks no data")
		}
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait() // it was killed
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if out, err := run().CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	both.Wait()
	if data := kept("sqltest-"); len(data) != 1 || strings.HasSuffix(data[0], ".new") {
		t.Errorf("%q are kept, want the data of one schema", data)
	}
}
