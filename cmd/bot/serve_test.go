package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The final fault of serve is a line of the log where the log is JSON, for alerts on its level, and a text for people
// elsewhere.
func TestServeLogsItsFault(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	run := func(format string) string {
		file := filepath.Join(t.TempDir(), "bot.jsonc")
		text := fmt.Sprintf(`{"database": {"url": "postgres://127.0.0.1:1/d"}, "admin": {"listen": %q}, "log": {"format": %q}}`, taken.Addr(), format)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := runBot(t, credentials(), "serve", "-c", file)
		if code != exitFault {
			t.Errorf("%s: exit %d", format, code)
		}
		return stderr
	}
	var line struct{ Level, Message, Error string }
	if got := run("json"); json.Unmarshal([]byte(got), &line) != nil || line.Level != "error" || line.Message != "Stopped by a fault" ||
		!strings.HasPrefix(line.Error, "listen on admin.listen: ") {
		t.Errorf("a log of JSON ends with %s", got)
	}
	if got := run("console"); !strings.HasPrefix(got, "bot: listen on admin.listen: ") || strings.Count(got, "\n") != 1 {
		t.Errorf("a log for people ends with %s", got)
	}
}

// The garbage collector works before the kernel kills the process: the deployed limit of Go's memory is a tenth below the
// container's.
func TestDeployedMemoryLimit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	number := func(expr string) float64 {
		found := regexp.MustCompile(expr).FindSubmatch(text)
		if found == nil {
			t.Fatalf("deployment.yaml has no %s", expr)
		}
		n, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	limit, soft := number(`limits: \{ memory: (\d+)Mi \}`), number(`name: GOMEMLIMIT\s+value: (\d+)MiB`)
	if share := soft / limit; share < 0.85 || share > 0.92 {
		t.Errorf("GOMEMLIMIT is %.0f %% of the container's memory, want about 90", 100*share)
	}
}
