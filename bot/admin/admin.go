// Package admin serves the operator's HTTP endpoints: liveness, readiness, metrics, profiles and the console.
package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"
)

// Options configure a [Server].
type Options struct {
	Listen  string // host:port
	Metrics prometheus.Gatherer
	// Token is required as "Authorization: Bearer" for profiles. Without one there are none.
	Token string
	// Console answers all other paths.
	Console http.Handler
	// Ready returns why the bot can't take messages, or nil, within its context.
	Ready func(ctx context.Context) error
}

// Server answers /healthz, /readyz and /metrics to all, /debug/pprof/ to authorized requests, and the console.
type Server struct {
	listener net.Listener
	http     *http.Server
}

const readyTimeout = time.Second

// Listen opens the address, so that a port in use fails at the start.
func Listen(ctx context.Context, o Options) (*Server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen on admin.listen: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), readyTimeout)
		defer stop()
		if err := o.Ready(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Metrics, promhttp.HandlerOpts{}))
	mux.Handle("GET /debug/pprof/", guard(o.Token, profiles()))
	mux.Handle("/", o.Console)
	return &Server{listener: l, http: &http.Server{
		Handler: readBodies(mux), BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ReadHeaderTimeout: headerTime, MaxHeaderBytes: maxHeader, IdleTimeout: time.Minute,
	}}, nil
}

// Bounds of a request. Forms are small, and nothing else has a body.
const (
	headerTime = 5 * time.Second
	bodyTime   = 10 * time.Second
	maxHeader  = 64 << 10
	maxBody    = 64 << 10
)

// readBodies reads each body before its handler runs, within bounds of time and size: a slow sender holds no handler. A read timeout of
// the server would also end requests whose answer takes longer.
func readBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		connection := http.NewResponseController(w)
		err := connection.SetReadDeadline(time.Now().Add(bodyTime))
		var body []byte
		if err == nil {
			body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		}
		if err != nil {
			status := http.StatusRequestTimeout
			if _, large := errors.AsType[*http.MaxBytesError](err); large {
				status = http.StatusRequestEntityTooLarge
			}
			w.Header().Set("Connection", "close")
			http.Error(w, http.StatusText(status), status)
			return
		}
		_ = connection.SetReadDeadline(time.Time{}) // the next request has its own bounds
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// Addr is the server's address.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Serve answers until ctx ends.
func (s *Server) Serve(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { _ = s.http.Close() })
	defer stop()
	if err := s.http.Serve(s.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		zerolog.Ctx(ctx).Error().Err(err).Msg("Admin server ended")
	}
}
