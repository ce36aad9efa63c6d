package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// With an error the answer holds the reported usage, and the text so far if the caller ended the call.
func (s *slot) attemptCall(cl call) (answer, *llm.CallError) {
	x := &exchange{send: cl.body, stream: cl.stream, messages: s.call.req.Messages}
	began := time.Now()
	tctx, stop := context.WithTimeoutCause(withExchange(s.ctx, x), s.m.Timeout, errTimeout)
	defer stop()
	tctx, cancel := context.WithCancelCause(tctx)
	defer cancel(nil)

	unwatch := func() {}
	if !s.last {
		unwatch = s.m.breaker.watchPass(func() { cancel(errDown) })
		defer unwatch()
	}
	a := answer{tools: cl.tools, began: began, begins: func() bool { unwatch(); return s.firstToken() }}
	a.checks, a.check = cl.checks, *written.New(cl.checks)
	if s.m.untagged.Load() {
		a.filter.Assume()
	}
	var err error
	if cl.stream {
		err = s.readStream(tctx, cancel, x, &a)
	} else {
		err = s.readWhole(tctx, x, &a)
	}
	cause := context.Cause(tctx)
	if err != nil && cause != nil && s.call.caller.Err() == nil {
		err = cause // more precise than "context canceled"
	}
	s.flows = a.tokens > 0
	s.hangs = errors.Is(cause, errFirst) || errors.Is(cause, errDown) || errors.Is(cause, errIdle) || errors.Is(cause, errTimeout) && !s.flows
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
		rest := answer{usage: a.reported.usageOfFailure(x.sent, limitOf(cl)), check: a.check}
		if errors.Is(err, errUnread) { // it has begun, so it is paid for
			rest.usage, _ = a.reported.believeReport(x.sent, a.saidBytes(), limitOf(cl))
		}
		if s.call.caller.Err() != nil {
			a.finishAnswer()
			rest.text = a.text
		}
		failed := s.call.client.failureOf(s.call.caller, s.m, x, err)
		s.said = x.said
		return rest, failed
	}
	a.usage, a.guessed = a.reported.believeReport(x.sent, a.saidBytes(), limitOf(cl))
	if cl.stream && x.body != nil {
		s.m.whole.Store(true)
	}
	s.m.learnTags(cl, &a)
	s.part.FirstToken = a.first
	return a, nil
}

// readWhole requests the answer in one piece, which the lenient decoder of chunks reads even where go-openai fails.
func (s *slot) readWhole(ctx context.Context, x *exchange, a *answer) error {
	_, err := s.m.api.CreateChatCompletion(ctx, goopenai.ChatCompletionRequest{Model: s.m.Model})
	if x.status < 200 || x.status >= 300 || x.body == nil {
		return err
	}
	if err := a.line(x.body, s.call.out); err != nil {
		return err
	}
	s.call.out.pushNews(a.finishAnswer())
	return nil
}

// The first token has a deadline while another model could answer, and so has each later one: a chunk without a token
// is no sign of life.
func (s *slot) readStream(ctx context.Context, cancel context.CancelCauseFunc, x *exchange, a *answer) error {
	silence, why := s.m.Timeout, errTimeout
	if !s.last {
		silence, why = s.m.FirstToken, errFirst
	}
	due := time.Now().Add(silence)
	first := time.AfterFunc(silence, func() { cancel(why) })
	defer first.Stop()
	idle := time.AfterFunc(24*time.Hour, func() { cancel(errIdle) })
	defer idle.Stop()
	events, err := s.m.api.CreateChatCompletionStream(ctx, goopenai.ChatCompletionRequest{Model: s.m.Model})
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
			err = a.line(line, s.call.out)
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
			due = time.Now().Add(s.call.client.idle)
		}
		if a.check.Ended() { // the rest would cost time and tokens
			break
		}
		if a.unread.Ended() {
			return errRepeats
		}
		switch {
		case a.finish != "":
			idle.Reset(min(s.call.client.idle, lingerAfterFinish))
		case a.tokens > 0:
			idle.Reset(time.Until(due))
		}
	}
	s.call.out.pushNews(a.finishAnswer())
	if x.rest != nil && !a.check.Ended() {
		idle.Reset(lingerAfterDone)
		_, _ = io.CopyN(io.Discard, x.rest, 4096)
	}
	return nil
}

func (a *answer) line(b []byte, out *sink) error {
	var c chunk
	if err := json.Unmarshal(b, &c); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		return fmt.Errorf("decoding the answer: %w", err) // a wrong type omits its own field only
	}
	if failed := c.failure(b); failed != nil {
		return failed
	}
	n := a.addChunk(c)
	if a.first == 0 && a.tokens > 0 {
		a.first = time.Since(a.began)
		if a.begins != nil && !a.begins() {
			return errUnread
		}
	}
	if out == nil {
		return nil
	}
	out.pushNews(n)
	return nil
}
