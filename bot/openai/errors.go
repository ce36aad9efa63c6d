package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"

	goopenai "github.com/sashabaranov/go-openai"

	"ebb/sessions/llm"
)

// failureOf classifies the error of an attempt of the named model. redact removes keys from its text, which has none of the provider's words.
func failureOf(ctx context.Context, name string, redact func(string) string, x *exchange, err error) *llm.CallError {
	e := &llm.CallError{Class: transportFault(err), Model: name, Status: x.status, After: x.after}
	var perr *providerError
	switch {
	case ctx.Err() != nil: // the caller ended it
		e.Class = llm.Busy
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			e.Class = llm.Timeout
		}
		e.Err = fmt.Errorf("asking the model: %w", ctx.Err())
		if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
			e.Err = fmt.Errorf("asking the model: %w: %w", cause, ctx.Err())
		}
		return e
	case x.status >= 300:
		perr = parseFailure(x.status, x.body)
	case errors.As(err, &perr):
	}
	if perr != nil {
		judged := *perr
		for _, msg := range x.messages {
			judged.forgetText(msg.Content)
		}
		e.Class, err = judged.classOf(), perr
		e.Status = cmp.Or(perr.statusCode(), e.Status)
		x.said, e.Said = &judged, redact(judged.joinWords())
	}
	e.Err = errors.New(redact(withoutQuotes(err)))
	return e
}

// withoutQuotes masks what an error quotes: an invalid answer, or the address of a redirect.
func withoutQuotes(err error) string {
	if failed, ok := errors.AsType[*url.Error](err); ok && failed.Err != nil {
		err = failed.Err // the address is in the configuration
	}
	return quoted.ReplaceAllString(err.Error(), `"…"`)
}

var quoted = regexp.MustCompile(`"(\\.|[^"\\])*"`)

func transportFault(err error) llm.ErrorClass {
	for _, e := range []error{errTimeout, errFirst, errDown, errShare, errIdle} {
		if errors.Is(err, e) {
			return llm.Timeout
		}
	}
	_, dns := errors.AsType[*net.DNSError](err)
	op, dial := errors.AsType[*net.OpError](err)
	switch {
	case dns, dial && op.Op == "dial":
		return llm.Unreachable
	case badRequest(err):
		return llm.Malformed
	}
	return llm.Broken
}

// go-openai's own checks refused the request, which was not sent.
func badRequest(err error) bool {
	for _, e := range []error{
		goopenai.ErrChatCompletionInvalidModel, goopenai.ErrContentFieldsMisused, goopenai.ErrReasoningModelMaxTokensDeprecated,
		goopenai.ErrReasoningModelLimitationsOther, goopenai.ErrReasoningModelLimitationsLogprobs,
		goopenai.ErrReasoningToolsRequireResponses, goopenai.ErrReasoningSamplingUnsupported, goopenai.ErrReasoningEffortUnsupported,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

var (
	errTimeout = errors.New("no answer within the attempt's time")
	errFirst   = errors.New("no token within the time for the first one")
	errDown    = errors.New("the model gave another call no token in time")
	errUnread  = errors.New("another model answers")
	errShare   = errors.New("the model's share of the time is over")
	errIdle    = errors.New("the stream went quiet")
	errBroken  = errors.New("the stream broke off")
	errRepeats = errors.New("the reasoning or the arguments repeat words without end")
	errEmpty   = errors.New("the answer has no choices")
)

// Some providers take a key in an address's query, and errors repeat the address.
func queryValues(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	var values []string
	for _, v := range u.Query() {
		values = append(values, v...)
	}
	return values
}

const maxErrorText = 1000

// redactor removes configured keys, and similar strings, from a text and bounds its length.
func redactor(keys []string) func(string) string {
	var pairs []string
	for _, k := range keys {
		if len(k) >= 6 { // a shorter one is no real key, and a part of ordinary words
			pairs = append(pairs, k, "***")
		}
	}
	literal := strings.NewReplacer(pairs...)
	return func(s string) string {
		s = keyLike().ReplaceAllString(literal.Replace(s), "${label}***")
		if len(s) > maxErrorText {
			s = strings.ToValidUTF8(s[:maxErrorText], "") + "…"
		}
		return s
	}
}
