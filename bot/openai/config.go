// Package openai asks any endpoint that speaks the OpenAI chat API. Providers' differences end here: retries,
// fallback models, streams that break, tools that cannot be forced. Its results are an llm.Response or a classified
// *llm.CallError.
//
// A call asks the requested model, then the others in the order of the configuration. Each model has a share of the
// time, and a breaker that learns from its failures. A tool is forced in the strictest way that the model has not
// refused yet. An exchange records what go-openai hides: headers, raw bodies, extra fields, the real end of a stream.
package openai

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	goopenai "github.com/sashabaranov/go-openai"

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

// The pauses grow from 500 ms to 20 s, or down to half of it.
var callPauses = retry.Pauses{First: 375 * time.Millisecond, Max: 15 * time.Second, Jitter: 1.0 / 3}

// Client implements llm.Model. It is safe for concurrent use.
type Client struct {
	models    []*model
	transport *http.Transport
	redact    func(string) string
	idle      time.Duration
	pauses    retry.Pauses
	life      context.Context //nolint:containedctx // probes without a reader end with the client
	end       context.CancelFunc
}

var _ llm.Model = (*Client)(nil)

type model struct {
	ModelConfig
	api              *goopenai.Client
	breaker          *breaker
	completionTokens bool // its limit of an answer is called max_completion_tokens, by the name of the model
	learned          atomic.Pointer[forms]
	answered         atomic.Uint64 // properties whose opposite was in an answered request
	suspected        atomic.Uint64 // properties that were changed for a refusal without a known reason
	encoded          encodedTools
	untagged         atomic.Bool // its reasoning has no opening tag
	whole            atomic.Bool // answers in one piece despite a requested stream
}

// id has neither credentials nor query of the address.
func (m *model) id() sessions.ModelID {
	at, err := url.Parse(m.BaseURL)
	if err != nil {
		return sessions.ModelID(m.Model)
	}
	return sessions.ModelID(m.Model + "@" + at.Host + strings.TrimSuffix(at.Path, "/"))
}

// New sends no request.
func New(cfg Config) (*Client, error) {
	if len(cfg.Models) == 0 {
		return nil, errors.New("openai: no models are configured")
	}
	c := &Client{transport: newTransport(), idle: idleTimeout, pauses: callPauses}
	c.life, c.end = context.WithCancel(context.Background())
	var keys []string
	first := -1
	for i, mc := range cfg.Models {
		m, err := c.newModel(mc)
		if err != nil {
			return nil, err
		}
		if c.findModel(m.Name) != nil {
			return nil, fmt.Errorf("openai: two models are named %q", m.Name)
		}
		if m.Name == cfg.Default {
			first = i
		}
		c.models = append(c.models, m)
		keys = append(append(keys, m.APIKey), queryValues(mc.BaseURL)...)
	}
	if cfg.Default != "" && first < 0 {
		return nil, fmt.Errorf("openai: the default model %q is not among the models", cfg.Default)
	}
	if first > 0 { // the default goes first
		d := c.models[first]
		copy(c.models[1:first+1], c.models[:first])
		c.models[0] = d
	}
	c.redact = redactor(keys)
	return c, nil
}

// newModel refuses what no request could repair, and fills in times. The breaker waits as long as a first token may take, so that a
// slow model is no broken one.
func (c *Client) newModel(mc ModelConfig) (*model, error) {
	u, err := url.Parse(mc.BaseURL)
	switch {
	case mc.Name == "":
		return nil, errors.New("openai: a model has no name")
	case mc.Model == "":
		return nil, fmt.Errorf("openai: model %q: the provider's model name is empty", mc.Name)
	case err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https"):
		return nil, fmt.Errorf("openai: model %q: the base URL is not an http or https URL", mc.Name)
	}
	if mc.Timeout <= 0 {
		mc.Timeout = defaultTimeout
	}
	if mc.FirstToken <= 0 {
		mc.FirstToken = defaultFirst
	}
	mc.APIKey = strings.TrimSpace(mc.APIKey) // a line break from a secret file would break the header
	conf := goopenai.DefaultConfig(mc.APIKey)
	conf.BaseURL = mc.BaseURL
	conf.HTTPClient = doer{&http.Client{Transport: c.transport}}
	m := &model{ModelConfig: mc, breaker: newBreaker(mc.FirstToken), api: goopenai.NewClientWithConfig(conf), encoded: newEncodedTools()}
	m.completionTokens = wantsCompletionTokens(mc.Model)
	m.learned.Store(&forms{})
	switch {
	case m.seesSurely():
		m.answered.Store(uint64(noPictures))
	case mc.Vision != nil:
		m.learned.Store(&forms{set: noPictures})
	}
	return m, nil
}

// seesSurely reports whether the configuration says so. Then no refusal teaches the opposite.
func (m *model) seesSurely() bool { return m.Vision != nil && *m.Vision }

// Close closes idle connections; running calls continue.
func (c *Client) Close() {
	c.end()
	c.transport.CloseIdleConnections()
}

func (c *Client) findModel(name string) *model {
	for _, m := range c.models {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// newTransport keeps a connection for each of many sessions to one host; Go's default of two would mean a TLS
// handshake for almost every turn.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          512,
		MaxIdleConnsPerHost:   256,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
}

// Some providers take a key in an address's query, and errors repeat the address.
func queryValues(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	var values []string
	for _, v := range u.Query() {
		values = append(values, v...)
	}
	return values
}

const maxErrorText = 1000

// redactor removes configured keys, and similar strings, from a text and bounds its length.
func redactor(keys []string) func(string) string {
	var pairs []string
	for _, k := range keys {
		if len(k) >= 6 { // a shorter one is no real key, and a part of ordinary words
			pairs = append(pairs, k, "***")
		}
	}
	literal := strings.NewReplacer(pairs...)
	return func(s string) string {
		s = keyLike().ReplaceAllString(literal.Replace(s), "${label}***")
		if len(s) > maxErrorText {
			s = strings.ToValidUTF8(s[:maxErrorText], "") + "…"
		}
		return s
	}
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
