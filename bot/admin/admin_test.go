package admin

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { http.DefaultClient.CloseIdleConnections() }))
}

// serve runs a server until the test ends.
func serve(t *testing.T, ready func(context.Context) error) *Server {
	t.Helper()
	return serveWith(t, Options{Ready: ready, Console: http.NotFoundHandler()})
}

func serveWith(t *testing.T, o Options) *Server {
	t.Helper()
	registry := prometheus.NewRegistry()
	turns := prometheus.NewCounter(prometheus.CounterOpts{Name: "ebb_turns_total", Help: "Turns."})
	registry.MustRegister(turns)
	turns.Add(3)
	o.Listen, o.Metrics = "127.0.0.1:0", registry
	s, err := Listen(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { s.Serve(ctx) })
	t.Cleanup(func() { stop(); wg.Wait() })
	return s
}

func get(t *testing.T, s *Server, method, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestProbesAndFigures(t *testing.T) {
	t.Parallel()
	var draining atomic.Bool
	s := serve(t, func(context.Context) error {
		if draining.Load() {
			return errors.New("draining")
		}
		return nil
	})
	for _, c := range []struct {
		method, path string
		draining     bool
		status       int
		body         string
	}{
		{"GET", "/healthz", false, 200, "ok"},
		{"GET", "/readyz", false, 200, "ready"},
		{"GET", "/readyz", true, 503, "draining"},
		{"GET", "/healthz", true, 200, "ok"}, // it lives all the same: no orchestrator shall kill it in its drain
		{"GET", "/metrics", true, 200, "ebb_turns_total 3"},
		{"GET", "/elsewhere", false, 404, ""},
		{"POST", "/readyz", false, 404, ""}, // the console has all other paths
	} {
		draining.Store(c.draining)
		status, body := get(t, s, c.method, c.path)
		if status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("%s %s (draining: %v): %d %q, want %d %q", c.method, c.path, c.draining, status, body, c.status, c.body)
		}
	}
}

// A database that does not answer makes the replica unready; the probe is answered all the same.
func TestReadyHasADeadline(t *testing.T) {
	t.Parallel()
	s := serve(t, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	began := time.Now()
	if status, _ := get(t, s, "GET", "/readyz"); status != 503 {
		t.Errorf("status %d", status)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the probe waited %s", took)
	}
}

// A port that is taken is said at the start, by the name of its setting.
func TestPortIsTaken(t *testing.T) {
	t.Parallel()
	s := serve(t, func(context.Context) error { return nil })
	_, err := Listen(t.Context(), Options{Listen: s.Addr(), Metrics: prometheus.NewRegistry(), Console: http.NotFoundHandler()})
	if err == nil || !strings.Contains(err.Error(), "admin.listen") {
		t.Errorf("error %v", err)
	}
}
