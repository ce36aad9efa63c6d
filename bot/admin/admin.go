// Package admin serves the operator's HTTP endpoints: liveness, readiness, metrics, profiles and the console.
package admin

import (
	"context"
	"errors"
	"fmt"
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
	// Token is required as "Authorization: Bearer" for profiles. Without one, only this machine's requests are
	// answered.
	Token string
	// Console answers all other paths; may be nil.
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
	if o.Console != nil {
		mux.Handle("/", o.Console)
	}
	return &Server{listener: l, http: &http.Server{
		Handler: mux, BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
	}}, nil
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
