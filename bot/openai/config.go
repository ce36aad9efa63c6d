// Package openai asks any endpoint that speaks the OpenAI chat API. Providers' differences end here: retries,
// fallback models, streams that break, tools that cannot be forced. Its results are an llm.Response or a classified
// *llm.CallError.
//
// A call asks the requested model, then the others in the order of the configuration. Each model has a share of the
// time, and a breaker that learns from its failures. A tool is forced in the strictest way that the model has not
// refused yet. An exchange records what go-openai hides: headers, raw bodies, extra fields, the real end of a stream.
//
// The files read downward: client.go has the entry, calling.go the order of the models, slot.go the requests to one of them,
// attempt.go one request. Below are values: a call is written by request.go, and answer.go reads its answer. lessons.go knows what
// refusals teach of the forms of later calls.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/retry"
)

// Config lists the models and the retry settings.
type Config struct {
	// Default answers requests without a name. Empty: the first of Models.
	Default string
	// Models follow the requested one in this order; at least one.
	Models []ModelConfig
}

// ModelConfig is one endpoint and the model behind it.
type ModelConfig struct {
	// Name is unique, and identifies the model in requests.
	Name string
	// BaseURL includes the version, as in https://host/v1.
	BaseURL string
	// APIKey is a bearer token; may be empty.
	APIKey string
	// Model is the provider's name.
	Model string
	// MaxOutput bounds an answer, in tokens, by default; 0 leaves it to the provider.
	MaxOutput int
	// Timeout bounds one attempt, from the connection to the last byte. Default 120 s.
	Timeout time.Duration
	// FirstToken bounds the time to the first token, reasoning included, while another model could answer. Default 30
	// s.
	FirstToken time.Duration
	// Temperature is left to the provider when nil.
	Temperature *float32
	// Params are fields of the provider. They are merged into each chat request; Ebb's own fields win.
	Params map[string]any
	// Vision says whether the model sees pictures; nil: learned from the first refusal.
	Vision *bool
	// Retries is the number of retries before the next model.
	Retries int
	// PriceIn, PriceCached and PriceOut are for a million tokens, in any currency. PriceCached defaults to PriceIn.
	PriceIn, PriceCached, PriceOut float64
}

const (
	defaultTimeout = 120 * time.Second
	defaultFirst   = 30 * time.Second
	idleTimeout    = 60 * time.Second // silence that ends a begun stream
	maxRetryAfter  = 60 * time.Second // a longer requested pause selects the next model
)

// common is what all calls of a client share.
type common struct {
	redact func(string) string
	idle   time.Duration // idleTimeout
	pauses retry.Pauses
	life   context.Context //nolint:containedctx // probes without a reader end with the client
}

// The pauses grow from 500 ms to 20 s, or down to half of it.
var callPauses = retry.Pauses{First: 375 * time.Millisecond, Max: 15 * time.Second, Jitter: 1.0 / 3}

// id has neither credentials nor query of the address.
func (m *ModelConfig) id() sessions.ModelID {
	at, err := url.Parse(m.BaseURL)
	if err != nil {
		return sessions.ModelID(m.Model)
	}
	return sessions.ModelID(m.Model + "@" + at.Host + strings.TrimSuffix(at.Path, "/"))
}

// seesSurely reports whether the configuration says so. Then no refusal teaches the opposite.
func (m *ModelConfig) seesSurely() bool { return m.Vision != nil && *m.Vision }

// prepare refuses what no request could repair, and fills in times.
func (m *ModelConfig) prepare() error {
	u, err := url.Parse(m.BaseURL)
	switch {
	case m.Name == "":
		return errors.New("openai: a model has no name")
	case m.Model == "":
		return fmt.Errorf("openai: model %q: the provider's model name is empty", m.Name)
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return fmt.Errorf("openai: model %q: the base URL is not an http or https URL", m.Name)
	}
	if m.Timeout <= 0 {
		m.Timeout = defaultTimeout
	}
	if m.FirstToken <= 0 {
		m.FirstToken = defaultFirst
	}
	m.APIKey = strings.TrimSpace(m.APIKey) // a line break from a secret file would break the header
	return nil
}

func (m *ModelConfig) price() llm.Price {
	return llm.Price{In: m.PriceIn, Cached: m.PriceCached, Out: m.PriceOut}
}

// OpenAI refuses max_tokens for these models.
func wantsCompletionTokens(model string) bool {
	for _, p := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, p) {
			return true
		}
	}
	return false
}
