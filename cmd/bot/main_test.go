package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"ebb/bot/tools/mcp/mcptest"
	"ebb/sql/localpg"
	"ebb/sql/sqltest"
)

// TestMain lets the test binary be the program too: a scenario starts it under the name bot, as a process of its own
// that can be killed.
func TestMain(m *testing.M) {
	// Scenarios wait for a lease or a retry most of the time, so that more of them than there are processors run well
	// beside each other. A -parallel on the command line counts.
	_ = flag.Set("test.parallel", "4") // the flag is there, and the value is good
	testscript.Main(withServer{m}, map[string]func(){"bot": func() {
		go endWithParent(os.Getppid())
		main()
	}, "mcpserver": func() {
		_ = mcptest.Serve(context.Background()) // it ends with its input
	}})
}

// endWithParent ends a bot whose test run was killed: the bot would go on otherwise.
func endWithParent(parent int) {
	for range time.Tick(500 * time.Millisecond) {
		if os.Getppid() != parent {
			os.Exit(exitFault)
		}
	}
}

// TestScripts plays the scenarios of testdata/script against the program, each with a DingTalk, a model and a database
// of its own. The commands that scenarios are written in are listed in script_test.go.
func TestScripts(t *testing.T) { playScripts(t, "script") }

// TestLongScripts plays those that take minutes.
func TestLongScripts(t *testing.T) { playScripts(t, "long") }

func playScripts(t *testing.T, dir string) {
	t.Helper()
	useServer(t)
	testscript.Run(t, testscript.Params{
		Dir:   filepath.Join("testdata", dir),
		Setup: setUp,
		Cmds:  scriptCommands(),
		Condition: func(name string) (bool, error) {
			if name != "cluster" {
				return false, fmt.Errorf("%s is no condition", name)
			}
			return sqltest.OnCluster(), nil
		},
	})
}

// server is the PostgreSQL that the scenarios' databases are on, of this process, started by the first that needs it.
var server struct {
	once    sync.Once
	err     error
	dir     string
	private *localpg.Server
}

// useServer starts the server, unless EBB_TEST_DATABASE_URL or EBB_TEST_CITUS_URL names one.
func useServer(t *testing.T) {
	t.Helper()
	server.once.Do(func() { server.err = startServer() })
	if server.err != nil {
		t.Fatalf("starting a PostgreSQL for the scenarios: %v", server.err)
	}
}

func startServer() (err error) {
	const variable = "EBB_TEST_DATABASE_URL"
	if os.Getenv(variable) != "" || sqltest.OnCluster() {
		return nil
	}
	if server.dir, err = sqltest.OpenDir("ebb-script-"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server.private, err = localpg.Start(ctx, localpg.Options{Dir: filepath.Join(server.dir, "pg"), NoSync: true})
	if err != nil {
		return err
	}
	return os.Setenv(variable, server.private.URL()) // for sqltest
}

// withServer stops the server after the tests.
type withServer struct{ m *testing.M }

// Run implements testscript.TestingM.
func (w withServer) Run() int {
	code := w.m.Run()
	if server.private != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := errors.Join(server.private.Stop(ctx), os.RemoveAll(server.dir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

// sharedDir is [sqltest.OpenDir] for one test.
func sharedDir(tb testing.TB) string {
	tb.Helper()
	dir, err := sqltest.OpenDir("ebb-script-")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Errorf("removing %s: %v", dir, err)
		}
	})
	return dir
}
