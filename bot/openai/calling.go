package openai

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions/llm"
)

// calling is a call of the client, with what its requests have cost so far.
type calling struct {
	asked   asked
	spent   llm.Response // usage, cost and parts so far
	failed  []*llm.CallError
	refused int // models that refused the request permanently
}

func newCalling(ctx context.Context, with *common, r llm.Request) *calling {
	return &calling{asked: asked{common: with, req: r, caller: ctx, out: &sink{delta: r.Delta, idea: r.Thought}}}
}

// maxRefused models are asked with a request that they refuse. The caller can ask for less.
const maxRefused = 2

// askModels asks the models in order; those known to be down come last.
func (k *calling) askModels(order []*model) (llm.Response, error) {
	ctx := k.asked.caller
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
		if k.asked.isUsedUp() {
			merr.Next = !s.last && !merr.RequestFault()
			break
		}
		if len(left) > 0 {
			zerolog.Ctx(ctx).Warn().Err(merr).Str("model", s.m.conf.Name).Str("class", string(merr.Class)).Msg("Model failed, asking the next")
		}
	}
	return k.spent, joinedFault(k.failed)
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
	s := slot{asked: &k.asked, m: left[at], pass: p}
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
	s.ctx = k.asked.caller
	if deadline, ok := k.asked.caller.Deadline(); ok && behind > 0 {
		var stop context.CancelFunc
		s.ctx, stop = context.WithTimeoutCause(k.asked.caller, time.Until(deadline)/time.Duration(behind+1), errShare)
		defer stop()
	}
	began := time.Now()
	s.part = llm.Part{Model: s.m.conf.Name}
	resp, err := s.askModel()
	s.part.Took, s.part.Usage, s.part.Cost, s.part.Err = time.Since(began), resp.Usage, resp.Cost, err
	k.spent.Usage, k.spent.Cost, k.spent.Parts = k.spent.Usage.Add(resp.Usage), k.spent.Cost+resp.Cost, append(k.spent.Parts, s.part)
	s.reportFailure(err)
	reported = true
	if err != nil && s.hangs && k.asked.req.Passes && !s.last {
		k.asked.made-- // the next model has the request
	}
	if err != nil {
		k.failed, k.spent.Text = append(k.failed, err), resp.Text
		return llm.Response{}, err
	}
	logCorrections(k.asked.caller, resp)
	resp.Usage, resp.Cost, resp.Parts = k.spent.Usage, k.spent.Cost, k.spent.Parts
	return resp, nil
}

func logCorrections(ctx context.Context, resp llm.Response) {
	if len(resp.Corrected) == 0 {
		return
	}
	var kinds []string
	for _, k := range resp.Corrected {
		kinds = append(kinds, string(k))
	}
	zerolog.Ctx(ctx).Info().Str("model", resp.Model).Strs("corrections", kinds).Msg("Answer corrected")
}

// probeTime is the time to the first token of a model that was down, while another model could answer.
const probeTime = 3 * time.Second

type probed struct {
	resp     llm.Response
	err      *llm.CallError
	panicked any
}

// probeModel asks for at most probeTime without a first token.
func (k *calling) probeModel(s slot, behind int) (llm.Response, *llm.CallError) {
	k.asked.out.resetText()
	own := *k // a late probe changes nothing of the call
	own.failed, own.spent.Parts = slices.Clone(k.failed), slices.Clone(k.spent.Parts)
	own.asked.out = &sink{delta: k.asked.out.delta, idea: k.asked.out.idea}
	p := &probe{}
	stop := func() {}
	own.asked.caller, p.end = context.WithCancelCause(context.WithoutCancel(k.asked.caller))
	if deadline, ok := k.asked.caller.Deadline(); ok {
		own.asked.caller, stop = context.WithDeadline(own.asked.caller, deadline)
	}
	detach := context.AfterFunc(k.asked.caller, func() {
		if errors.Is(k.asked.caller.Err(), context.Canceled) { // the probe has the same deadline
			p.end(context.Cause(k.asked.caller))
		}
	})
	s.asked, s.probe = &own.asked, p
	done := make(chan probed, 1)
	go func() {
		var got probed
		defer func() {
			if got.panicked = recover(); got.panicked != nil && p.reader.Load() == readerLeft {
				zerolog.Ctx(own.asked.caller).Error().Any("panic", got.panicked).Msg("Probe of a model panicked")
			}
			stop()
			p.end(nil)
			if n := len(own.spent.Parts); p.reader.Load() == readerLeft && own.asked.req.Late != nil && got.panicked == nil && n > 0 {
				own.asked.req.Late(own.spent.Parts[n-1])
			}
			done <- got
		}()
		got.resp, got.err = own.takeAnswer(s, behind)
	}()
	late := time.NewTimer(probeTime)
	defer late.Stop()
	var got probed
	select {
	case got = <-done:
	case <-late.C:
		if p.reader.CompareAndSwap(readerWaits, readerLeft) {
			detach()
			forget := context.AfterFunc(k.asked.common.life, func() { p.end(nil) })
			context.AfterFunc(own.asked.caller, func() { forget() })
			return llm.Response{}, k.leaveProbe(s)
		}
		got = <-done
	}
	detach()
	if got.panicked != nil {
		panic(got.panicked)
	}
	k.asked.made, k.spent, k.failed = own.asked.made, own.spent, own.failed
	return got.resp, got.err
}

// leaveProbe counts a request whose answer has no reader.
func (k *calling) leaveProbe(s slot) *llm.CallError {
	err := &llm.CallError{Class: llm.Timeout, Model: s.m.conf.Name, Err: errFirst}
	if !k.asked.req.Passes {
		k.asked.made++
	}
	k.failed = append(k.failed, err)
	k.spent.Parts = append(k.spent.Parts, llm.Part{Model: s.m.conf.Name, Requests: 1, Took: probeTime, Err: err})
	return err
}
