package config

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"ebb/bot/config/strict"
	"ebb/bot/view"
)

// MemoryConfig has the settings of memory and its recall.
type MemoryConfig struct {
	// Recall searches before a model call: "questions", for a message that asks about something earlier; "always"; or
	// "off".
	Recall string `json:"recall"`
	// RecallTokens bounds the recalled text, at most an eighth of a request.
	RecallTokens int `json:"recall_tokens"`
	// RecallTimeout bounds the wait for a search.
	RecallTimeout time.Duration `json:"recall_timeout"`
	// PinnedTokens bounds pinned memory, at most a twelfth of AutoCompactThreshold. 0: none.
	PinnedTokens int `json:"pinned_tokens"`
	// Extract is "flush", before a compaction and in an idle session with promising or enough new messages; or
	// "every_turn", after each answer.
	Extract string `json:"extract"`
	// Candidates is the number of promising messages that triggers an extraction. 0: they wait for the idle session.
	Candidates int `json:"candidates"`
	// MaxPerScope facts of a person, group or session trigger a consolidation.
	MaxPerScope int `json:"max_per_scope"`
	// TaskTTL is the lifetime of task facts.
	TaskTTL time.Duration `json:"task_ttl"`
	// Digest is the time of day of a group's daily digest; empty: never.
	Digest string `json:"digest"`
	// Embeddings let a search find texts of similar meaning without a common word.
	Embeddings EmbeddingsConfig `json:"embeddings"`
}

// EmbeddingsConfig is an OpenAI-compatible endpoint for embeddings.
type EmbeddingsConfig struct {
	// BaseURL ends with its version. Empty: searches use words only.
	BaseURL Endpoint `json:"base_url"`
	// APIKey is sent as a bearer token. Empty is allowed.
	APIKey Secret `json:"api_key"`
	// Model is the provider's name. Required with a BaseURL.
	Model string `json:"model"`
	// Dimensions is the requested length of a vector. 0: the model's own.
	Dimensions int `json:"dimensions"`
	// Batch is the number of texts in one request, 1 to 2,048.
	Batch int `json:"batch"`
	// RequestsPerMinute bounds the background requests.
	RequestsPerMinute int `json:"requests_per_minute"`
	// Weight is that of a semantic hit relative to a lexical one, 0 to 1.
	Weight float64 `json:"weight"`
}

// Values of agent.memory.recall and agent.memory.extract.
const (
	recallQuestions = "questions"
	recallAlways    = "always"
	RecallOff       = "off"
	extractFlush    = "flush"
	ExtractTurn     = "every_turn"
)

func defaultMemory() MemoryConfig {
	return MemoryConfig{
		Recall: recallQuestions, RecallTokens: 800, RecallTimeout: view.RecallTime, PinnedTokens: 600,
		Extract: extractFlush, MaxPerScope: 500, TaskTTL: 14 * 24 * time.Hour, Digest: "04:00",
		Embeddings: EmbeddingsConfig{Batch: 64, RequestsPerMinute: 60, Weight: 0.5},
	}
}

var clockForm = regexp.MustCompile(`^(?:[01]\d|2[0-3]):[0-5]\d$`)

const wantDigest = `"HH:MM" or ""`

func (m *MemoryConfig) check(k *strict.Source) {
	const at = "agent.memory."
	k.OneOf(at+"recall", m.Recall, []string{recallQuestions, recallAlways, RecallOff})
	k.Between(at+"recall_tokens", m.RecallTokens, 100, 8000)
	k.Positive(at+"recall_timeout", m.RecallTimeout)
	k.Between(at+"pinned_tokens", m.PinnedTokens, 0, 8000)
	k.OneOf(at+"extract", m.Extract, []string{extractFlush, ExtractTurn})
	k.Between(at+"candidates", m.Candidates, 0, 1000)
	k.Between(at+"max_per_scope", m.MaxPerScope, 20, 100_000)
	k.Want(m.TaskTTL >= time.Hour, at+"task_ttl", strict.DurationText(m.TaskTTL), `at least 1h; two weeks are "336h"`)
	k.Expects(at+"digest", wantDigest)
	k.Want(m.Digest == "" || clockForm.MatchString(m.Digest), at+"digest", strconv.Quote(m.Digest), wantDigest)
	m.Embeddings.check(k, at+"embeddings.")
}

func (e *EmbeddingsConfig) check(k *strict.Source, at string) {
	if e.BaseURL != "" || k.Failed(at+"base_url") {
		wantURL(k, at+"base_url", e.BaseURL.Reveal())
		if cut, whole := strings.CutSuffix(strings.TrimRight(e.BaseURL.Reveal(), "/"), "/embeddings"); whole && !k.Failed(at+"base_url") {
			k.Fail(at+"base_url", "got %q, want it without /embeddings, which is added to it: %q", e.BaseURL.String(), Endpoint(cut).String())
		}
		wantModelURL(k, at+"base_url", e.BaseURL.Reveal())
		wantName(k, at+"model", e.Model, "the provider's name of the model")
	}
	wantSecret(k, at+"api_key", e.APIKey.Reveal(), "the key of the endpoint")
	k.Advise(!strings.ContainsFunc(e.APIKey.Reveal(), isNoKey), at+"api_key", "has blanks or other letters than ASCII, want the key of the endpoint alone, without \"Bearer\"")
	k.Between(at+"dimensions", e.Dimensions, 0, 16_000)
	k.Between(at+"batch", e.Batch, 1, 2048)
	k.Between(at+"requests_per_minute", e.RequestsPerMinute, 1, 100_000)
	k.Want(e.Weight >= 0 && e.Weight <= 1, at+"weight", e.Weight, "0 to 1")
}
