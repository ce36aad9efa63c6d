package main

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
)

// TestMain lets the test binary be the program too, under the name lab.
func TestMain(m *testing.M) {
	testscript.Main(built{m}, map[string]func(){"lab": main})
}

// build is the program that the tests run, built once.
var build struct {
	once sync.Once
	dir  string
	err  error
}

// botProgram builds the bot, with the race detector where the tests have it, and returns its path.
func botProgram(tb testing.TB) string {
	tb.Helper()
	build.once.Do(func() {
		if build.dir, build.err = os.MkdirTemp("", "ebb-lab-"); build.err != nil {
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

// built removes the bot after the tests.
type built struct{ m *testing.M }

// Run implements testscript.TestingM.
func (b built) Run() int {
	code := b.m.Run()
	if build.dir != "" {
		if err := os.RemoveAll(build.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// watchedDir is a folder that a database server of another user can enter, and short enough for the name of a socket.
func watchedDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/tmp", "ebb-lab-")
	tb.Cleanup(func() { err = errors.Join(err, os.RemoveAll(dir)) })
	if err = errors.Join(err, os.Chmod(dir, 0o711)); err != nil {
		tb.Fatal(err)
	}
	return dir
}

// env makes a getenv from pairs of name and value.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// runLab executes one command line in this process.
func runLab(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, problems bytes.Buffer
	code = execute(t.Context(), args, &App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &problems, Getenv: env()})
	return code, out.String(), problems.String()
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, args, stdout, stderr string
		code                       int
	}{
		{"help", "--help", "eval", "", 0},
		{"no such command", "torment", "", "lab: unexpected argument torment", exitUsage},
		{"no such row", "bench --only speed", "", `lab: bench: there is no row "speed"`, exitUsage},
		{"no bot", "--program /nowhere/bot demo --once", "", "lab: no bot to run (stat /nowhere/bot: no such file or directory)", exitUsage},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runLab(t, strings.Fields(tt.args)...)
			if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
			}
		})
	}
}

func TestUsageErrorIsUnwrapped(t *testing.T) {
	t.Parallel()
	if cause := errors.New("cause"); !errors.Is(usageError{cause}, cause) {
		t.Error("the cause is hidden")
	}
}
