package config

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"ebb/bot/view"
)

// MemoryConfig says what is kept of conversations for good, and how it comes back.
type MemoryConfig struct {
	// Recall is when memory is searched before the model is asked: "questions" (default), where a message asks about
	// something earlier; "always"; or "off".
	Recall string `json:"recall"`
	// RecallTokens is how much of what is found stands beside a question, in tokens, at most an eighth of what a request
	// holds. Default 800.
	RecallTokens int `json:"recall_tokens"`
	// PinnedTokens is how much of memory stands at the head of a context, in tokens, at most a twelfth of
	// AutoCompactThreshold. Default 600; 0: none.
	PinnedTokens int `json:"pinned_tokens"`
	// Order is the order of a request's parts between the system prompt and the question. Default "pinned", "summaries",
	// "raw", "recall".
	Order []string `json:"order"`
	// Extract is when facts are drawn out of a conversation: "flush" (default), before it is compacted and where it rests
	// when something worth it, or enough of anything, was said; or "every_turn", after each answer.
	Extract string `json:"extract"`
	// Candidates is how many messages that look worth remembering make an extraction due. Default 0: they wait for the
	// flush of a conversation at rest.
	Candidates int `json:"candidates"`
	// MaxPerScope is how many facts a person, a group or a session has before it is tried to tell them in fewer.
	// Default 500.
	MaxPerScope int `json:"max_per_scope"`
	// TaskTTL is how long the state of work is remembered. Default 336 h, two weeks.
	TaskTTL time.Duration `json:"task_ttl"`
	// Digest is the time of day, as in "04:00", at which a group's day is told; empty for never. Default "04:00".
	Digest string `json:"digest"`
	// Embeddings let a search find what shares the meaning and no word.
	Embeddings EmbeddingsConfig `json:"embeddings"`
}

// EmbeddingsConfig is an OpenAI-compatible endpoint for embeddings.
type EmbeddingsConfig struct {
	// BaseURL is the endpoint up to and including its version. Default empty: searches go by words alone.
	BaseURL Endpoint `json:"base_url"`
	// APIKey is sent as a bearer token. Empty is allowed.
	APIKey Secret `json:"api_key"`
	// Model is the provider's name of the model. Required with a BaseURL.
	Model string `json:"model"`
	// Dimensions is the length of a vector that is asked for. Default 0: the model's own.
	Dimensions int `json:"dimensions"`
	// Batch is how many texts go into one request, 1 to 2,048. Default 64.
	Batch int `json:"batch"`
	// RequestsPerMinute bounds the requests of the background. Default 60.
	RequestsPerMinute int `json:"requests_per_minute"`
	// Weight is what a find by meaning counts against one by words, 0 to 1. Default 0.5.
	Weight float64 `json:"weight"`
}

// When memory is searched before the model is asked, and when facts are drawn out of a conversation.
const (
	recallQuestions = "questions"
	recallAlways    = "always"
	RecallOff       = "off"
	extractFlush    = "flush"
	ExtractTurn     = "every_turn"
)

func defaultMemory() MemoryConfig {
	return MemoryConfig{
		Recall: recallQuestions, RecallTokens: 800, PinnedTokens: 600,
		Order:   []string{"pinned", "summaries", "raw", "recall"},
		Extract: extractFlush, MaxPerScope: 500, TaskTTL: 14 * 24 * time.Hour, Digest: "04:00",
		Embeddings: EmbeddingsConfig{Batch: 64, RequestsPerMinute: 60, Weight: 0.5},
	}
}

// clockForm is a time of day.
var clockForm = regexp.MustCompile(`^(?:[01]\d|2[0-3]):[0-5]\d$`)

// wantDigest is what a digest can be; the decoder says it too, to who wants to switch it off with false.
const wantDigest = `"HH:MM" or ""`

func (m *MemoryConfig) check(k checker) {
	const at = "agent.memory."
	k.oneOf(at+"recall", m.Recall, []string{recallQuestions, recallAlways, RecallOff})
	k.between(at+"recall_tokens", m.RecallTokens, 100, 8000)
	k.between(at+"pinned_tokens", m.PinnedTokens, 0, 8000)
	if err := m.InjectionOrder().Check(); err != nil && !k.failed(at+"order") {
		k.fail(at+"order", "got %s, want each of %s once: %v", listed(m.Order), listed(view.DefaultOrder()), err)
	}
	k.oneOf(at+"extract", m.Extract, []string{extractFlush, ExtractTurn})
	k.between(at+"candidates", m.Candidates, 0, 1000)
	k.between(at+"max_per_scope", m.MaxPerScope, 20, 100_000)
	k.want(m.TaskTTL >= time.Hour, at+"task_ttl", durationText(m.TaskTTL), `at least 1h; two weeks are "336h"`)
	k.want(m.Digest == "" || clockForm.MatchString(m.Digest), at+"digest", strconv.Quote(m.Digest), wantDigest)
	m.Embeddings.check(k, at+"embeddings.")
}

// order is the order of a request's parts, not checked.
func (m *MemoryConfig) InjectionOrder() view.Order {
	parts := make(view.Order, len(m.Order))
	for i, p := range m.Order {
		parts[i] = view.Piece(p)
	}
	return parts
}

// listed shows a list of strings as a config writes it.
func listed[S ~string](list []S) string {
	each := make([]string, len(list))
	for i, one := range list {
		each[i] = strconv.Quote(string(one))
	}
	return "[" + strings.Join(each, ", ") + "]"
}

func (e *EmbeddingsConfig) check(k checker, at string) {
	if e.BaseURL != "" || k.failed(at+"base_url") {
		k.httpURL(at+"base_url", e.BaseURL.Reveal())
		if cut, whole := strings.CutSuffix(strings.TrimRight(e.BaseURL.Reveal(), "/"), "/embeddings"); whole && !k.failed(at+"base_url") {
			k.fail(at+"base_url", "got %q, want it without /embeddings, which is added to it: %q", e.BaseURL.String(), Endpoint(cut).String())
		}
		k.required(at+"model", e.Model, "the provider's name of the model")
	}
	k.between(at+"dimensions", e.Dimensions, 0, 16_000)
	k.between(at+"batch", e.Batch, 1, 2048)
	k.between(at+"requests_per_minute", e.RequestsPerMinute, 1, 100_000)
	k.want(e.Weight >= 0 && e.Weight <= 1, at+"weight", e.Weight, "0 to 1")
}

// warn says what will not do what it seems to.
func (e *EmbeddingsConfig) warn(c *Config, src *source, at string) {
	switch vars := src.unset[at+"api_key"]; {
	case e.BaseURL != "" && len(vars) > 0:
		c.warn(src.warning(at+"api_key", "is empty, since %s is not set in the environment: the endpoint is asked without a key",
			strings.Join(vars, " and ")))
	case e.BaseURL == "" && e.Model != "":
		c.warn(src.warning(at+"model", "has no effect without a base_url: searches go by words alone"))
	}
}
