package gateway

import (
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot/dingtalk/calls"
)

// gathered returns the values of metrics by name and label.
func gathered(t *testing.T, r *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			values[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return values
}

func TestMetricsOfCalls(t *testing.T) {
	t.Parallel()
	r, g := prometheus.NewRegistry(), calls.New(calls.Options{Store: calls.NewMemory(), Quota: 8})
	registerCalls(r, g)
	for range 4 {
		if _, err := g.Reserve(t.Context(), calls.Finish, calls.CardStream); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := g.Wait(t.Context(), calls.CardStream); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]float64{"ebb_dingtalk_calls_left": 4, "ebb_dingtalk_calls_level": 2}
	for _, api := range calls.APIs {
		want["ebb_dingtalk_calls_total "+string(api)] = 0
	}
	want["ebb_dingtalk_calls_total card_stream"] = 3
	if got := gathered(t, r); !maps.Equal(got, want) {
		t.Errorf("gathered %s, want %s", fmt.Sprint(got), fmt.Sprint(want))
	}
	unbounded := prometheus.NewRegistry()
	registerCalls(unbounded, calls.New(calls.Options{Store: calls.NewMemory()}))
	if got := gathered(t, unbounded)["ebb_dingtalk_calls_left"]; !math.IsInf(got, 1) {
		t.Errorf("without a bound %v are left", got)
	}
}
