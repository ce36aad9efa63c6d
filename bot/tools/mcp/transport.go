package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"ebb/sessions/redact"
)

const (
	// terminateTime is the wait for a child process after its input was closed, and again after SIGTERM.
	terminateTime = time.Second
	// maxBody bounds an answer over HTTP, as the SDK bounds a line of a child process.
	maxBody = 16 << 20
)

// transport returns a new connection to the server. release ends what it leaves behind.
func (s Server) transport(ctx context.Context) (t mcp.Transport, release func(), err error) {
	if s.URL != "" {
		return &mcp.StreamableClientTransport{Endpoint: s.URL, HTTPClient: s.httpClient(), MaxRetries: 1, MaxEventSize: maxBody}, func() {}, nil
	}
	program, err := exec.LookPath(s.Command)
	if err != nil {
		return nil, nil, fmt.Errorf("command: %w", err)
	}
	cmd := exec.Command(program, s.Args...) //nolint:gosec,noctx // by the configuration; the SDK ends it
	cmd.Env = s.environment()
	cmd.Stderr = &lineLog{log: zerolog.Ctx(ctx), server: s}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	return &mcp.CommandTransport{Command: cmd, TerminateDuration: terminateTime}, func() {
		if cmd.Process != nil { // children of the child, such as those of npx
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}, nil
}

// environment has no variable of the bot's own but those that programs need to run.
func (s Server) environment() (env []string) {
	for _, name := range []string{"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	for name, v := range s.Env {
		env = append(env, name+"="+v)
	}
	return env
}

// httpClient sends the configured headers, to the configured origin only.
func (s Server) httpClient() *http.Client {
	return &http.Client{
		Transport: headers{s.Headers},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host || len(via) > 3 {
				return errRedirected
			}
			return nil
		},
	}
}

var errRedirected = errors.New("the server redirects to another origin")

type headers struct{ set map[string]string }

// RoundTrip implements http.RoundTripper.
func (h headers) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, v := range h.set {
		r.Header.Set(name, v)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxBody)
	}
	return resp, err
}

// Secrets are masked in maxRawLine bytes of a line, and maxLogLine bytes of the result are logged. A cut before the masks could leave a part of
// a secret.
const (
	maxLogLine = 500
	maxRawLine = 8 << 10
)

// lineLog logs the lines that a child process writes to its standard error.
type lineLog struct {
	log    *zerolog.Logger
	server Server

	mu   sync.Mutex
	line bytes.Buffer
}

var _ io.Writer = (*lineLog)(nil)

// Write implements io.Writer. It keeps the beginning of a line only.
func (l *lineLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range p {
		switch {
		case b == '\n':
			if l.line.Len() > 0 {
				l.log.Debug().Str("line", cut(redact.Secrets(l.server.mask(oneLine(l.line.String()))), maxLogLine)).Msg("MCP server wrote to its log")
			}
			l.line.Reset()
		case l.line.Len() < maxRawLine:
			l.line.WriteByte(b)
		}
	}
	return len(p), nil
}
