package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// replica is a `bot serve`, a process of its own. One that is started again under its name goes on in the same log.
type replica struct {
	name, logPath string
	start         int64 // offset of this process's part of the log
	process       *os.Process
	done          chan struct{} // closed when it has ended
	code          int           // exit code; -1 after a signal
}

// newConfig is what scenarios start from: the simulators, a short lease, and no limit of our own on replies.
func (w *world) newConfig() map[string]any {
	type m = map[string]any
	return m{
		"dingtalk": m{
			"client_id": "dingsimapp0001", "client_secret": "sim-secret", "api_base": w.ding.URL, "oapi_base": w.ding.URL,
			"replies_per_minute": 0.0,
		},
		"llm": m{"default": "main", "models": []any{
			m{"name": "main", "base_url": w.main.URL, "api_key": "sk-scenario-key", "model": "qwen-plus"},
		}},
		"database": m{"url": w.url},
		"cluster":  m{"lease_ttl": "2s"},
		"admin":    m{"listen": "127.0.0.1:0", "token": consoleToken},
		"log":      m{"format": "json", "level": "debug"},
	}
}

func (w *world) cmdConfig(args []string) error {
	if args[0] == "file" {
		return w.writeConfig(filepath.Join(w.dir, args[1]))
	}
	var value any
	text := strings.NewReplacer("MODEL_URL", w.main.URL, "DINGTALK_URL", w.ding.URL).Replace(args[1])
	if json.Unmarshal([]byte(text), &value) != nil {
		value = text
	}
	at := w.config
	keys := strings.Split(args[0], ".")
	for _, k := range keys[:len(keys)-1] {
		next, ok := at[k].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[k] = next
		}
		at = next
	}
	at[keys[len(keys)-1]] = value
	return nil
}

func (w *world) cmdReplica(args []string) error {
	verb, name := args[0], args[1]
	if verb == "start" || verb == "launch" {
		if err := w.launch(name); err != nil || verb == "launch" {
			return err
		}
		return w.cmdReady([]string{name, "200"})
	}
	r := w.replicas[name]
	if r == nil {
		return fmt.Errorf("no replica %q was started", name)
	}
	switch verb {
	case "term":
		if err := r.process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		return r.exits(exitOK)
	case "kill":
		r.kill()
		w.killed = time.Now()
		return nil
	case "freeze":
		return r.process.Signal(syscall.SIGSTOP)
	case "thaw":
		return r.process.Signal(syscall.SIGCONT)
	case "reload":
		if err := w.writeConfig(filepath.Join(w.dir, name+".jsonc")); err != nil {
			return err
		}
		return r.process.Signal(syscall.SIGHUP)
	case "signal", "insist":
		signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP}
		s := signals[third(args)]
		if s == nil {
			return fmt.Errorf("no signal %q", third(args))
		}
		if verb == "insist" {
			return r.insist(s)
		}
		return r.process.Signal(s)
	case "exits":
		code, err := strconv.Atoi(third(args))
		if err != nil {
			return err
		}
		return r.exits(code)
	}
	return fmt.Errorf("replica %s?", verb)
}

func third(args []string) string {
	if len(args) < 3 {
		return ""
	}
	return args[2]
}

func (w *world) writeConfig(path string) error {
	text, err := json.MarshalIndent(w.config, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// launch starts a replica and does not wait for it.
func (w *world) launch(name string) error {
	path := filepath.Join(w.dir, name+".jsonc")
	if err := w.writeConfig(path); err != nil {
		return err
	}
	r := &replica{name: name, logPath: filepath.Join(w.dir, name+".log"), done: make(chan struct{})}
	f, err := os.OpenFile(r.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if r.start, err = f.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	cmd := exec.Command("bot", "serve", "--config", path)
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, f, f
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "GOCOVERDIR=" + os.Getenv("GOCOVERDIR")}
	cmd.Env = append(cmd.Env, w.env...)
	if err := cmd.Start(); err != nil {
		return err
	}
	r.process = cmd.Process
	go func() {
		_ = cmd.Wait() // the exit code says it
		r.code = cmd.ProcessState.ExitCode()
		close(r.done)
	}()
	if old := w.replicas[name]; old != nil {
		select {
		case <-old.done:
		default:
			return fmt.Errorf("replica %s runs already", name)
		}
	}
	w.replicas[name] = r
	return nil
}

func (r *replica) kill() {
	_ = r.process.Kill() // it may have ended by itself
	<-r.done
}

func (r *replica) exits(code int) error {
	select {
	case <-r.done:
	case <-time.After(patience):
		return fmt.Errorf("replica %s has not ended after %s", r.name, patience)
	}
	if r.code != code {
		return fmt.Errorf("replica %s ended with %d, want %d", r.name, r.code, code)
	}
	return nil
}

// insist sends a signal until the process ends: those within a second of the first count as one with it.
func (r *replica) insist(s os.Signal) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if err := r.process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		select {
		case <-r.done:
			return nil
		case <-time.After(300 * time.Millisecond):
		}
	}
	return nil // "exits" reports the fault
}

// log is everything that replicas of this name have logged.
func (r *replica) log() string {
	b, _ := os.ReadFile(r.logPath) // no file: nothing logged
	return string(b)
}

// admin is the address of the process's admin server, or nothing before it listens.
func (r *replica) admin() string {
	text := r.log()
	for line := range strings.SplitSeq(text[min(int(r.start), len(text)):], "\n") {
		var e struct{ Admin string }
		if json.Unmarshal([]byte(line), &e) == nil && e.Admin != "" {
			return e.Admin
		}
	}
	return ""
}

var probe = http.Client{Timeout: 5 * time.Second}

func (w *world) cmdReady(args []string) error {
	r := w.replicas[args[0]]
	if r == nil {
		return fmt.Errorf("no replica %q was started", args[0])
	}
	want, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return w.until(fmt.Sprintf("/readyz of %s to be %d", r.name, want), patience, func() (bool, string) {
		select {
		case <-r.done:
			return false, fmt.Sprintf("it has ended with %d", r.code)
		default:
		}
		addr := r.admin()
		if addr == "" {
			return false, "no admin server"
		}
		resp, err := probe.Get("http://" + addr + "/readyz")
		if err != nil {
			return false, err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body) // for the message only
		return resp.StatusCode == want, fmt.Sprintf("%d %s", resp.StatusCode, body)
	})
}

func (w *world) logLines(name, text string) (n int, err error) {
	r := w.replicas[name]
	if r == nil {
		return 0, fmt.Errorf("no replica %q was started", name)
	}
	for line := range strings.SplitSeq(r.log(), "\n") {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n, nil
}

func (w *world) cmdLog(args []string) error {
	want := 1
	if len(args) > 2 {
		var err error
		if want, err = strconv.Atoi(args[2]); err != nil {
			return err
		}
	}
	if _, err := w.logLines(args[0], ""); err != nil {
		return err
	}
	return w.until(fmt.Sprintf("the log of %s to have %q in %d lines", args[0], args[1], want), patience, func() (bool, string) {
		n, _ := w.logLines(args[0], args[1]) // the replica is known
		return n >= want, fmt.Sprintf("%d lines", n)
	})
}

func (w *world) cmdNotLog(args []string) error {
	most := 0 // lines
	if len(args) > 2 {
		n, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		most = n - 1
	}
	n, err := w.logLines(args[0], args[1])
	if err == nil && n > most {
		err = fmt.Errorf("the log of %s has %q in %d lines", args[0], args[1], n)
	}
	return err
}
