package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"ebb/sql"
)

// TestMain lets the test binary be the program too: a scenario starts it under the name bot, as a process of its own
// that can be killed.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bot": func() {
		go endWithParent(os.Getppid())
		main()
	}})
}

// endWithParent ends a bot whose test run was killed: nobody else would.
func endWithParent(parent int) {
	for range time.Tick(500 * time.Millisecond) {
		if os.Getppid() != parent {
			os.Exit(exitFault)
		}
	}
}

// TestScripts plays the scenarios of testdata/script against the program, each with a DingTalk, a model and a database
// of its own. The commands that scenarios are written in are listed in script_test.go.
func TestScripts(t *testing.T) {
	useServer(t)
	testscript.Run(t, testscript.Params{
		Dir:   filepath.Join("testdata", "script"),
		Setup: setUp,
		Cmds:  scriptCommands(),
	})
}

// useServer starts the PostgreSQL that the scenarios' databases are on, unless EBB_TEST_DATABASE_URL names one.
func useServer(t *testing.T) {
	t.Helper()
	const variable = "EBB_TEST_DATABASE_URL"
	if os.Getenv(variable) != "" {
		return
	}
	dir := sharedDir(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := sql.StartPrivate(ctx, sql.PrivateOptions{Dir: filepath.Join(dir, "pg"), NoSync: true})
	if err != nil {
		t.Fatalf("starting a PostgreSQL for the scenarios: %v", err)
	}
	if err := os.Setenv(variable, p.URL()); err != nil { // not t.Setenv, which forbids parallel scenarios
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.Unsetenv(variable)
		stop, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := p.Stop(stop); err != nil {
			t.Error(err)
		}
	})
}

// sharedDir is a folder that a database server can enter although it runs as another user, and short enough for the
// name of a socket.
func sharedDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ebb-script-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing %s: %v", dir, err)
		}
	})
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}
