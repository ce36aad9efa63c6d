package openai

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"ebb/sessions/llm"
)

// probeTime is the time to the first token of a model that was down, while another model could answer.
const probeTime = 3 * time.Second

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

type probed struct {
	resp     llm.Response
	err      *llm.CallError
	panicked any
}

// probeModel asks for at most probeTime without a first token.
func (k *calling) probeModel(s slot, behind int) (llm.Response, *llm.CallError) {
	k.out.resetText()
	own := *k // a late probe changes nothing of the call
	own.failed, own.spent.Parts = slices.Clone(k.failed), slices.Clone(k.spent.Parts)
	own.out = &sink{delta: k.out.delta, idea: k.out.idea}
	p := &probe{}
	stop := func() {}
	own.caller, p.end = context.WithCancelCause(context.WithoutCancel(k.caller))
	if deadline, ok := k.caller.Deadline(); ok {
		own.caller, stop = context.WithDeadline(own.caller, deadline)
	}
	detach := context.AfterFunc(k.caller, func() {
		if errors.Is(k.caller.Err(), context.Canceled) { // the probe has the same deadline
			p.end(context.Cause(k.caller))
		}
	})
	s.call, s.probe = &own, p
	done := make(chan probed, 1)
	go func() {
		var got probed
		defer func() {
			if got.panicked = recover(); got.panicked != nil && p.reader.Load() == readerLeft {
				zerolog.Ctx(own.caller).Error().Any("panic", got.panicked).Msg("Probe of a model panicked")
			}
			stop()
			p.end(nil)
			if n := len(own.spent.Parts); p.reader.Load() == readerLeft && own.req.Late != nil && got.panicked == nil && n > 0 {
				own.req.Late(own.spent.Parts[n-1])
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
			forget := context.AfterFunc(k.client.life, func() { p.end(nil) })
			context.AfterFunc(own.caller, func() { forget() })
			return llm.Response{}, k.leaveProbe(s)
		}
		got = <-done
	}
	detach()
	if got.panicked != nil {
		panic(got.panicked)
	}
	k.made, k.spent, k.failed = own.made, own.spent, own.failed
	return got.resp, got.err
}

// isUnread reports whether the call has left the probe.
func (s *slot) isUnread() bool { return s.probe != nil && s.probe.reader.Load() == readerLeft }

// leaveProbe counts a request whose answer has no reader.
func (k *calling) leaveProbe(s slot) *llm.CallError {
	err := &llm.CallError{Class: llm.Timeout, Model: s.m.Name, Err: errFirst}
	if !k.req.Passes {
		k.made++
	}
	k.failed = append(k.failed, err)
	k.spent.Parts = append(k.spent.Parts, llm.Part{Model: s.m.Name, Requests: 1, Took: probeTime, Err: err})
	return err
}

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
