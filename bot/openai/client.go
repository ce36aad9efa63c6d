package openai

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot"
)

// Generate asks the requested model and, when it cannot answer, the others in order. An error is a *bot.ModelError, and the
// response then holds the usage and cost of answers that were no use, if any.
func (c *Client) Generate(ctx context.Context, r bot.Request) (bot.Response, error) {
	order, err := c.order(r.Model)
	if err != nil {
		return bot.Response{}, &bot.ModelError{Class: bot.Malformed, Model: r.Model, Err: err}
	}
	if r.Force != "" && !offered(r.Tools, r.Force) {
		err := fmt.Errorf("forcing tool %q, which the request does not offer", r.Force)
		return bot.Response{}, &bot.ModelError{Class: bot.Malformed, Model: order[0].Name, Err: err}
	}
	out := &sink{delta: r.Delta}
	var failed []*bot.ModelError
	var spent bot.Response
	for _, m := range order {
		resp, merr := c.ask(ctx, m, r, out)
		resp.Usage, resp.Cost = resp.Usage.Add(spent.Usage), resp.Cost+spent.Cost
		spent = bot.Response{Usage: resp.Usage, Cost: resp.Cost}
		if merr == nil {
			return resp, nil
		}
		failed = append(failed, merr)
		if merr.Class == bot.Overflow || merr.Class == bot.Refused || ctx.Err() != nil {
			return spent, merr
		}
		if len(failed) < len(order) {
			zerolog.Ctx(ctx).Warn().Err(merr).Str("model", m.Name).Str("class", bot.TroubleOf(merr)).Msg("Model failed, asking the next")
		}
	}
	return spent, verdict(failed)
}

// Check sends a request for one token to the named model, once, without fallback. The error is a *bot.ModelError.
func (c *Client) Check(ctx context.Context, name string) error {
	order, err := c.order(name)
	if err != nil {
		return &bot.ModelError{Class: bot.Malformed, Model: name, Err: err}
	}
	r := bot.Request{MaxOutput: 1, Messages: []bot.ChatMessage{
		{Role: "system", Content: "Answer with one word."}, {Role: "user", Content: "ping"},
	}}
	m := order[0]
	if _, merr := c.retry(ctx, m, func() call { return m.build(r, rungNone) }, 0, &sink{}); merr != nil {
		return merr
	}
	return nil
}

// order is the requested model, then the rest as they are configured.
func (c *Client) order(name string) ([]*model, error) {
	first := c.models[0]
	if name != "" {
		if first = c.find(name); first == nil {
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

func (c *Client) ask(ctx context.Context, m *model, r bot.Request, out *sink) (bot.Response, *bot.ModelError) {
	if r.Force != "" {
		return c.forced(ctx, m, r, out)
	}
	a, err := c.retry(ctx, m, func() call { return m.build(r, rungNone) }, m.Retries, out)
	if err != nil {
		return bot.Response{}, err
	}
	return m.response(a), nil
}

// retry asks m until it answers, refuses, or has been asked retries+1 times. A request that only needs another form
// for this provider is sent again in that form at once. With an error the answer has the usage of the last attempt.
func (c *Client) retry(ctx context.Context, m *model, build func() call, retries int, out *sink) (answer, *bot.ModelError) {
	for n := 0; ; {
		cl := build()
		out.reset()
		a, err := c.attempt(ctx, m, cl, out)
		if err == nil {
			return a, nil
		}
		if err.Class == bot.Malformed && m.adapt(cl, err) {
			continue
		}
		if err.Class != bot.Busy || n >= retries || ctx.Err() != nil || !c.rest(ctx, n, err.After) {
			return a, err
		}
		zerolog.Ctx(ctx).Debug().Err(err).Str("model", m.Name).Int("attempt", n+1).Msg("Model busy, asking again")
		n++
	}
}

// rest waits before the next attempt, and reports false at once when that attempt could not be made in time.
func (c *Client) rest(ctx context.Context, n int, after time.Duration) bool {
	d := min(c.backoff<<min(n, 16), maxBackoff)
	d = d/2 + rand.N(d/2+1)
	if after > 0 {
		d = after + rand.N(after/10+1) // not all at the moment the provider named
	}
	if d > maxRetryAfter {
		return false
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// verdict is the error of a call that no model answered: a busy model makes it worth another try later, otherwise
// the first model's error counts, since that is the one that was asked for.
func verdict(failed []*bot.ModelError) *bot.ModelError {
	if len(failed) == 1 {
		return failed[0]
	}
	pick := failed[0]
	var all []error
	for _, e := range failed {
		all = append(all, e)
		if e.Class == bot.Busy && pick.Class != bot.Busy {
			pick = e
		}
	}
	v := *pick
	v.Err = errors.Join(all...)
	return &v
}

// sink passes text on to the caller, and remembers whether there is any to take back.
type sink struct {
	delta func(text string, reset bool)
	dirty bool
}

func (s *sink) text(t string) {
	if s.delta != nil && t != "" {
		s.dirty = true
		s.delta(t, false)
	}
}

func (s *sink) reset() {
	if s.dirty {
		s.dirty = false
		s.delta("", true)
	}
}

func offered(tools []bot.ToolSpec, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}
