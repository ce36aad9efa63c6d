package openai

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions/llm"
	"ebb/sessions/retry"
)

// calling is a call of the client, with what its requests have cost so far.
type calling struct {
	client  *Client
	req     llm.Request
	caller  context.Context //nolint:containedctx // the call's own, beside that of each model's part
	out     *sink
	made    int          // number of requests
	spent   llm.Response // usage, cost and parts so far
	failed  []*llm.CallError
	refused int // models that refused the request permanently
}

// slot is the part of a call that one model has.
type slot struct {
	call  *calling
	m     *model
	pass  pass
	last  bool            // no other model is up
	ctx   context.Context //nolint:containedctx // ends with the model's share of the time
	part  llm.Part
	probe *probe         // nil: the call waits for the answer
	hangs bool           // the last request ended for its silence
	flows bool           // its answer had begun
	signs int            // first tokens of its requests
	said  *providerError // the provider's account of the last failure; nil: there is none
}

// nextModel takes the first model that is up, else the first.
func (k *calling) nextModel(left []*model) (slot, []*model) {
	at, p := 0, pass{}
	for i, m := range left {
		one, up := m.breaker.enterPass()
		if i == 0 || up {
			at, p = i, one
		}
		if up {
			break
		}
	}
	s := slot{call: k, m: left[at], pass: p}
	left = slices.Delete(slices.Clone(left), at, at+1)
	s.last = !slices.ContainsFunc(left, func(m *model) bool { return m.breaker.state() != llm.Down })
	return s, left
}

// takeAnswer asks the model within its share of the remaining time. All shares are equal; the last one is the rest. A panic
// returns the pass and is neutral.
func (k *calling) takeAnswer(s slot, behind int) (llm.Response, *llm.CallError) {
	reported := false
	defer func() {
		if !reported {
			s.pass.endPass(0, 0)
		}
	}()
	s.ctx = k.caller
	if deadline, ok := k.caller.Deadline(); ok && behind > 0 {
		var stop context.CancelFunc
		s.ctx, stop = context.WithTimeoutCause(k.caller, time.Until(deadline)/time.Duration(behind+1), errShare)
		defer stop()
	}
	began := time.Now()
	s.part = llm.Part{Model: s.m.Name}
	resp, err := s.askModel()
	s.part.Took, s.part.Usage, s.part.Cost, s.part.Err = time.Since(began), resp.Usage, resp.Cost, err
	k.spent.Usage, k.spent.Cost, k.spent.Parts = k.spent.Usage.Add(resp.Usage), k.spent.Cost+resp.Cost, append(k.spent.Parts, s.part)
	s.reportFailure(err)
	reported = true
	if err != nil && s.hangs && k.req.Passes && !s.last {
		k.made-- // the next model has the request
	}
	if err != nil {
		k.failed, k.spent.Text = append(k.failed, err), resp.Text
		return llm.Response{}, err
	}
	logCorrections(k.caller, resp)
	resp.Usage, resp.Cost, resp.Parts = k.spent.Usage, k.spent.Cost, k.spent.Parts
	return resp, nil
}

func (s *slot) askModel() (llm.Response, *llm.CallError) {
	if wait := s.pass.wait; wait > 0 && !s.pauseFor(wait) {
		err := fmt.Errorf("the provider takes no request for %s", wait.Round(time.Second))
		return llm.Response{}, &llm.CallError{Class: llm.Busy, Model: s.m.Name, Status: http.StatusTooManyRequests, After: wait, Err: err}
	}
	if s.call.req.Force != "" {
		return s.askForced()
	}
	f := *s.m.learned.Load()
	a, _, err := s.retryForms(rungNone, &f)
	if err != nil {
		return llm.Response{Text: a.text, Usage: a.usage, Cost: s.m.cost(a.usage)}, err
	}
	resp := s.m.responseOf(a)
	resp.Blind = f.has(noPictures) && slices.ContainsFunc(s.call.req.Messages, func(m llm.Message) bool { return len(m.Pictures) > 0 })
	return resp, nil
}

// A fault of the request shows that the model is up.
func (s *slot) reportFailure(err *llm.CallError) {
	if err == nil || err.RequestFault() || err.Class == llm.Overflow {
		s.noteAnswer()
		return
	}
	if pause := s.pass.endPass(s.weightOf(err), err.After); pause > 0 {
		zerolog.Ctx(s.call.caller).Warn().Str("model", s.m.Name).Str("class", string(err.Class)).Dur("pause_ms", pause).
			Msg("Model is down: others are asked first until the pause is over")
		if s.hangs {
			s.m.breaker.wakeWaiting()
		}
	}
}

func (s *slot) noteAnswer() {
	if s.pass.noteAnswer() {
		zerolog.Ctx(s.call.caller).Info().Str("model", s.m.Name).Msg("Model answers again")
	}
}

func (s *slot) weightOf(err *llm.CallError) int {
	switch {
	case s.part.Requests == 0, errors.Is(s.call.caller.Err(), context.Canceled):
		return 0
	case err.Class == llm.Busy, err.Class == llm.Broken:
		return s.part.Requests
	case err.Class != llm.Timeout:
		return enough
	case s.hangs:
		return s.pass.silenceWeight(llm.SessionOf(s.call.caller), s.signs)
	case s.flows:
		return 0 // slow
	}
	return 1 // The time ended before the model's own deadline.
}

// retryForms asks the model until it answers, refuses, or the retries are used up. A request in another form is sent at
// once. A hanging model is not asked again while another could answer. With an error the answer holds the last
// attempt's usage.
func (s *slot) retryForms(way rung, f *forms) (answer, call, *llm.CallError) {
	for n, changes := 0, 0; ; {
		cl := s.m.buildCall(s.call.req, way, *f)
		s.call.out.resetText()
		s.call.made++
		s.part.Requests++
		a, err := s.attemptCall(cl)
		if err == nil {
			s.m.keepForms(s.ctx, *f, cl.shows)
			return a, cl, nil
		}
		if next, ok := s.m.nextForms(*f, cl, err, s.said); ok && changes < maxChanges && s.ctx.Err() == nil {
			*f = next
			changes++
			s.call.made-- // a change of form, once for each provider
			s.part.Requests--
			continue
		}
		switch {
		case !err.Temporary(), n >= s.m.Retries, s.isUnread(), s.call.req.Requests > 0 && s.call.made >= s.call.req.Requests, s.ctx.Err() != nil:
			return a, cl, err
		case (s.hangs || err.Class == llm.Unreachable || err.After > patience) && !s.last:
			return a, cl, err
		case !rest(s.ctx, s.call.client.pauses, n, err.After):
			return a, cl, err
		}
		zerolog.Ctx(s.ctx).Debug().Err(err).Str("model", s.m.Name).Int("attempt", n+1).Msg("Model busy, asking again")
		n++
	}
}

// A longer requested pause is not awaited while another model could answer.
const patience = 5 * time.Second

// pauseFor returns false if the provider accepts requests too late.
func (s *slot) pauseFor(d time.Duration) bool {
	return (s.last || d <= patience) && rest(s.ctx, s.call.client.pauses, 0, d)
}

// rest returns false if the next attempt would be too late.
func rest(ctx context.Context, pauses retry.Pauses, n int, after time.Duration) bool {
	d := pauses.After(n)
	if after > 0 {
		d = after + rand.N(after/10+1) // jitter behind the named moment
	}
	if d > maxRetryAfter {
		return false
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	return retry.Sleep(ctx, d)
}

type sink struct {
	delta func(text string, reset bool)
	idea  func(text string)
	dirty bool
}

func (s *sink) pushThought(t string) {
	if s.idea != nil && s.delta != nil && t != "" {
		s.dirty = true
		s.idea(t)
	}
}

func (s *sink) pushText(t string) {
	if s.delta != nil && t != "" {
		s.dirty = true
		s.delta(t, false)
	}
}

func (s *sink) pushNews(n news) {
	if n.undo {
		s.resetText()
	}
	s.pushThought(n.idea)
	s.pushText(n.text)
}

func (s *sink) resetText() {
	if s.dirty {
		s.dirty = false
		s.delta("", true)
	}
}
