package rig

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMetricsAreReadAndSummedOverLabels(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# HELP go_goroutines Number.\n# TYPE go_goroutines gauge\ngo_goroutines 54\nprocess_resident_memory_bytes 1.048576e+08\n"+
			"ebb_turns_total{kind=\"ask\"} 7\nebb_turns_total{kind=\"command\"} 2\n")
	}))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	m, err := ReadMetrics(t.Context(), address, "go_goroutines", "process_resident_memory_bytes")
	if err != nil || m["go_goroutines"] != 54 || m["process_resident_memory_bytes"] != 100<<20 || m["ebb_turns_total"] != 9 {
		t.Errorf("got %v, %v", m, err)
	}
	if _, err := ReadMetrics(t.Context(), address, "process_cpu_seconds_total"); err == nil || !strings.Contains(err.Error(), "process_cpu_seconds_total") {
		t.Errorf("a system without CPU figures gave %v", err)
	}
}
