package bot

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
	Messages  []ChatMessage
	Tools     []ToolSpec
	Force     string // name of the tool that must be called; empty for the model's own choice
	MaxOutput int    // tokens; 0 for the limit that the model is configured with
	// Delta, where set, receives the text as it is streamed, from one goroutine, before Generate returns. After a
	// retry it may receive a text from its beginning again, announced by reset.
	Delta func(text string, reset bool)
}

// ChatMessage is one message of a request, in the roles of the chat API: system, user, assistant, tool.
type ChatMessage struct {
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
}

// Finish says why a model stopped.
type Finish string

// The reasons that matter to Ebb; a provider's other words are passed on as they are.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length"
	FinishTools  Finish = "tool_calls"
	FinishFilter Finish = "content_filter"
)

// ModelError is a failed call, classified. The provider's own words are for the log only: they may hold keys.
type ModelError struct {
	Class  ErrorClass
	Model  string
	Status int           // HTTP status; 0 for none
	After  time.Duration // the provider's Retry-After; 0 for none
	// Unreachable says that no connection to the endpoint came about: its address is wrong, or nothing listens there.
	Unreachable bool
	Err         error
}

// ErrorClass sorts failures by what can be done about them.
type ErrorClass string

// The classes of model errors.
const (
	Busy      ErrorClass = "busy"      // rate limit, overload, timeouts, broken streams: retried, then the next model
	Denied    ErrorClass = "denied"    // key, quota or permission: an operator must act
	Overflow  ErrorClass = "overflow"  // the request is larger than the window
	Refused   ErrorClass = "refused"   // content filter
	Malformed ErrorClass = "malformed" // the provider does not take the request
)

// Error is the model's name and the trouble, as [TroubleOf] calls it, for logs; the cause is reached through Unwrap.
func (e *ModelError) Error() string {
	trouble := TroubleOf(e)
	if e.Status != 0 {
		trouble = fmt.Sprintf("%s (status %d)", trouble, e.Status)
	}
	return fmt.Sprintf("model %s: %s: %v", e.Model, trouble, e.Err)
}

// Overflow reports whether the request was larger than the model's window.
func (e *ModelError) Overflow() bool { return e.Class == Overflow }

// Own reports whether the request itself is to blame, by what it says or how: it would fail again. Other statuses, such as
// a model that is not there or a login page, blame an address or a configuration, whatever is asked.
func (e *ModelError) Own() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return e.Class == Refused || e.Class == Malformed
	}
	return e.Class == Refused
}

// Temporary reports whether the same request may be answered another time.
func (e *ModelError) Temporary() bool { return e.Class == Busy }

// Unwrap returns the cause.
func (e *ModelError) Unwrap() error { return e.Err }

// ClassOf is the class of a model error, and Busy for anything that is not one: a thing to try again.
func ClassOf(err error) ErrorClass {
	if m, ok := errors.AsType[*ModelError](err); ok {
		return m.Class
	}
	return Busy
}
