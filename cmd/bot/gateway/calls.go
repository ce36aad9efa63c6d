package gateway

import (
	"context"
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot/command"
	"ebb/bot/dingtalk/calls"
)

// watchCalls reads the calls of other replicas until stop. It does nothing without DingTalk.
func (g *gateway) watchCalls(ctx context.Context) (stop func()) {
	if g.calls == nil {
		return func() {}
	}
	return inBackground(ctx, g.calls.Watch)
}

// callBudget is for /status; nil without DingTalk.
func (g *gateway) callBudget() func() command.CallBudget {
	if g.calls == nil {
		return nil
	}
	return func() command.CallBudget {
		s := g.calls.Status()
		return command.CallBudget{Calls: s.Calls, Quota: s.Quota, Level: int(s.Level)}
	}
}

type callsMade struct {
	governor *calls.Governor
	desc     *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (c callsMade) Describe(all chan<- *prometheus.Desc) { all <- c.desc }

// Collect implements prometheus.Collector. APIs without a call are 0, so that Prometheus sees the first increase.
func (c callsMade) Collect(all chan<- prometheus.Metric) {
	made := c.governor.Made()
	for _, api := range calls.APIs {
		all <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(made[api]), string(api))
	}
}

func registerCalls(r prometheus.Registerer, g *calls.Governor) {
	gauge := func(name, help string, f func(calls.Status) float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "ebb", Subsystem: "dingtalk", Name: name, Help: help},
			func() float64 { return f(g.Status()) }))
	}
	r.MustRegister(callsMade{g, prometheus.NewDesc("ebb_dingtalk_calls_total", "Calls of this process to DingTalk's open API, by API.", []string{"api"}, nil)})
	gauge("calls_left", "Calls to DingTalk's open API that remain in the month, over all replicas; +Inf without a bound.", func(s calls.Status) float64 {
		left, bounded := s.Left()
		if !bounded {
			return math.Inf(1)
		}
		return float64(left)
	})
	gauge("calls_level", "Use that the remaining calls permit: 0 streamed cards, 1 unstreamed cards, 2 webhooks and calls without an alternative, 3 webhooks.",
		func(s calls.Status) float64 { return float64(s.Level) })
}
