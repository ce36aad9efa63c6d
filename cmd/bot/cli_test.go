package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ebb/bot/config/strict"
)

// runBot executes one command line in this process.
func runBot(t *testing.T, getenv func(string) string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	app := &App{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: getenv}
	code = execute(t.Context(), args, app)
	return code, out.String(), errs.String()
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.jsonc")
	if err := os.WriteFile(bad, []byte("{\n  \"agnt\": {}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name           string
		getenv         func(string) string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"no command", env(), nil, 0, "config check", ""},
		{"help", env(), []string{"--help"}, 0, "Usage: bot <command>", ""},
		{"help as a word", env(), []string{"help"}, 0, "Usage: bot <command>", ""},
		{"help of a command as a word", env(), []string{"help", "config", "check"}, 0, "--config=FILE", ""},
		{"version as a flag", env(), []string{"--version"}, 0, "bot " + version, ""},
		{"version as a flag of a command", env(), []string{"serve", "--version"}, 0, "bot " + version, ""},
		{"version as a flag that help shows", env(), []string{"--help"}, 0, "--version", ""},
		{"help of a command", env(), []string{"config", "check", "--help"}, 0, "--config=FILE", ""},
		{"unknown command", env(), []string{"frobnicate"}, 2, "", "bot: unexpected argument frobnicate"},
		{"unknown flag", env(), []string{"version", "--x"}, 2, "", "bot: unknown flag --x"},
		{"half a command", env(), []string{"config"}, 2, "", "bot: expected"},
		{"version", env(), []string{"version"}, 0, "bot " + version, ""},
		{"check", credentials(), []string{"config", "check", "--config", referencePath}, 0, "config.jsonc: ok", ""},
		{"check of a file without a flag", credentials(), []string{"config", "check", referencePath}, 0, "config.jsonc: ok", ""},
		{"check of a bad file without a flag", credentials(), []string{"config", "check", bad}, 2, "", bad + ":2:3: agnt: no such key"},
		{"check of two files", credentials(), []string{"config", "check", bad, "-c", referencePath}, 2, "", "two config files are named"},
		{"check of one file named twice", credentials(), []string{"config", "check", referencePath, "-c", referencePath}, 0, "config.jsonc: ok", ""},
		{"print of a file without a flag", env(), []string{"config", "print", referencePath}, 0, `"context_window": 128000`, ""},
		{"check without credentials", env(), []string{"config", "check", "-c", referencePath}, 2, "", "dingtalk.client_id: is empty, want the Client ID (AppKey) of the DingTalk app: set DINGTALK_CLIENT_ID in the environment\n"},
		{"check a bad file", credentials(), []string{"config", "check", "-c", bad}, 2, "", bad + ":2:3: agnt: no such key"},
		{"check no file", env(), []string{"config", "check", "-c", bad + "x"}, 2, "", "no such file"},
		{"print without credentials", env(), []string{"config", "print", "-c", referencePath}, 0, `"context_window": 128000`, ""},
		{"print hides", credentials(), []string{"config", "print", "-c", referencePath}, 0, `"client_secret": "***"`, ""},
		{"chat with an unknown policy", credentials(), []string{"chat", "-c", referencePath, "--policy", "x"}, 2, "", `--policy: got "x", want "archive" or "balanced"`},
		{"chat with an unknown mode", credentials(), []string{"chat", "-c", referencePath, "--mode", "x"}, 2, "", `--mode: got "x", want "summary_only"`},
		{"chat with a threshold of nothing", credentials(), []string{"chat", "-c", referencePath, "--threshold", "0"}, 2, "", "--threshold: got 0, want more than 0"},
		{"chat with turns below nothing", credentials(), []string{"chat", "-c", referencePath, "--policy", "turns", "--full-context-turns=-1"}, 2, "", "--full-context-turns: got -1"},
		{"chat with half a turn", credentials(), []string{"chat", "-c", referencePath, "--cached-context-turns", "x"}, 2, "", "--cached-context-turns"},
		{"import without a robot", env(), []string{"sessions", "import", bad}, 2, "", "--robot"},
		{"print a bad file", env(), []string{"config", "print", "-c", bad}, 2, "", "no such key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runBot(t, tt.getenv, tt.args...)
			if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("exit %d\n%s\n%s\nwant exit %d, %q on stdout, %q on stderr", code, stdout, stderr, tt.code, tt.stdout, tt.stderr)
			}
			if (stderr == "") != (tt.code == 0) || strings.Contains(stdout+stderr, "hunter2") {
				t.Errorf("stderr is %q with exit %d", stderr, code)
			}
		})
	}
}

func TestConfigCheckShowsWarnings(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "small.jsonc")
	if err := os.WriteFile(file, []byte(`{"agent": {"compaction": {"reserve_tokens": 2000}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, _ := runBot(t, credentials(), "config", "check", "-c", file)
	if want := "max_output: lowered from 4096 to 976"; code != 0 || !strings.Contains(stdout, "warning: ") || !strings.Contains(stdout, want) {
		t.Errorf("exit %d, %q; want exit 0 and a warning %q", code, stdout, want)
	}
}

// A command that reads data reports a missing database, and creates none; bot migrate creates it.
func TestNothingIsMadeByLooking(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "bot.jsonc")
	data := filepath.Join(dir, "data", "postgres")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"database": {"url": "", "dir": %q}}`, data), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"memory", "list"},
		{"memory", "show", "1"},
		{"sessions", "list"},
		{"compactions", "list"},
		{"migrate", "status"},
		{"sessions", "erase", "k", "1", "--yes"},
		{"memory", "export", "--person", "u1"},
	} {
		code, _, stderr := runBot(t, credentials(), append(args, "-c", file)...)
		if want := fmt.Sprintf("bot: there is no database in %s yet; bot serve makes it\n", data); code != 2 || stderr != want {
			t.Errorf("%q: exit %d, %q", args, code, stderr)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("made: %v (%v)", left, err)
	}
}

// A gap in the config does not keep the doctor from the rest, and a host without an address is reported as such, in one
// line.
func TestDoctorGoesOn(t *testing.T) {
	t.Parallel()
	models := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(models.Close)
	dir := t.TempDir()
	file, broken := filepath.Join(dir, "no-ids.jsonc"), filepath.Join(dir, "broken.jsonc")
	text := fmt.Sprintf(`{"database": {"url": "postgres://ebb:hunter2@nowhere.invalid/ebb"}, "dingtalk": {"api_base": %q},
		"llm": {"models": [{"name": "main", "base_url": %q, "model": "m", "api_key": "hunter2", "retries": 0}]}}`, models.URL, models.URL)
	for name, text := range map[string]string{file: text, broken: "{\n  \"agnt\": {}}"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		want []string
	}{
		{file, []string{
			"FAIL config: " + file + ":1:81: dingtalk.client_id: is empty", "FAIL config: " + file + ":1:81: dingtalk.client_secret: is empty",
			`FAIL database: the host name of database.url, "nowhere.invalid", can't be resolved: `, "FAIL model: main (m): denied",
			"FAIL dingtalk: not asked, because dingtalk.client_id or dingtalk.client_secret is empty", "ok   clock: ",
		}},
		{broken, []string{"FAIL config: " + broken + ":2:3: agnt: no such key", "skip database: ", "skip model: ", "skip dingtalk: ", "skip clock: "}},
	} {
		code, stdout, stderr := runBot(t, env(), "doctor", "-c", tt.name)
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		if code != 1 || stderr != "" || len(lines) < len(tt.want) || strings.Contains(stdout, "hunter2") {
			t.Fatalf("exit %d\n%s\n%s\nwant exit 1 and a line for each of %q", code, stdout, stderr, tt.want)
		}
		for _, want := range tt.want {
			if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, want) }) {
				t.Errorf("no line %q in\n%s", want, stdout)
			}
		}
		for _, line := range lines {
			if !strings.HasPrefix(line, "FAIL ") && !strings.HasPrefix(line, "ok   ") && !strings.HasPrefix(line, "skip ") && !strings.HasPrefix(line, "warn ") {
				t.Errorf("%q is no line of its own", line)
			}
		}
	}
	code, _, stderr := runBot(t, env(), "migrate", "-c", file)
	want := "bot: the host name of database.url, \"nowhere.invalid\", can't be resolved: "
	if code != 1 || !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "hunter2") {
		t.Errorf("migrate: exit %d, %q; want exit 1 and one line %q", code, stderr, want)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	config := &strict.Error{Fields: []*strict.FieldError{{File: "f", Line: 1, Col: 2, Field: "a", Problem: "is wrong"}}}
	for _, tt := range []struct {
		name   string
		err    error
		code   int
		stderr string
	}{
		{"none", nil, 0, ""},
		{"fault", errors.New("no database"), 1, "bot: no database\n"},
		{"usage", usageError{errors.New("no such key")}, 2, "bot: no such key\n"},
		{"usage inside", fmt.Errorf("showing: %w", usageError{errors.New("no such key")}), 2, "bot: showing: no such key\n"},
		{"config", fmt.Errorf("starting: %w", config), 2, "f:1:2: a: is wrong\n"},
		{"reported", fmt.Errorf("doctor: %w", errReported), 1, ""},
	} {
		var stderr bytes.Buffer
		if code := reportError(&stderr, tt.err); code != tt.code || stderr.String() != tt.stderr {
			t.Errorf("%s: exit %d, %q; want exit %d, %q", tt.name, code, stderr.String(), tt.code, tt.stderr)
		}
	}
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	status := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Errorf("asked for %s, want /healthz", r.URL.Path)
		}
		w.WriteHeader(status["now"])
	}))
	t.Cleanup(server.Close)
	host := server.Listener.Addr().String()
	port := host[strings.LastIndex(host, ":"):]
	for _, tt := range []struct {
		name, addr string
		status     int
		code       int
	}{
		{"alive", host, 200, 0},
		{"listening everywhere", "0.0.0.0" + port, 200, 0},
		{"listening on a port", port, 200, 0},
		{"not well", host, 503, 1},
		{"no address", "nonsense", 200, 2},
	} {
		status["now"] = tt.status
		if code, _, stderr := runBot(t, env(), "healthcheck", "--addr", tt.addr); code != tt.code {
			t.Errorf("%s: exit %d (%s), want %d", tt.name, code, stderr, tt.code)
		}
	}
	status["now"] = 200
	file := filepath.Join(t.TempDir(), "bot.jsonc")
	for listen, want := range map[string]int{host: 0, "127.0.0.1:1": 1, "": 2} {
		if err := os.WriteFile(file, []byte(`{"admin": {"listen": "`+listen+`"}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := runBot(t, env(), "healthcheck", "-c", file); code != want {
			t.Errorf("with admin.listen %q: exit %d, %s", listen, code, stderr)
		}
	}
	server.Close()
	if code, _, _ := runBot(t, env(), "healthcheck", "--addr", host); code != 1 {
		t.Errorf("without a gateway: exit %d, want 1", code)
	}
}

// Not parallel: it sends signals to the process of the tests.
func TestSignals(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	exited := make(chan int, 1)
	var stderr bytes.Buffer
	registered := make(chan struct{})
	go awaitSignals(cancel, &App{Stderr: &stderr}, func(code int) { exited <- code }, registered)
	<-registered
	send := func(s syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), s); err != nil {
			t.Fatal(err)
		}
	}
	send(syscall.SIGTERM)
	select {
	case <-ctx.Done():
		if got := context.Cause(ctx).Error(); got != "signal: terminated" {
			t.Errorf("the cause is %q, want the signal", got)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the first signal did not end the context")
	}
	again := time.NewTicker(sameStop / 10)
	defer again.Stop()
	late := time.After(10 * time.Second)
	for began := time.Now(); ; {
		select {
		case code := <-exited:
			if code != exitFault || !strings.Contains(stderr.String(), "second signal (interrupt)") {
				t.Errorf("exit %d, %q", code, stderr.String())
			}
			if took := time.Since(began); took < sameStop-sameStop/10 {
				t.Errorf("left %s after the first signal", took)
			}
			return
		case <-again.C:
			send(syscall.SIGINT)
		case <-late:
			t.Fatal("the second signal did not end the process")
		}
	}
}

// Two signals close together are one stop, as where a supervisor signals a process and its group. A later one ends the
// process at once.
func TestSignalsCloseTogetherAreOneStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		signals := make(chan os.Signal)
		ctx, cancel := context.WithCancelCause(t.Context())
		var stderr bytes.Buffer
		exits := 0
		go handleSignals(signals, cancel, &stderr, func(int) { exits++ })
		for _, pause := range []time.Duration{0, time.Millisecond, sameStop / 2} {
			<-time.After(pause)
			signals <- syscall.SIGTERM
			synctest.Wait()
		}
		if ctx.Err() == nil || exits > 0 || stderr.Len() > 0 {
			t.Errorf("after signals close together: stopping %v, %d exits, %q", ctx.Err() != nil, exits, stderr.String())
		}
		<-time.After(sameStop)
		signals <- syscall.SIGTERM
		synctest.Wait()
		if exits != 1 || !strings.Contains(stderr.String(), "second signal (terminated)") {
			t.Errorf("after a later signal: %d exits, %q", exits, stderr.String())
		}
	})
}

// The image's health check asks where its server listens: both read the same config file.
func TestHealthCheckOfTheImageReadsItsConfig(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	args := regexp.MustCompile(`(?m)^(?:HEALTHCHECK.* )?CMD \["(.*)"\]$`).FindAllStringSubmatch(string(file), -1)
	if len(args) != 2 || !strings.HasPrefix(args[0][1], `/bot", "healthcheck`) || !strings.HasPrefix(args[1][1], "serve") {
		t.Fatalf("the Dockerfile has the commands %q", args)
	}
	if config := `"--config", "/etc/ebb/config.jsonc`; !strings.Contains(args[0][1], config) || !strings.Contains(args[1][1], config) {
		t.Errorf("the health check runs %q, the server %q", args[0][1], args[1][1])
	}
}
