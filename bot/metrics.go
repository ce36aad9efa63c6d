package bot

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot/access"
	"ebb/bot/approval"
	"ebb/bot/gate"
	"ebb/bot/leader"
	"ebb/bot/outbox"
	"ebb/bot/parts"
	"ebb/bot/turn"
	"ebb/bot/turn/answer"
	"ebb/bot/turn/choice"
	"ebb/bot/upkeep"
	"ebb/memory/extract"
	"ebb/sessions"
	"ebb/sessions/guard"
	"ebb/sessions/serial"
)

// metrics have labels from small fixed sets, never from names, ids or text.
type metrics struct {
	accepted        *prometheus.CounterVec
	clicks, ratings *prometheus.CounterVec
	refused         *prometheus.CounterVec
	turns           *prometheus.CounterVec
	turnSeconds     prometheus.Histogram
	waitSeconds     prometheus.Histogram
	replies         *prometheus.CounterVec
	maybeDoubled    prometheus.Counter
	models          *gate.Metrics
	toolCalls       *prometheus.CounterVec
	approvals       *prometheus.CounterVec
	limited         *prometheus.CounterVec
	doubted         *prometheus.CounterVec
	refusals        *prometheus.CounterVec
	withheld        *prometheus.CounterVec
	flushes         *prometheus.CounterVec
	digests         *prometheus.CounterVec
	compactions     *prometheus.CounterVec
	freed           prometheus.Counter
	ended           *prometheus.CounterVec
	endedLost       prometheus.Counter
}

// measured are the parts whose state is measured when it is asked for.
type measured struct {
	shared   *parts.Shared
	gate     *gate.Gate
	turns    *serial.Mailboxes
	outbox   *outbox.Outbox
	expiry   *approval.Expiry
	stream   *leader.Stream // nil where each replica has a connection
	restarts *restartStats
}

func newMetrics(r prometheus.Registerer, of measured) *metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "ebb", Name: name, Help: help}, labels)
		r.MustRegister(v)
		return v
	}
	one := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "ebb", Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	hist := func(name, help string) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "ebb", Name: name, Help: help, Buckets: gate.CallBuckets(0.001)})
		r.MustRegister(h)
		return h
	}
	gauge := func(name, help string, f func() float64) {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "ebb", Name: name, Help: help}, f))
	}
	gauge("sessions_working", "Sessions with a running turn.", func() float64 { return float64(of.turns.Live()) })
	gauge("sessions_leased", "Sessions whose lease this replica holds.", func() float64 { return float64(of.shared.Leases.Count()) })
	gauge("model_calls_waiting", "Calls of the model that wait for a place among llm.max_concurrent.", func() float64 { return float64(of.gate.Waiting()) })
	if of.stream != nil {
		gauge("stream_leader", "1 where this replica leads: it holds the stream connection, and the others stand by.", func() float64 {
			if of.stream.Leads() {
				return 1
			}
			return 0
		})
	}
	gauge("approvals_waiting", "Calls of tools that wait for an approval, in the database: the same on each replica.", func() float64 { return float64(of.expiry.Waiting()) })
	gauge("outbox_waiting", "Replies committed and not sent yet.", func() float64 { return float64(of.outbox.Waiting()) })
	for _, w := range guard.Works {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Namespace: "ebb", Name: "panics_total", Help: "Panics that cost one piece of work alone, by work. Each is a fault of the program, and its log line has the stack.",
			ConstLabels: prometheus.Labels{"work": string(w)},
		}, func() float64 { return float64(guard.Panics(w)) }))
	}
	for name, figure := range of.restarts.byName() {
		r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "ebb", Name: "restart_report", Help: "The account of this process, as bot restarts shows it when it has ended.",
			ConstLabels: prometheus.Labels{"figure": name},
		}, func() float64 { return float64(figure.Load()) }))
	}
	m := &metrics{
		accepted:     vec("messages_accepted_total", "Messages stored before they were acknowledged, by outcome: new, duplicate, error.", "outcome"),
		refused:      vec("messages_refused_total", "Messages that access rules refused, which are not stored, by reason: group, person, external.", "reason"),
		turns:        vec("turns_total", "Turns committed, by kind.", "kind"),
		turnSeconds:  hist("turn_seconds", "Time of a turn from its begin to its commit."),
		waitSeconds:  hist("message_seconds", "Time of a message from its acceptance to the commit of its answer."),
		replies:      vec("replies_total", "Tries to send a reply, by way (none where no part arrived) and outcome.", "via", "outcome"),
		maybeDoubled: one("replies_maybe_doubled_total", "Replies sent again that may have arrived before: a process died between the send and its mark, or the answer to a try was lost."),
		models:       gate.NewMetrics(r, of.shared.Current),
		toolCalls:    vec("tool_calls_total", "Tool calls, by tool and outcome.", "tool", "outcome"),
		approvals:    vec("approvals_total", "Calls of tools that needed an approval, by outcome: asked, approved, rejected, expired.", "outcome"),
		limited:      vec("limits_reached_total", "Notices that a limit is reached, one in each window, by limit.", "limit"),
		doubted:      vec("model_reports_doubted_total", "Answers whose reported prompt tokens are missing or can't be right, by model.", "model"),
		refusals:     vec("model_refusals_total", "Permanent refusals of turns by providers, by what was refused: question, history, model (every request).", "what"),
		withheld:     vec("withheld_total", "Rows kept from a model that refuses them, by row: message, summary, fact, page.", "row"),
		flushes:      vec("memory_flushes_total", "Memory flushes, by outcome: saved (a fact at least, new or known before), nothing (no fact), failed.", "outcome"),
		digests:      vec("daily_digests_total", "Days summarized as digests, by outcome: written, nothing, failed.", "outcome"),
		compactions:  vec("compactions_total", "Compactions tried, by trigger and outcome.", "trigger", "outcome"),
		freed:        one("compaction_freed_tokens_total", "Tokens that compactions took out of contexts."),
		ended:        vec("restarts_total", "Ends of processes that this one reported first, by ending: clean, killed.", "ending"),
		clicks:       vec("card_clicks_total", "Presses of buttons on cards, by action and outcome: done, refused, error.", "action", "outcome"),
		ratings:      vec("ratings_total", "Ratings of answers by their askers: good, bad.", "rating"),
		endedLost:    one("restarts_lost_total", "Acknowledged messages that were not in the log at the ends of processes that this one reported first."),
	}
	m.begin()
	return m
}

func limitNames() (names []string) {
	for _, l := range sessions.AllLimits {
		names = append(names, string(l))
	}
	return names
}

// begin sets the counters of alerts to 0: Prometheus sees no increase in a series that begins with its first event.
func (m *metrics) begin() {
	for v, words := range map[*prometheus.CounterVec][]string{
		m.accepted:  {"new", "duplicate", "error"},
		m.refused:   {string(access.Group), string(access.Person), string(access.External)},
		m.ratings:   {string(sessions.Good), string(sessions.Bad)},
		m.ended:     {string(sessions.Clean), string(sessions.Killed)},
		m.limited:   limitNames(),
		m.approvals: {turn.CallAsked, string(sessions.ApprovalApproved), string(sessions.ApprovalRejected), string(sessions.ApprovalExpired)},
		m.flushes:   {"saved", "nothing", "failed"},
		m.digests:   {string(upkeep.DigestWritten), string(upkeep.DigestNothing), string(upkeep.DigestFailed)},
		m.refusals:  {string(answer.RefusedQuestion), string(answer.RefusedHistory), string(answer.RefusedAll)},
		m.withheld:  {string(upkeep.WithheldMessage), string(upkeep.WithheldSummary), string(upkeep.WithheldFact), string(upkeep.WithheldPage)},
	} {
		for _, w := range words {
			v.WithLabelValues(w)
		}
	}
	for _, via := range []string{noWay, "webhook", "openapi"} {
		for _, outcome := range []string{"sent", "retried", "given_up"} {
			m.replies.WithLabelValues(via, outcome)
		}
	}
}

// restartEnded counts the end of a process that this one reported first.
func (m *metrics) restartEnded(r sessions.Restart) {
	m.ended.WithLabelValues(string(r.Ending)).Inc()
	m.endedLost.Add(float64(max(0, r.Figures.Lost)))
}

type recorder struct {
	metrics  *metrics
	restarts *restartStats
}

// TurnBegun implements turn.Stats.
func (r *recorder) TurnBegun(key sessions.Key, asked []sessions.Event) { r.restarts.begin(key, asked) }

// TurnCommitted implements turn.Stats; now is the storage's clock.
func (r *recorder) TurnCommitted(key sessions.Key, kind choice.Kind, asked []sessions.Event, took time.Duration, now time.Time, stopping bool) {
	m := r.metrics
	r.restarts.turn(key, asked, stopping)
	m.turns.WithLabelValues(string(kind)).Inc()
	m.turnSeconds.Observe(took.Seconds())
	for _, e := range asked {
		m.waitSeconds.Observe(max(0, now.Sub(e.CreatedAt).Seconds()))
	}
}

// noWay labels replies of which no part arrived: an empty label is none.
const noWay = "none"

// ToolCalled implements turn.Stats.
func (r *recorder) ToolCalled(tool string, outcome answer.ToolOutcome) {
	r.metrics.toolCalls.WithLabelValues(tool, string(outcome)).Inc()
}

// CallsDecided implements turn.Stats.
func (r *recorder) CallsDecided(outcome string, n int) {
	r.metrics.approvals.WithLabelValues(outcome).Add(float64(n))
}

// ReportDoubted implements turn.Stats.
func (r *recorder) ReportDoubted(model string) {
	r.metrics.doubted.WithLabelValues(model).Inc()
}

// LimitReached implements turn.Stats.
func (r *recorder) LimitReached(limit sessions.Limit) {
	r.metrics.limited.WithLabelValues(string(limit)).Inc()
}

// RequestRefused implements turn.Stats.
func (r *recorder) RequestRefused(what answer.Refused) {
	r.metrics.refusals.WithLabelValues(string(what)).Inc()
	if what == answer.RefusedQuestion {
		r.Withheld(upkeep.WithheldMessage, 1)
	}
}

// Withheld implements upkeep.Stats.
func (r *recorder) Withheld(kind upkeep.WithheldKind, n int) {
	r.metrics.withheld.WithLabelValues(string(kind)).Add(float64(n))
}

// ReplyResumed implements outbox.Stats.
func (r *recorder) ReplyResumed() { r.restarts.resumed.Add(1) }

// ReplyDoubled implements outbox.Stats.
func (r *recorder) ReplyDoubled() {
	r.metrics.maybeDoubled.Inc()
	r.restarts.doubled.Add(1)
}

// ReplyTried implements outbox.Stats.
func (r *recorder) ReplyTried(s sessions.SendOutcome) {
	outcome := "retried"
	switch {
	case s.Sent:
		outcome = "sent"
	case s.Failed:
		outcome = "given_up"
	}
	r.metrics.replies.WithLabelValues(cmp.Or(s.Via, noWay), outcome).Inc()
}

// Flushed implements upkeep.Stats.
func (r *recorder) Flushed(o extract.Outcome, err error) {
	outcome := "saved"
	switch {
	case err != nil:
		outcome = "failed"
	case o.Receipt.Rows() == 0:
		outcome = "nothing"
	}
	r.metrics.flushes.WithLabelValues(outcome).Inc()
}

// DigestEnded implements upkeep.Stats.
func (r *recorder) DigestEnded(outcome upkeep.DigestOutcome) {
	r.metrics.digests.WithLabelValues(string(outcome)).Inc()
}

// Compacted implements upkeep.Stats; an attempt without an outcome did not start.
func (r *recorder) Compacted(e sessions.LogEntry) {
	if e.Outcome == "" {
		return
	}
	r.metrics.compactions.WithLabelValues(string(e.Trigger), string(e.Outcome)).Inc()
	r.metrics.freed.Add(float64(max(0, e.TokensBefore-e.TokensAfter))) // negative after an undo, or when pinned memory grew
}
