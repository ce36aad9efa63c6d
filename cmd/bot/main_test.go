package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"ebb/bot/tools/mcp/mcptest"
	"ebb/sql/sqltest"
)

// TestMain lets the test binary be the program too: a scenario starts it under the name bot, as a process of its own
// that can be killed.
func TestMain(m *testing.M) {
	// Scenarios wait for a lease or a retry most of the time, so that more of them than there are processors run well
	// beside each other. Six keep one processor and a half busy. A -parallel on the command line counts.
	_ = flag.Set("test.parallel", "6") // the flag is there, and the value is good
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

// withServer stops the server of [sqltest] after the tests.
type withServer struct{ m *testing.M }

// Run implements testscript.TestingM.
func (w withServer) Run() int { return sqltest.Stop(w.m.Run()) }

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
