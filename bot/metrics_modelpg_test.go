package bot_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"ebb/bot"
	"ebb/bot/bottest"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Tokens and costs of the metrics are those of the database: of answers, flushes and summaries, of calls that failed or whose
// answer was thrown away too. /status shows them.
func TestTokensOfMetricsAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	p := imported(t, defaults, 3000, 74)
	eraser, registry := &place{t: t, url: p.url}, prometheus.NewRegistry()
	r := p.run("a", func(r *replica, c *bot.Config) {
		c.Metrics, c.Language = registry, "en"
		used := func(a llm.Response, prompt int) (llm.Response, error) {
			a.Usage = sessions.Usage{Prompt: prompt, Cached: prompt / 2, Completion: 7}
			a.Cost, a.Model = float64(prompt)/1000, "fake"
			return a, nil
		}
		failed, thrown := false, false
		r.model.Chat = func(context.Context, llm.Request) (llm.Response, error) {
			if !thrown { // an erasure ends the term of a turn that is under way
				thrown = true
				eraser.exec("UPDATE dingtalk_sessions SET lease_owner = NULL, lease_term = lease_term + 1 WHERE session_key = $1", string(bottest.Group))
			}
			return used(bottest.Text("so it is"), 1100)
		}
		r.model.Summary = func(context.Context, llm.Request) (llm.Response, error) {
			return used(bottest.Text(bottest.GoodSummary), 2300)
		}
		r.model.Flush = func(context.Context, llm.Request) (llm.Response, error) {
			if !failed {
				failed = true
				a, _ := used(llm.Response{}, 50)
				err := &llm.CallError{Class: llm.Denied, Model: "broken", Err: errors.New("no key")}
				a.Model, a.Parts = "", []llm.Part{{Model: "broken", Usage: a.Usage, Cost: a.Cost, Err: err}, {Model: "silent"}}
				return a, err
			}
			return used(bottest.SaveCall(fmt.Sprintf("Fact number %d.", p.facts.Add(1))), 3100)
		}
	})
	r.work()
	r.post(bottest.Said("q1", "alice", "And what of the gateway?"))
	r.settle()
	r.post(bottest.Said("q2", "alice", "And its release?"))
	r.settle()
	r.work()

	db := p.db()
	sum := func(query string) float64 { return one[float64](t, db, query) }
	tokens := bottest.Counters(t, registry, "ebb_model_tokens_total", "kind")
	flushes := sum("SELECT coalesce(sum(prompt_tokens + completion_tokens), 0)::float8 FROM memory_flushes")
	compactions := sum("SELECT coalesce(sum(prompt_tokens + completion_tokens), 0)::float8 FROM compaction_log")
	whole := sum("SELECT coalesce(sum(prompt_tokens + completion_tokens), 0)::float8 FROM dingtalk_sessions")
	bottest.Want(t, "answers, with the one that was thrown away", tokens["turn"], 3*1107.0)
	bottest.Want(t, "flushes, with the one that failed", tokens["flush"], flushes+57)
	bottest.Want(t, "summaries", tokens["summary"], compactions)
	bottest.Want(t, "all", tokens["turn"]+tokens["flush"]+tokens["summary"], whole)
	bottest.Want(t, "errors of flushes", bottest.Counters(t, registry, "ebb_model_errors_total", "kind")["flush"], 1)
	bottest.Want(t, "errors by class", bottest.Counters(t, registry, "ebb_model_errors_total", "class")["denied"], 1)
	if flushes == 0 || compactions == 0 {
		t.Errorf("%v tokens of flushes and %v of compactions: nothing was compared", flushes, compactions)
	}
	// The sums have what everything took. The receipts and the log have what came through.
	cost := bottest.Counters(t, registry, "ebb_model_cost_total", "kind")
	for _, kind := range []string{"turn", "flush", "summary"} {
		spent := func(what string) float64 {
			return one[float64](t, db, "SELECT round(sum("+what+")::numeric, 6)::float8 FROM model_usage WHERE kind = $1", kind)
		}
		bottest.Want(t, "tokens of "+kind, spent("prompt_tokens + completion_tokens"), tokens[kind])
		bottest.Want(t, "cost of "+kind, spent("cost"), math.Round(cost[kind]*1e6)/1e6)
	}
	models := bottest.Counters(t, registry, "ebb_model_tokens_total", "model")
	for _, model := range []string{"fake", "broken"} {
		bottest.Want(t, "tokens of model "+model, one[float64](t, db, "SELECT sum(prompt_tokens + completion_tokens)::float8 FROM model_usage WHERE model = $1", model), models[model])
	}
	bottest.Want(t, "rows of usage without a model", one[int](t, db, "SELECT count(*)::int FROM model_usage WHERE model = ''"), 0)
	bottest.Want(t, "cost of answers", math.Round(cost["turn"]*1e6)/1e6, 3.3)
	bottest.Want(t, "cost of flushes", math.Round(cost["flush"]*1e6)/1e6, sum("SELECT round(sum(cost)::numeric + 0.05, 6)::float8 FROM memory_flushes"))
	bottest.Want(t, "cost of summaries", math.Round(cost["summary"]*1e6)/1e6, sum("SELECT round(sum(cost)::numeric, 6)::float8 FROM compaction_log"))

	status := bottest.Said("q3", "alice", "/status")
	status.Admin = true // the figures are for administrators
	r.post(status)
	r.settle()
	answer := r.wire.Texts()[len(r.wire.Texts())-1]
	line := fmt.Sprintf("- today: memory flushes %s, compactions %s, answers 3,321 tokens; cost %.4f\n",
		wording.Thousands(int(tokens["flush"])), wording.Thousands(int(tokens["summary"])), cost["turn"]+cost["flush"]+cost["summary"])
	if !strings.Contains(answer, line) {
		t.Errorf("/status lacks %q:\n%s", line, answer)
	}
}
