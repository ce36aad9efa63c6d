package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"ebb/sessions"
)

// Model answers chat requests. Generate may be called at once from many goroutines; it retries what is worth a retry
// within ctx's deadline and tries the next model of its list after that, so that an error is final for the turn. With an
// error, the response has the Usage and Cost of answers that were paid for and no use.
type Model interface {
	Generate(ctx context.Context, r Request) (Response, error)
}

// Request is one call of a model.
type Request struct {
	Model     string // a configured model's name; empty for the default
	Messages  []Message
	Tools     []ToolSpec
	Force     string // name of the tool that must be called; empty for the model's own choice
	MaxOutput int    // tokens; 0 for the limit that the model is configured with
	Requests  int    // the most requests that may be made, to all models together; 0: as the models are configured
	Kind      Kind   // the work that the answer is for
	// Delta, where set, receives the text as it is streamed, from one goroutine, before Generate returns. After a
	// retry it may receive a text from its beginning again, announced by reset.
	Delta func(text string, reset bool)
}

// Message is one message of a request, in the roles of the chat API: system, user, assistant, tool.
type Message struct {
	Role       string
	Name       string // of a user: who speaks, where the provider takes names
	Content    string
	ToolCalls  []sessions.ToolCall
	ToolCallID string
}

// ToolSpec offers a tool to the model. Schema is a JSON schema of its arguments.
type ToolSpec struct {
	Name        string
	Description string
	Schema      map[string]any
}

// Response is what a model answered.
type Response struct {
	Text      string
	ToolCalls []sessions.ToolCall
	Finish    Finish
	Usage     sessions.Usage
	Model     string  // the configured model that answered, which may be a fallback
	Cost      float64 // in the unit of the configured prices; 0 where none are
	// Forced says how a forced tool was asked for in the end, for models that refuse to be forced.
	Forced string
	// Parts are the models that were asked, in order, also with an error. Their usage and cost add up to the response's.
	Parts []Part
}

// Part is one model's part in a call.
type Part struct {
	Model      string
	Requests   int
	Usage      sessions.Usage
	Cost       float64
	Took       time.Duration
	FirstToken time.Duration // of the last request; 0 where the answer came in one piece
	Err        *CallError    // nil for the model that answered
}

// Kind is the work that a call of a model is for.
type Kind string

// The kinds of calls.
const (
	KindTurn          Kind = "turn"
	KindFlush         Kind = "flush"
	KindExtract       Kind = "extract" // a flush for the facts alone, apart from the cycle of compactions
	KindSummary       Kind = "summary"
	KindDigest        Kind = "digest"
	KindConsolidation Kind = "consolidation"
)

// State says whether calls go to a model.
type State int

// The states of a model.
const (
	Up      State = iota
	OnTrial       // it was down, and the next call tries it
	Down          // others are asked before it
)

// Finish says why a model stopped.
type Finish string

// The reasons that matter to Ebb; a provider's other words are passed on as they are.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length"
	FinishTools  Finish = "tool_calls"
	FinishFilter Finish = "content_filter"
)

// CallError is a failed call, classified. The provider's own words are for the log only: they may hold keys.
type CallError struct {
	Class  ErrorClass
	Model  string
	Status int           // HTTP status; 0 for none
	After  time.Duration // the provider's Retry-After; 0 for none
	Next   bool          // another model was not asked, as the call had made its requests: it is asked next time
	Err    error
}

// ErrorClass sorts failures by what can be done about them.
type ErrorClass string

// The classes of model errors.
const (
	Busy        ErrorClass = "busy"        // rate limit or overload
	Timeout     ErrorClass = "timeout"     // no answer in time, or one that went quiet
	Broken      ErrorClass = "broken"      // an answer that broke off, or that is none
	Unreachable ErrorClass = "unreachable" // no connection: the address is wrong, or nothing listens there
	Missing     ErrorClass = "missing"     // the address or the model does not exist there: an operator must act
	Denied      ErrorClass = "denied"      // key, quota or permission: an operator must act
	Overflow    ErrorClass = "overflow"    // the request is larger than the window
	Refused     ErrorClass = "refused"     // content filter
	Malformed   ErrorClass = "malformed"   // the provider does not take the request
)

// Error is the model's name and the class, for logs; the cause is reached through Unwrap.
func (e *CallError) Error() string {
	trouble := string(e.Class)
	if e.Status != 0 {
		trouble = fmt.Sprintf("%s (status %d)", trouble, e.Status)
	}
	return fmt.Sprintf("model %s: %s: %v", e.Model, trouble, e.Err)
}

// Overflow reports whether the request was larger than the model's window.
func (e *CallError) Overflow() bool { return e.Class == Overflow }

// RequestFault reports whether the request itself is to blame, by what it says or how: it would fail again. Other statuses, such as
// a model that is not there or a login page, blame an address or a configuration, whatever is asked.
func (e *CallError) RequestFault() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return e.Class == Refused || e.Class == Malformed
	}
	return e.Class == Refused
}

// Temporary reports whether the same request may be answered another time.
func (e *CallError) Temporary() bool {
	if e.Next {
		return true
	}
	switch e.Class {
	case Busy, Timeout, Broken, Unreachable:
		return true
	}
	return false
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// ClassOf is the class of a model error, and Busy for anything that is not one: a thing to try again.
func ClassOf(err error) ErrorClass {
	if m, ok := errors.AsType[*CallError](err); ok {
		return m.Class
	}
	return Busy
}

// ErrStop is the cause with which work is cancelled when the process stops: it is no failure of the work.
var ErrStop = errors.New("bot is stopping")
