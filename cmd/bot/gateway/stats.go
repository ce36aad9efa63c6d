package gateway

import (
	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot/dingtalk"
)

// registerStats reads the counters of the transport at each scrape: the transport knows nothing of Prometheus.
func registerStats(r prometheus.Registerer, t *dingtalk.Transport) {
	count := func(name, help string, f func(dingtalk.Stats) int64) {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: "ebb", Subsystem: "dingtalk", Name: name, Help: help},
			func() float64 { return float64(f(t.Stats())) }))
	}
	count("connections_opened_total", "Stream connections opened.", func(s dingtalk.Stats) int64 { return s.ConnectionsOpened })
	count("connections_failed_total", "Tries to open a stream connection that failed.", func(s dingtalk.Stats) int64 { return s.ConnectionsFailed })
	count("connections_lost_total", "Stream connections that ended without notice.", func(s dingtalk.Stats) int64 { return s.ConnectionsLost })
	count("connections_rotated_total", "Stream connections replaced on DingTalk's word or for their silence.", func(s dingtalk.Stats) int64 { return s.Rotations })
	count("frames_total", "Frames with bot messages.", func(s dingtalk.Stats) int64 { return s.Frames })
	count("frames_unreadable_total", "Frames without a message or conversation id.", func(s dingtalk.Stats) int64 { return s.Unreadable })
	count("frames_rejected_total", "Frames not acknowledged because they could not be stored.", func(s dingtalk.Stats) int64 { return s.Rejected })
	count("rate_limited_total", "Sends put off by a rate limit.", func(s dingtalk.Stats) int64 { return s.RateLimited })
	count("tokens_fetched_total", "Access tokens fetched.", func(s dingtalk.Stats) int64 { return s.TokensFetched })
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "ebb", Subsystem: "dingtalk", Name: "connected", Help: "1 while the stream is connected."},
		func() float64 {
			if t.Ready() {
				return 1
			}
			return 0
		}))
}
