package openai

import (
	"context"
	"errors"
	"io"
	"time"

	goopenai "github.com/sashabaranov/go-openai"

	"ebb/sessions/llm"
	"ebb/sessions/written"
)

const (
	lingerAfterFinish = 5 * time.Second        // for the usage after the last words
	lingerAfterDone   = 250 * time.Millisecond // for the end of the body, so that the connection is reused
)

// attempt is one request to a model.
type attempt struct {
	model    *model
	common   *common
	call     call
	messages []llm.Message   // as the caller wrote them
	caller   context.Context //nolint:containedctx // the call's own, beside that of the attempt
	last     bool            // no other model is up
	begins   func() bool     // called with the first token; false: the answer has no reader
	out      *sink
}

// outcome is an answer, or a failure. With an error the answer holds the reported usage, and the text so far if the caller ended the call.
type outcome struct {
	answer answer
	err    *llm.CallError
	said   *providerError // the provider's account of the failure; nil: there is none
	hangs  bool           // the request ended for its silence
	flows  bool           // its answer had begun
}

// sendCall awaits the whole answer. ctx ends with the model's share of the time.
func (t *attempt) sendCall(ctx context.Context) (o outcome) {
	cl, m := t.call, t.model
	x := &exchange{send: cl.body, stream: cl.stream, messages: t.messages}
	began := time.Now()
	tctx, stop := context.WithTimeoutCause(withExchange(ctx, x), m.conf.Timeout, errTimeout)
	defer stop()
	tctx, cancel := context.WithCancelCause(tctx)
	defer cancel(nil)

	unwatch := func() {}
	if !t.last {
		unwatch = m.breaker.watchPass(func() { cancel(errDown) })
		defer unwatch()
	}
	a := answer{tools: cl.tools, began: began, begins: func() bool { unwatch(); return t.begins() }}
	a.checks, a.check = cl.checks, *written.New(cl.checks)
	if m.untagged.Load() {
		a.filter.Assume()
	}
	var err error
	if cl.stream {
		err = t.readStream(tctx, cancel, x, &a)
	} else {
		err = t.readWhole(tctx, x, &a)
	}
	cause := context.Cause(tctx)
	if err != nil && cause != nil && t.caller.Err() == nil {
		err = cause // more precise than "context canceled"
	}
	o.flows = a.tokens > 0
	o.hangs = errors.Is(cause, errFirst) || errors.Is(cause, errDown) || errors.Is(cause, errIdle) || errors.Is(cause, errTimeout) && !o.flows
	if err == nil && !a.choices {
		err = errEmpty
	}
	end, known := endOf(a.finish)
	switch {
	case err != nil:
	case !known:
		err = unfinished(a.finish)
	case end == llm.FinishFilter && a.text == "" && len(a.calls) == 0:
		err = &providerError{codes: []string{"content_filter"}, message: "the answer was filtered away"}
	}
	if err != nil {
		rest := answer{usage: a.reported.usageOfFailure(x.sent, cl.limit), check: a.check}
		if errors.Is(err, errUnread) { // it has begun, so it is paid for
			rest.usage, _ = a.reported.believeReport(x.sent, a.saidBytes(), cl.limit)
		}
		if t.caller.Err() != nil {
			a.finishAnswer()
			rest.text = a.text
		}
		o.answer, o.err = rest, failureOf(t.caller, m.conf.Name, t.common.redact, x, err)
		o.said = x.said
		return o
	}
	a.usage, a.guessed = a.reported.believeReport(x.sent, a.saidBytes(), cl.limit)
	if cl.stream && x.body != nil {
		m.whole.Store(true)
	}
	m.learnTags(cl, &a)
	o.answer = a
	return o
}

// readWhole requests the answer in one piece, which the lenient decoder of chunks reads even where go-openai fails.
func (t *attempt) readWhole(ctx context.Context, x *exchange, a *answer) error {
	_, err := t.model.api.CreateChatCompletion(ctx, goopenai.ChatCompletionRequest{Model: t.model.conf.Model})
	if x.status < 200 || x.status >= 300 || x.body == nil {
		return err
	}
	if err := a.line(x.body, t.out); err != nil {
		return err
	}
	t.out.pushNews(a.finishAnswer())
	return nil
}

// The first token has a deadline while another model could answer, and so has each later one: a chunk without a token
// is no sign of life.
func (t *attempt) readStream(ctx context.Context, cancel context.CancelCauseFunc, x *exchange, a *answer) error {
	silence, why := t.model.conf.Timeout, errTimeout
	if !t.last {
		silence, why = t.model.conf.FirstToken, errFirst
	}
	due := time.Now().Add(silence)
	first := time.AfterFunc(silence, func() { cancel(why) })
	defer first.Stop()
	idle := time.AfterFunc(24*time.Hour, func() { cancel(errIdle) })
	defer idle.Stop()
	events, err := t.model.api.CreateChatCompletionStream(ctx, goopenai.ChatCompletionRequest{Model: t.model.conf.Model})
	if err != nil {
		return err
	}
	defer func() { _ = events.Close() }() // read to its end, or given up
	for {
		line, err := events.RecvRaw()
		idle.Stop() // the caller's time does not count
		done := err == nil && string(line) == endMark
		before := a.tokens
		if err == nil && !done {
			err = a.line(line, t.out)
		}
		if done || err != nil {
			if err == nil || a.finish != "" {
				err = io.EOF
			}
			if !errors.Is(err, io.EOF) {
				return err
			}
			if done && a.finish == "" {
				return errBroken
			}
			break
		}
		if a.tokens > before {
			first.Stop()
			due = time.Now().Add(t.common.idle)
		}
		if a.check.Ended() { // the rest would cost time and tokens
			break
		}
		if a.unread.Ended() {
			return errRepeats
		}
		switch {
		case a.finish != "":
			idle.Reset(min(t.common.idle, lingerAfterFinish))
		case a.tokens > 0:
			idle.Reset(time.Until(due))
		}
	}
	t.out.pushNews(a.finishAnswer())
	if x.rest != nil && !a.check.Ended() {
		idle.Reset(lingerAfterDone)
		_, _ = io.CopyN(io.Discard, x.rest, 4096)
	}
	return nil
}
