package openai

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	goopenai "github.com/sashabaranov/go-openai"

	"ebb/bot/llm"
	"ebb/sessions/rules"
)

type providerError struct {
	status  int // 0: inside a stream
	code    string
	names   []string // parts of the code
	message string
}

// Error identifies the provider's text without its words: those may repeat the request. Equal texts have equal hashes.
func (e *providerError) Error() string {
	var known []string
	for _, c := range append(slices.Clone(e.names), e.code) {
		if codeLike.MatchString(c) && !slices.Contains(known, c) {
			known = append(known, c)
		}
	}
	text := "the provider answered " + cmp.Or(strings.Join(known, " "), "without a code")
	if e.message == "" {
		return text
	}
	return fmt.Sprintf("%s (%d bytes, hash %s)", text, len(e.message), shortHash(e.message))
}

var codeLike = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

func (e *providerError) words() string { return strings.TrimPrefix(e.code+": "+e.message, ": ") }

// parseFailure knows the shapes of OpenAI, DashScope, proxies and web servers.
func parseFailure(status int, body []byte) *providerError {
	var b struct {
		Error   json.RawMessage `json:"error"`
		Code    loose           `json:"code"`
		Message loose           `json:"message"`
		Detail  loose           `json:"detail"`
	}
	if json.Unmarshal(body, &b) != nil {
		return &providerError{status: status, message: string(body)}
	}
	var in struct {
		Code    loose `json:"code"`
		Type    loose `json:"type"`
		Message loose `json:"message"`
	}
	var text loose
	switch {
	case json.Unmarshal(b.Error, &in) == nil && (in.Message != "" || in.Code != "" || in.Type != ""):
		return &providerError{
			status: status, code: strings.TrimSpace(string(in.Code + " " + in.Type)), names: []string{string(in.Code), string(in.Type)}, message: string(in.Message),
		}
	case json.Unmarshal(b.Error, &text) == nil && text != "":
		return &providerError{status: status, message: string(text)}
	}
	return &providerError{status: status, code: string(b.Code), message: string(b.Message + b.Detail)}
}

//go:embed rules.tsv
var ruleLines string

var (
	ruleFile = rules.Read(ruleLines)

	saysOverflow = ruleFile.Regexp("overflow")
	saysFiltered = ruleFile.Regexp("filtered")
	saysDenied   = ruleFile.Regexp("denied")
	saysBusy     = ruleFile.Regexp("busy")
	saysOutput   = ruleFile.Regexp("output") // The provider refuses an answer's length.
	keyLike      = ruleFile.Regexp("key")    // The group label stays in a masked text.

	// These find refusals of a way to force a tool.
	refusesChoice   = ruleFile.Regexp("refusesChoice")
	refusesThinking = ruleFile.Regexp("refusesThinking")
	refusesTools    = ruleFile.Regexp("refusesTools")
	refusesJSON     = ruleFile.Regexp("refusesJSON")
)

// statusCode is the HTTP status, or the one that an error inside a stream names; 0 for none.
func (e *providerError) statusCode() int {
	if n, err := strconv.Atoi(strings.TrimSpace(e.code)); e.status == 0 && err == nil && n >= 400 && n < 600 {
		return n
	}
	return e.status
}

// class trusts a clear status, else the words.
func (e *providerError) class() llm.ErrorClass {
	words, s := e.code+" "+e.message, e.statusCode()
	switch {
	case s == 401 || s == 402 || s == 403:
		if s == 403 && saysFiltered().MatchString(words) {
			return llm.Refused
		}
		return llm.Denied
	case s == 408 || s == 504:
		return llm.Timeout
	case s == 409 || s == 425 || s == 429 || s >= 500:
		return llm.Busy
	case s == 404 || s == 405 || s == 410:
		return llm.Missing
	case s == 413:
		return llm.Overflow
	case s == 0 && saysBusy().MatchString(words):
		return llm.Busy
	}
	switch {
	case saysFiltered().MatchString(words):
		return llm.Refused
	case saysOverflow().MatchString(words):
		return llm.Overflow
	case saysDenied().MatchString(words):
		return llm.Denied
	case s == 0:
		return llm.Busy
	}
	return llm.Malformed
}

// failure classifies the error of an attempt, and removes keys and the provider's words from its text.
func (c *Client) failure(ctx context.Context, m *model, x *exchange, err error) *llm.CallError {
	e := &llm.CallError{Class: transportFault(err), Model: m.Name, Status: x.status, After: x.after}
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
		e.Class, err = perr.class(), perr
		e.Status = cmp.Or(perr.statusCode(), e.Status)
		e.Said = c.redact(perr.words())
	}
	e.Err = errors.New(c.redact(withoutQuotes(err)))
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
	errEmpty   = errors.New("the answer has no choices")
)
