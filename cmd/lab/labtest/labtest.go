// Package labtest runs command lines of lab in tests, in the test's process or as their own, with a bot that is built
// once.
package labtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"ebb/cmd/lab/rig"
)

var build struct {
	once sync.Once
	dir  string
	err  error
}

// BuildBot builds the bot once, with the tests' race detector, and returns its path.
func BuildBot(tb testing.TB) string {
	tb.Helper()
	build.once.Do(func() {
		if build.dir, build.err = os.MkdirTemp("", "ebb-lab-"); build.err != nil { //nolint:usetesting // all tests share it
			return
		}
		args := []string{"build", "-o", build.dir}
		if raceEnabled {
			args = append(args, "-race")
		}
		if out, err := exec.Command("go", append(args, "ebb/cmd/bot")...).CombinedOutput(); err != nil {
			build.err = fmt.Errorf("building the bot: %w\n%s", err, out)
		}
	})
	if build.err != nil {
		tb.Fatal(build.err)
	}
	return filepath.Join(build.dir, "bot")
}

type cleanup struct{ m *testing.M }

// Run implements testscript.TestingM.
func (c cleanup) Run() int {
	code := c.m.Run()
	if build.dir != "" {
		if err := os.RemoveAll(build.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// RunTests is the body of a TestMain, by which the test binary is also the program lab.
func RunTests(m *testing.M, grammar rig.Grammar) {
	testscript.Main(cleanup{m}, map[string]func(){"lab": func() { rig.Main(grammar) }})
}

// OpenDir makes a folder that a server of another user can enter, with a path short enough for a socket's name.
func OpenDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/tmp", "ebb-lab-") //nolint:usetesting // a short path, for a socket
	tb.Cleanup(func() { err = errors.Join(err, os.RemoveAll(dir)) })
	if err = errors.Join(err, os.Chmod(dir, 0o711)); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// MakeEnv makes a getenv from pairs of name and value.
func MakeEnv(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// RunCommand executes a command line in this process.
func RunCommand(t *testing.T, grammar rig.Grammar, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, problems bytes.Buffer
	code = rig.Execute(t.Context(), grammar, args, &rig.App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &problems, Getenv: MakeEnv()})
	return code, out.String(), problems.String()
}
