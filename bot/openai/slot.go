package openai

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions/llm"
	"ebb/sessions/retry"
)

// asked is what a caller asks for, with the number of requests so far.
type asked struct {
	common *common
	req    llm.Request
	caller context.Context //nolint:containedctx // the call's own, beside that of each model's part
	out    *sink
	made   int // number of requests
}

// isUsedUp reports whether the caller allows no further request.
func (a *asked) isUsedUp() bool { return a.req.Requests > 0 && a.made >= a.req.Requests }

// slot is the part of a call that one model has.
type slot struct {
	asked *asked
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

func (s *slot) askModel() (llm.Response, *llm.CallError) {
	if wait := s.pass.wait; wait > 0 && !s.pauseFor(wait) {
		err := fmt.Errorf("the provider takes no request for %s", wait.Round(time.Second))
		return llm.Response{}, &llm.CallError{Class: llm.Busy, Model: s.m.conf.Name, Status: http.StatusTooManyRequests, After: wait, Err: err}
	}
	if s.asked.req.Force != "" {
		return s.askForced()
	}
	f := s.m.lessons.current()
	a, _, err := s.retryForms(rungNone, &f)
	if err != nil {
		return llm.Response{Text: a.text, Usage: a.usage, Cost: s.m.conf.price().Cost(a.usage)}, err
	}
	resp := a.response(s.m.conf.Name, s.m.conf.price())
	resp.Blind = f.has(noPictures) && slices.ContainsFunc(s.asked.req.Messages, func(m llm.Message) bool { return len(m.Pictures) > 0 })
	return resp, nil
}

// A fault of the request shows that the model is up.
func (s *slot) reportFailure(err *llm.CallError) {
	if err == nil || err.RequestFault() || err.Class == llm.Overflow {
		s.noteAnswer()
		return
	}
	if pause := s.pass.endPass(s.weightOf(err), err.After); pause > 0 {
		zerolog.Ctx(s.asked.caller).Warn().Str("model", s.m.conf.Name).Str("class", string(err.Class)).Dur("pause_ms", pause).
			Msg("Model is down: others are asked first until the pause is over")
		if s.hangs {
			s.m.breaker.wakeWaiting()
		}
	}
}

func (s *slot) noteAnswer() {
	if s.pass.noteAnswer() {
		zerolog.Ctx(s.asked.caller).Info().Str("model", s.m.conf.Name).Msg("Model answers again")
	}
}

func (s *slot) weightOf(err *llm.CallError) int {
	switch {
	case s.part.Requests == 0, errors.Is(s.asked.caller.Err(), context.Canceled):
		return 0
	case err.Class == llm.Busy, err.Class == llm.Broken:
		return s.part.Requests
	case err.Class != llm.Timeout:
		return enough
	case s.hangs:
		return s.pass.silenceWeight(llm.SessionOf(s.asked.caller), s.signs)
	case s.flows:
		return 0 // slow
	}
	return 1 // The time ended before the model's own deadline.
}

// askForced descends the rungs until the tool is called. A refused rung is remembered once a lower one is answered; an answer
// in prose descends for this call only. The result includes the usage of all answers, with an error too.
func (s *slot) askForced() (llm.Response, *llm.CallError) {
	m, r := s.m, s.asked.req
	var spent llm.Response // usage and cost of unusable answers
	f := m.lessons.current()
	for way := f.way; ; {
		a, cl, err := s.retryForms(way, &f)
		way = cl.way
		resp := a.response(m.conf.Name, m.conf.price())
		resp.Usage, resp.Cost = resp.Usage.Add(spent.Usage), resp.Cost+spent.Cost
		spent = llm.Response{Usage: resp.Usage, Cost: resp.Cost}
		if err != nil {
			if !way.wasRefused(err) || way == rungText {
				return spent, err
			}
			way++
			f.way = way
			continue
		}
		resp.Forced = way.String()
		salvage(&resp, r)
		if called(resp, r.Force) || resp.Finish == llm.FinishLength || resp.Finish == llm.FinishFilter || way >= rungJSON {
			return resp, nil
		}
		way = max(way+1, rungAuto)
	}
}

// retryForms asks the model until it answers, refuses, or the retries are used up. A request in another form is sent at
// once. A hanging model is not asked again while another could answer. With an error the answer holds the last
// attempt's usage.
func (s *slot) retryForms(way rung, f *forms) (answer, call, *llm.CallError) {
	for n, changes := 0, 0; ; {
		cl := s.m.buildCall(s.asked.req, way, *f)
		s.asked.out.resetText()
		s.asked.made++
		s.part.Requests++
		a, err := s.sendCall(cl)
		if err == nil {
			s.m.lessons.keepForms(s.ctx, *f, cl.shows)
			return a, cl, nil
		}
		if next, ok := s.m.lessons.nextForms(*f, cl, err, s.said); ok && changes < maxChanges && s.ctx.Err() == nil {
			*f = next
			changes++
			s.asked.made-- // a change of form, once for each provider
			s.part.Requests--
			continue
		}
		switch {
		case !err.Temporary(), n >= s.m.conf.Retries, s.isUnread(), s.asked.isUsedUp(), s.ctx.Err() != nil:
			return a, cl, err
		case (s.hangs || err.Class == llm.Unreachable || err.After > patience) && !s.last:
			return a, cl, err
		case !rest(s.ctx, s.asked.common.pauses, n, err.After):
			return a, cl, err
		}
		zerolog.Ctx(s.ctx).Debug().Err(err).Str("model", s.m.conf.Name).Int("attempt", n+1).Msg("Model busy, asking again")
		n++
	}
}

func (s *slot) sendCall(cl call) (answer, *llm.CallError) {
	t := attempt{
		model: s.m, common: s.asked.common, call: cl, messages: s.asked.req.Messages, caller: s.asked.caller, last: s.last, begins: s.firstToken, out: s.asked.out,
	}
	o := t.sendCall(s.ctx)
	s.hangs, s.flows, s.said = o.hangs, o.flows, o.said
	if o.err == nil {
		s.part.FirstToken = o.answer.first
	}
	return o.answer, o.err
}

// A longer requested pause is not awaited while another model could answer.
const patience = 5 * time.Second

// pauseFor returns false if the provider accepts requests too late.
func (s *slot) pauseFor(d time.Duration) bool {
	return (s.last || d <= patience) && rest(s.ctx, s.asked.common.pauses, 0, d)
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

// The readers of a probe's answer.
const (
	readerWaits int32 = iota
	readerReads       // the first token came in time
	readerLeft        // another model answers
)

// probe is a trial while another model is up. Its request goes on when the call has left, to learn whether the model is back. Its first
// token ends it then: the answer has no reader.
type probe struct {
	reader atomic.Int32
	end    context.CancelCauseFunc
}

// isUnread reports whether the call has left the probe.
func (s *slot) isUnread() bool { return s.probe != nil && s.probe.reader.Load() == readerLeft }

// firstToken reports whether the answer has a reader. Without one the model is back, and the request ends.
func (s *slot) firstToken() bool {
	s.signs++
	s.m.breaker.noteLife()
	if s.probe == nil || s.probe.reader.CompareAndSwap(readerWaits, readerReads) || s.probe.reader.Load() == readerReads {
		return true
	}
	s.noteAnswer()
	s.probe.end(nil)
	return false
}
