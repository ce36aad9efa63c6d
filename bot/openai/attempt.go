package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"ebb/bot"
)

var (
	errTimeout = errors.New("no answer within the attempt's time")
	errIdle    = errors.New("the stream went quiet")
	errBroken  = errors.New("the stream broke off")
	errEmpty   = errors.New("the answer has no choices")
)

const (
	lingerAfterFinish = 5 * time.Second        // for the usage that follows the last words
	lingerAfterDone   = 250 * time.Millisecond // for the end of the body, so that the connection can be used again
)

// attempt makes one HTTP exchange. With an error the answer has the usage that the provider told, and nothing else.
func (c *Client) attempt(ctx context.Context, m *model, cl call, out *sink) (answer, *bot.ModelError) {
	x := &exchange{extra: cl.extra, stream: cl.stream}
	tctx, stop := context.WithTimeoutCause(withExchange(ctx, x), m.Timeout, errTimeout)
	defer stop()
	tctx, cancel := context.WithCancelCause(tctx)
	defer cancel(nil)

	a := answer{tools: cl.tools}
	var err error
	if cl.stream {
		err = c.stream(tctx, cancel, m, cl, x, &a, out)
	} else {
		err = plain(tctx, m, cl, x, &a)
	}
	if cause := context.Cause(tctx); err != nil && cause != nil && ctx.Err() == nil {
		err = cause // says more than "context canceled"
	}
	if err == nil && !a.choices {
		err = errEmpty
	}
	if err == nil && a.finish == string(bot.FinishFilter) && a.text == "" && len(a.calls) == 0 {
		err = &providerError{code: "content_filter", message: "the answer was filtered away"}
	}
	if err != nil {
		return answer{usage: a.usage}, c.failure(ctx, m, x, err)
	}
	return a, nil
}

// plain asks for the answer in one piece. It is decoded from the body by the same lenient decoder as a stream's
// chunks, also where go-openai could not.
func plain(ctx context.Context, m *model, cl call, x *exchange, a *answer) error {
	_, err := m.api.CreateChatCompletion(ctx, cl.req)
	if x.status < 200 || x.status >= 300 || x.body == nil {
		return err
	}
	if err := a.line(x.body, nil); err != nil {
		return err
	}
	a.end()
	return nil
}

// stream asks for the answer in pieces and passes the text on as it comes.
func (c *Client) stream(ctx context.Context, cancel context.CancelCauseFunc, m *model, cl call, x *exchange, a *answer, out *sink) error {
	idle := time.AfterFunc(c.idle, func() { cancel(errIdle) })
	defer idle.Stop()
	s, err := m.api.CreateChatCompletionStream(ctx, cl.req)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // read to its end or given up: nothing is left to lose
	for {
		line, err := s.RecvRaw()
		idle.Stop() // the caller's time with the text does not count
		done := err == nil && string(line) == endMark
		if err == nil && !done {
			err = a.line(line, out)
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
		if a.finish != "" {
			idle.Reset(min(c.idle, lingerAfterFinish))
		} else {
			idle.Reset(c.idle)
		}
	}
	out.text(a.end())
	if x.rest != nil {
		idle.Reset(lingerAfterDone)
		_, _ = io.CopyN(io.Discard, x.rest, 4096)
	}
	return nil
}

// line adds one chunk, or a whole answer, as it came over the wire.
func (a *answer) line(b []byte, out *sink) error {
	var c chunk
	if err := json.Unmarshal(b, &c); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		return fmt.Errorf("decoding the answer: %w", err) // a wrong type leaves only its own field out
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return parseFailure(0, b)
	}
	show, undo := a.add(c)
	if out == nil {
		return nil
	}
	if undo {
		out.reset()
	}
	out.text(show)
	return nil
}
