package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"ebb/sessions"
	"ebb/sessions/written"
)

// Model answers chat requests, also concurrently. Generate retries within ctx's deadline and then tries the next
// model of its list: an error is final for the turn. With an error, the response has Usage, Cost and Parts of the
// unusable answers. If the caller ended the call, Text is what the last answer had said.
type Model interface {
	Generate(ctx context.Context, r Request) (Response, error)
}

// Request is one call of a model.
type Request struct {
	Model     string // configured model's name; empty for the default
	Messages  []Message
	Tools     []ToolSpec
	Force     string // tool that must be called; empty for the model's own choice
	MaxOutput int    // tokens; 0: as configured
	Greets    bool   // no word of a person: a refusal blames the model
	Requests  int    // bound of requests to all models together; 0: as configured
	Passes    bool   // a request over which a model is silent does not count among Requests: the next one has it
	Kind      Kind
	Voices    ShownNames
	// Delta receives the streamed text, from one goroutine, before Generate returns. After a retry it may receive the
	// text from its beginning, announced by reset. It may be nil.
	Delta func(text string, reset bool)
	// Thought receives the streamed reasoning likewise, for display only. It may be nil, and is not called without
	// Delta, whose reset drops the reasoning too.
	Thought func(text string)
	// Late receives the usage of a request that went on after Generate returned, once, from another goroutine. It may be nil.
	Late func(Part)
}

// ShownNames are the names that a request shows. An answer speaks in no other name. The zero value knows none.
type ShownNames struct {
	Self     string   // the bot
	Speakers []string // names before people's messages
	Askers   []string // those of the messages to answer
	Question string   // the messages to answer
}

// Message has the role system, user, assistant or tool.
type Message struct {
	Role       string
	Content    string
	ToolCalls  []sessions.ToolCall
	ToolCallID string
	// Pictures belong to a user's message, in order.
	Pictures []Picture
	// Reasoning is of an earlier round of the same turn, for providers that require it back.
	Reasoning string
}

// Prompt returns the messages of a request that is no conversation: instructions, and the data that they are about.
func Prompt(instructions, data string) []Message {
	return []Message{{Role: "system", Content: instructions}, {Role: "user", Content: data}}
}

// Picture is a picture in a message.
type Picture struct {
	At   int // place in the content, in bytes
	Type string
	Body []byte
}

// ToolSpec has a JSON schema of the arguments in Schema.
type ToolSpec struct {
	Name        string
	Description string
	Schema      map[string]any
}

// Response is a model's answer.
type Response struct {
	Text      string
	ToolCalls []sessions.ToolCall
	Finish    Finish
	Usage     sessions.Usage
	Guessed   bool    // the provider's count of the prompt is missing or impossible: Usage has an estimate
	Model     string  // configured model that answered, perhaps a fallback
	Cost      float64 // in llm.currency; 0 without prices
	// Forced names the way in which a tool was forced, for models that reject tool_choice.
	Forced string
	// Corrected lists the kinds of words that the model wrote and Text has no more.
	Corrected []written.Kind
	// Reasoning preceded the answer, where the provider separates it. It is never stored.
	Reasoning string
	// Blind: the request had pictures, and the model that answered takes none. It read the words alone.
	Blind bool
	// Parts are the models that were asked, in order, with an error too. Their usage and cost add up to the response's.
	Parts []Part
}

// Ended reports that the call was ended behind words that the check cut: no report of its usage came.
func (r Response) Ended() bool {
	return slices.ContainsFunc([]written.Kind{written.Spoken, written.Leaked, written.Repeated}, func(k written.Kind) bool { return slices.Contains(r.Corrected, k) })
}

// Garbled reports that the model wrote calls as text that can't be made, and made no others.
func (r Response) Garbled() bool {
	return len(r.ToolCalls) == 0 && slices.Contains(r.Corrected, written.Garbled)
}

// Arguments returns those of the first call of a tool; empty for none.
func (r Response) Arguments(tool string) string {
	for _, c := range r.ToolCalls {
		if c.Name == tool && c.Arguments != "" {
			return c.Arguments
		}
	}
	return ""
}

// UsedModel returns the model that the usage is counted for: the one that answered, or after an error the last one that used
// tokens.
func (r Response) UsedModel() string {
	if r.Model != "" {
		return r.Model
	}
	name, used := "", false
	for _, p := range r.Parts {
		if uses := p.Usage != (sessions.Usage{}); uses || !used {
			name, used = p.Model, uses
		}
	}
	return name
}

// Part is one model's share of a call.
type Part struct {
	Model      string
	Requests   int
	Usage      sessions.Usage
	Cost       float64
	Took       time.Duration
	FirstToken time.Duration // latency of the last request's first token; 0 for an answer in one piece
	Err        *CallError    // nil for the model that answered
}

// ModelChoice is a model that members may choose.
type ModelChoice struct {
	Name string
	ID   sessions.ModelID // the provider's name of it, at its endpoint; empty: not known
	Price
}

// Price is for a million tokens, in any currency; zeros for none.
type Price struct{ In, Cached, Out float64 } // Cached: 0 stands for In

// Cost returns the price of a usage.
func (p Price) Cost(u sessions.Usage) float64 {
	prompt := max(0, u.Prompt)
	cached := min(max(0, u.Cached), prompt) // some providers report invalid values
	return (float64(prompt-cached)*p.In + float64(cached)*cmp.Or(p.Cached, p.In) + float64(max(0, u.Completion))*p.Out) / 1e6
}

// Clamp limits a provider's token count to plausible values.
func Clamp(tokens int) int { return min(max(tokens, 0), 1<<30) }

// Kind is the purpose of a model call.
type Kind string

// The kinds of calls.
const (
	KindTurn          Kind = "turn"
	KindFlush         Kind = "flush"
	KindExtract       Kind = "extract" // a flush that only extracts facts, apart from compactions
	KindSummary       Kind = "summary"
	KindDigest        Kind = "digest"
	KindConsolidation Kind = "consolidation"
	KindProbe         Kind = "probe" // asks for one token: whether a provider accepts a request
)

// States has the state of each configured model.
type States interface {
	States() map[string]State
}

// Toolless knows the models that were found to work without tools. An empty name is the default's.
type Toolless interface {
	WithoutTools(model string) bool
}

// State is the state of a model's circuit breaker.
type State int

// The states.
const (
	Up      State = iota
	OnTrial       // the next call tries it again
	Down          // other models are asked first
)

// Finish is the reason for the end of an answer.
type Finish string

// The reasons. The adapter translates a provider's other words, and takes an unknown one for a broken answer.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length"
	FinishTools  Finish = "tool_calls"
	FinishFilter Finish = "content_filter"
	// FinishRepeats ends an answer that repeats words without end.
	FinishRepeats Finish = "repeats"
)

// CallError is a failed call. Its text is for logs and tables: it has no words of the provider, which may repeat the request.
type CallError struct {
	Class  ErrorClass
	Model  string
	Status int           // HTTP status; 0 for none
	After  time.Duration // the provider's Retry-After; 0 for none
	Next   bool          // the request limit kept another model from being asked; a later call asks it
	Err    error
	// Said is the provider's own text without keys, for rules and for an operator's terminal; empty for none. It is never
	// logged or stored.
	Said string
}

// ErrorClass sorts failures by their remedy.
type ErrorClass string

// The classes of model errors.
const (
	Busy        ErrorClass = "busy"        // rate limit or overload
	Timeout     ErrorClass = "timeout"     // no answer in time, or a silent stream
	Broken      ErrorClass = "broken"      // an interrupted or invalid answer
	Unreachable ErrorClass = "unreachable" // no connection: wrong address, or no listener
	Missing     ErrorClass = "missing"     // unknown address or model: an operator must act
	Denied      ErrorClass = "denied"      // key or permission: an operator must act
	Unpaid      ErrorClass = "unpaid"      // the account has no money or quota left: an operator must act
	Overflow    ErrorClass = "overflow"    // the request is larger than the window
	Refused     ErrorClass = "refused"     // content filter
	Malformed   ErrorClass = "malformed"   // the provider rejected the request as invalid
)

// Error returns the model's name and the class, for logs.
func (e *CallError) Error() string {
	class := string(e.Class)
	if e.Status != 0 {
		class = fmt.Sprintf("%s (status %d)", class, e.Status)
	}
	return fmt.Sprintf("model %s: %s: %v", e.Model, class, e.Err)
}

// Overflow reports whether the request exceeded the model's window.
func (e *CallError) Overflow() bool { return e.Class == Overflow }

// MayOverflow reports whether the request was refused as invalid: for a reason that is not known, and so perhaps for its
// size. Providers have more wordings of an overflow than any list.
func (e *CallError) MayOverflow() bool { return e.Class == Malformed && e.RequestFault() }

// RequestFault reports whether the request itself would fail again. Other statuses, such as a missing model or a login
// page, blame an address or the configuration.
func (e *CallError) RequestFault() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return e.Class == Refused || e.Class == Malformed
	}
	return e.Class == Refused
}

// Temporary reports whether the same request may succeed later.
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

// Accepted reports whether a provider took a request, whatever it made of it. Other errors leave that open.
func Accepted(err error) bool { return err == nil || ClassOf(err) == Broken }

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// ClassOf returns the class of a model error, or Busy, which is retried.
func ClassOf(err error) ErrorClass {
	if m, ok := errors.AsType[*CallError](err); ok {
		return m.Class
	}
	return Busy
}

// ErrStop is the cause of cancelled work at a stop. It is no failure of the work.
var ErrStop = errors.New("bot is stopping")
