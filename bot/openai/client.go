package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"ebb/sessions/llm"
)

// Client implements llm.Model. It is safe for concurrent use.
type Client struct {
	models    []*model
	transport *http.Transport
	common    common
	end       context.CancelFunc
}

var _ llm.Model = (*Client)(nil)

// New sends no request.
func New(cfg Config) (*Client, error) {
	if len(cfg.Models) == 0 {
		return nil, errors.New("openai: no models are configured")
	}
	c := &Client{transport: newTransport(), common: common{idle: idleTimeout, pauses: callPauses}}
	c.common.life, c.end = context.WithCancel(context.Background())
	var keys []string
	first := -1
	for i, mc := range cfg.Models {
		if err := mc.prepare(); err != nil {
			return nil, err
		}
		if c.findModel(mc.Name) != nil {
			return nil, fmt.Errorf("openai: two models are named %q", mc.Name)
		}
		if mc.Name == cfg.Default {
			first = i
		}
		c.models = append(c.models, newModel(&mc, c.transport))
		keys = append(append(keys, mc.APIKey), queryValues(mc.BaseURL)...)
	}
	if cfg.Default != "" && first < 0 {
		return nil, fmt.Errorf("openai: the default model %q is not among the models", cfg.Default)
	}
	if first > 0 { // the default goes first
		d := c.models[first]
		copy(c.models[1:first+1], c.models[:first])
		c.models[0] = d
	}
	c.common.redact = redactor(keys)
	return c, nil
}

// Close closes idle connections; running calls continue.
func (c *Client) Close() {
	c.end()
	c.transport.CloseIdleConnections()
}

// Generate asks the requested model, then the others in order; models known to be down come last. An error is a
// *llm.CallError; the response then holds usage and cost of unusable answers.
func (c *Client) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	order, err := c.modelsFor(r.Model)
	if err != nil {
		return llm.Response{}, &llm.CallError{Class: llm.Malformed, Model: r.Model, Err: err}
	}
	if r.Force != "" && !offered(r.Tools, r.Force) {
		err := fmt.Errorf("forcing tool %q, which the request does not offer", r.Force)
		return llm.Response{}, &llm.CallError{Class: llm.Malformed, Model: order[0].conf.Name, Err: err}
	}
	return newCalling(ctx, &c.common, r).askModels(order)
}

// Models lists the models in the order of fallback, the default first.
func (c *Client) Models() []llm.ModelChoice {
	var list []llm.ModelChoice
	for _, m := range c.models {
		list = append(list, llm.ModelChoice{Name: m.conf.Name, ID: m.conf.id(), Price: m.conf.price()})
	}
	return list
}

// States returns the models' states by name.
func (c *Client) States() map[string]llm.State {
	states := map[string]llm.State{}
	for _, m := range c.models {
		states[m.conf.Name] = m.breaker.state()
	}
	return states
}

// WithoutTools implements llm.Toolless.
func (c *Client) WithoutTools(name string) bool {
	order, err := c.modelsFor(name)
	return err == nil && order[0].lessons.current().has(noTools)
}

// Learned lists the properties that a model's refusals taught, for operators.
func (c *Client) Learned(name string) []string {
	m := c.findModel(name)
	if m == nil {
		return nil
	}
	return m.lessons.current().describeForms()
}

func (c *Client) modelsFor(name string) ([]*model, error) {
	first := c.models[0]
	if name != "" {
		if first = c.findModel(name); first == nil {
			return nil, fmt.Errorf("looking up model %q: it is not configured", name)
		}
	}
	order := []*model{first}
	for _, m := range c.models {
		if m != first {
			order = append(order, m)
		}
	}
	return order, nil
}

func (c *Client) findModel(name string) *model {
	for _, m := range c.models {
		if m.conf.Name == name {
			return m
		}
	}
	return nil
}

func offered(tools []llm.ToolSpec, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}
