package rig

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// Metrics are a gateway's figures by name, summed over their labels.
type Metrics map[string]float64

// ReadMetrics reads metrics from a gateway's admin server at host:port. A missing needed figure is an error: some
// systems lack figures of a process.
func ReadMetrics(ctx context.Context, admin string, needed ...string) (Metrics, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer resp.Body.Close()
	m, err := parseMetrics(resp.Body, needed)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return m, nil
}

func parseMetrics(text io.Reader, needed []string) (Metrics, error) {
	m := Metrics{}
	lines := bufio.NewScanner(text)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		name, _, _ = strings.Cut(name, "{")
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			m[name] += v
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	for _, name := range needed {
		if _, ok := m[name]; !ok {
			return nil, fmt.Errorf("there is no %s on this system", name)
		}
	}
	return m, nil
}
