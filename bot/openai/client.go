package openai

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"ebb/sessions/llm"
)

// Generate asks the requested model, then the others in order; models known to be down come last. An error is a
// *llm.CallError; the response then holds usage and cost of unusable answers.
func (c *Client) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	order, err := c.modelsFor(r.Model)
	if err != nil {
		return llm.Response{}, &llm.CallError{Class: llm.Malformed, Model: r.Model, Err: err}
	}
	if r.Force != "" && !offered(r.Tools, r.Force) {
		err := fmt.Errorf("forcing tool %q, which the request does not offer", r.Force)
		return llm.Response{}, &llm.CallError{Class: llm.Malformed, Model: order[0].Name, Err: err}
	}
	k := &calling{client: c, req: r, caller: ctx, out: &sink{delta: r.Delta, idea: r.Thought}}
	for left := order; len(left) > 0; {
		var s slot
		s, left = k.nextModel(left)
		take := k.takeAnswer
		if s.pass.trial && !s.last {
			take = k.probeModel
		}
		resp, merr := take(s, len(left))
		if merr == nil {
			return resp, nil
		}
		if merr.Class == llm.Overflow || ctx.Err() != nil {
			return k.spent, merr
		}
		if merr.RequestFault() {
			k.refused++
		}
		if k.refused == maxRefused {
			break
		}
		if k.req.Requests > 0 && k.made >= k.req.Requests {
			merr.Next = !s.last && !merr.RequestFault()
			break
		}
		if len(left) > 0 {
			zerolog.Ctx(ctx).Warn().Err(merr).Str("model", s.m.Name).Str("class", string(merr.Class)).Msg("Model failed, asking the next")
		}
	}
	return k.spent, joinedFault(k.failed)
}

// maxRefused models are asked with a request that they refuse. The caller can ask for less.
const maxRefused = 2

// Models lists the models in the order of fallback, the default first.
func (c *Client) Models() []llm.ModelChoice {
	var list []llm.ModelChoice
	for _, m := range c.models {
		list = append(list, llm.ModelChoice{Name: m.Name, ID: m.id(), Price: m.priceNow()})
	}
	return list
}

// States returns the models' states by name.
func (c *Client) States() map[string]llm.State {
	states := map[string]llm.State{}
	for _, m := range c.models {
		states[m.Name] = m.breaker.state()
	}
	return states
}

// WithoutTools implements llm.Toolless.
func (c *Client) WithoutTools(name string) bool {
	order, err := c.modelsFor(name)
	return err == nil && order[0].learned.Load().has(noTools)
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

// joinedFault is a transient error if any, else that of the requested model.
func joinedFault(failed []*llm.CallError) *llm.CallError {
	if len(failed) == 1 {
		return failed[0]
	}
	pick := failed[0]
	var all []error
	for _, e := range failed {
		all = append(all, e)
		if e.Temporary() && !pick.Temporary() {
			pick = e
		}
	}
	v := *pick
	v.Err = errors.Join(all...)
	return &v
}

func offered(tools []llm.ToolSpec, name string) bool {
	for _, t := range tools {
		if t.Name == name {
			return true
		}
	}
	return false
}
