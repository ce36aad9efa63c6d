package gateway

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot/command"
	"ebb/bot/console"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/schedule"
	"ebb/sessions"
)

// robotCalls has the counted calls of a robot.
type robotCalls struct {
	robot    sessions.RobotCode
	governor *calls.Governor
}

// governors are those of all robots.
type governors []robotCalls

var _ schedule.Calls = governors{}

// of returns the first governor for a robot that is not configured any more.
func (g governors) of(robot sessions.RobotCode) *calls.Governor {
	for _, one := range g {
		if one.robot == robot {
			return one.governor
		}
	}
	return g[0].governor
}

// MonthEnd implements [schedule.Calls].
func (g governors) MonthEnd() time.Time { return g[0].governor.MonthEnd() }

// Promise implements [schedule.Calls].
func (g governors) Promise(ctx context.Context, p sessions.CallPromise) error {
	return g.of(p.Robot).Promise(ctx, p)
}

// callsByBot returns the calls of each bot.
func (g *gateway) callsByBot() []console.BotCalls {
	all := make([]console.BotCalls, len(g.calls))
	for i, one := range g.calls {
		s := one.governor.Status()
		all[i] = console.BotCalls{Name: g.robots.Name(one.robot), Made: s.Calls, Quota: s.Quota}
	}
	return all
}

// watchCalls reads the calls of other replicas until stop. It does nothing without DingTalk.
func (g *gateway) watchCalls(ctx context.Context) (stop func()) {
	stops := make([]func(), len(g.calls))
	for i, one := range g.calls {
		stops[i] = inBackground(ctx, one.governor.Watch)
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// callBudget is for /status; nil without DingTalk.
func (g *gateway) callBudget() func(sessions.RobotCode) command.CallBudget {
	if len(g.calls) == 0 {
		return nil
	}
	return func(robot sessions.RobotCode) command.CallBudget {
		s := g.calls.of(robot).Status()
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
