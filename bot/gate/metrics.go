package gate

import (
	"cmp"
	"context"
	"errors"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/sessions"
	"ebb/sessions/llm"
)

// Metrics counts all model calls, which pass the gate.
type Metrics struct {
	calls      *prometheus.CounterVec
	errors     *prometheus.CounterVec
	tokens     *prometheus.CounterVec
	cost       *prometheus.CounterVec
	seconds    *prometheus.HistogramVec
	firstToken *prometheus.HistogramVec
	corrected  *prometheus.CounterVec
}

var (
	kinds        = []llm.Kind{llm.KindTurn, llm.KindFlush, llm.KindExtract, llm.KindSummary, llm.KindDigest, llm.KindConsolidation, llm.KindProbe}
	errorClasses = []llm.ErrorClass{llm.Busy, llm.Timeout, llm.Broken, llm.Unreachable, llm.Missing, llm.Denied, llm.Unpaid, llm.Overflow, llm.Refused, llm.Malformed}
)

// CallBuckets returns histogram bounds in seconds, beyond the time of a turn.
func CallBuckets(first float64) []float64 {
	var bounds []float64
	for b := first; b < 1100; b *= 2 {
		bounds = append(bounds, b)
	}
	return bounds
}

// NewMetrics registers the metrics of m's calls. It panics if they are registered before.
func NewMetrics(r prometheus.Registerer, m llm.Model) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "ebb", Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "ebb", Name: name, Help: help, Buckets: CallBuckets(0.125)}, labels)
		r.MustRegister(v)
		return v
	}
	c := &Metrics{
		calls:      counter("model_calls_total", "Calls of models, by model and kind of work. A call that goes on to the next model counts for both.", "model", "kind"),
		errors:     counter("model_errors_total", "Calls that a model failed after all retries, also where the next model answered, by class.", "model", "kind", "class"),
		tokens:     counter("model_tokens_total", "Tokens as providers reported them: prompt, of which cached, and completion.", "model", "kind", "token"),
		cost:       counter("model_cost_total", "Price of calls, in llm.currency. Calls of models without a price count nothing.", "model", "kind"),
		seconds:    histogram("model_call_seconds", "Time of a call of one model, with its retries.", "model", "kind"),
		corrected:  counter("model_answers_corrected_total", "Answers whose text was changed before people read it or it was stored, by what the model had written.", "model", "kind", "correction"),
		firstToken: histogram("model_first_token_seconds", "Time of the last request of a call to its first token, where the answer was streamed.", "model"),
	}
	if states, known := m.(llm.States); known {
		r.MustRegister(modelStates{states, c, prometheus.NewDesc("ebb_model_state",
			"0 where calls go to the model, 1 where the next call tries it again, 2 where it is down and others are asked first.", []string{"model"}, nil)})
		c.expect(states.States())
	}
	return c
}

// expect begins the counts of models at 0, so that Prometheus sees the first increase.
func (c *Metrics) expect(models map[string]llm.State) {
	for name := range models {
		for _, kind := range kinds {
			c.calls.WithLabelValues(name, string(kind))
			for _, class := range errorClasses {
				c.errors.WithLabelValues(name, string(kind), string(class))
			}
		}
	}
}

// modelStates collects at each scrape: a reload changes the models.
type modelStates struct {
	llm.States
	counts *Metrics
	desc   *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (s modelStates) Describe(all chan<- *prometheus.Desc) { all <- s.desc }

// Collect implements prometheus.Collector.
func (s modelStates) Collect(all chan<- prometheus.Metric) {
	states := s.States.States()
	s.counts.expect(states)
	for name, state := range states {
		all <- prometheus.MustNewConstMetric(s.desc, prometheus.GaugeValue, float64(state), name)
	}
}

// call does not count a call that the caller cancelled as an error.
func (c *Metrics) call(r llm.Request, resp llm.Response, err error, took time.Duration) {
	kind := string(cmp.Or(r.Kind, llm.KindTurn))
	parts := resp.Parts
	if parts == nil {
		one := llm.Part{Model: cmp.Or(resp.Model, r.Model, "default"), Usage: resp.Usage, Cost: resp.Cost, Took: took}
		if m, ok := errors.AsType[*llm.CallError](err); ok {
			one.Err, one.Model = m, cmp.Or(m.Model, one.Model)
		}
		parts = []llm.Part{one}
	}
	for _, k := range resp.Corrected {
		c.corrected.WithLabelValues(cmp.Or(resp.Model, "default"), kind, string(k)).Inc()
	}
	for _, p := range parts {
		c.calls.WithLabelValues(p.Model, kind).Inc()
		c.seconds.WithLabelValues(p.Model, kind).Observe(p.Took.Seconds())
		if p.FirstToken > 0 {
			c.firstToken.WithLabelValues(p.Model).Observe(p.FirstToken.Seconds())
		}
		if p.Err != nil && !errors.Is(p.Err, context.Canceled) {
			c.errors.WithLabelValues(p.Model, kind, string(p.Err.Class)).Inc()
		}
		c.paid(p, llm.Kind(kind))
	}
}

func (c *Metrics) paid(p llm.Part, kind llm.Kind) {
	c.usage(p.Model, string(kind), p.Usage)
	if p.Cost > 0 && !math.IsInf(p.Cost, 0) {
		c.cost.WithLabelValues(p.Model, string(kind)).Add(p.Cost)
	}
}

func (c *Metrics) usage(model, kind string, u sessions.Usage) {
	for token, n := range map[string]int{"prompt": u.Prompt, "cached": u.Cached, "completion": u.Completion} {
		if n = llm.Clamp(n); n > 0 {
			c.tokens.WithLabelValues(model, kind, token).Add(float64(n))
		}
	}
}
