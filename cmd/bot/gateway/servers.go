package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot/config"
	"ebb/bot/tools/mcp"
)

// firstServers is the wait for servers of tools before the first turn, so that its request offers their tools.
const firstServers = 5 * time.Second

func (g *gateway) openServers(version string) *mcp.Pool {
	return mcp.New(mcp.Config{Servers: g.cfg.Tools.Servers(), Version: version, Now: time.Now})
}

// runServers keeps the servers connected until stop is called: the turns of a drain call tools too. The end of ctx ends the wait alone.
func (g *gateway) runServers(ctx context.Context) (stop func()) {
	g.registry.MustRegister(serverMetrics{g.servers})
	stop = inBackground(context.WithoutCancel(ctx), g.servers.Run)
	within, cancel := context.WithTimeout(ctx, firstServers)
	defer cancel()
	g.servers.AwaitTried(within)
	return stop
}

// serverMetrics reports the servers at each scrape.
type serverMetrics struct{ pool *mcp.Pool }

var (
	serverConnected = prometheus.NewDesc("ebb_mcp_connected", "1 while the server of tools is connected.", []string{"server"}, nil)
	serverTools     = prometheus.NewDesc("ebb_mcp_tools", "Tools that the server offers.", []string{"server"}, nil)
	serverFailures  = prometheus.NewDesc("ebb_mcp_failures", "Tries to connect that failed in a row.", []string{"server"}, nil)
)

// Describe implements prometheus.Collector.
func (m serverMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{serverConnected, serverTools, serverFailures} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (m serverMetrics) Collect(to chan<- prometheus.Metric) {
	for _, s := range m.pool.Status() {
		connected := 0.0
		if s.Connected {
			connected = 1
		}
		to <- prometheus.MustNewConstMetric(serverConnected, prometheus.GaugeValue, connected, s.Name)
		to <- prometheus.MustNewConstMetric(serverTools, prometheus.GaugeValue, float64(s.Tools), s.Name)
		to <- prometheus.MustNewConstMetric(serverFailures, prometheus.GaugeValue, float64(s.Failures), s.Name)
	}
}

// maxOdd is the number of a server's odd tools that a check names.
const maxOdd = 10

// CheckServers connects to each server of tools once, and counts their tools.
func CheckServers(ctx context.Context, cfg *config.Config) (string, error) {
	servers := cfg.Tools.Servers()
	errs, found := make([]error, len(servers)), make([]mcp.Status, len(servers))
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			n, err := mcp.Check(ctx, s, mcp.Config{Version: "doctor", Now: time.Now})
			if err != nil {
				field := "command, its args and env"
				if s.URL != "" {
					field = "url and headers"
				}
				errs[i] = fmt.Errorf("%s: %w (next: check tools.mcp[%d].%s)", s.Name, err, i, field)
			}
			found[i] = n
		})
	}
	all.Wait()
	total, odd := 0, ""
	for _, s := range found {
		total += s.Tools
		for _, one := range s.Odd[:min(maxOdd, len(s.Odd))] {
			odd += fmt.Sprintf("; %s %s", s.Name, one)
		}
		if rest := len(s.Odd) - maxOdd; rest > 0 {
			odd += fmt.Sprintf("; %s has %d more such tools", s.Name, rest)
		}
	}
	return fmt.Sprintf("%d servers offer %d tools%s", len(servers), total, odd), errors.Join(errs...)
}
