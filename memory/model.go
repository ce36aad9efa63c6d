package memory

import (
	"context"

	"ebb/sessions"
)

// Model makes a model call one tool; the answer may lack the call. An error may be a [ModelFault], and comes with the
// cost.
type Model interface {
	Call(ctx context.Context, r CallRequest) (ToolCallResult, error)
}

// ModelFault classifies an error of a model.
type ModelFault interface {
	error
	Overflow() bool // the request exceeded the model's window
	// RequestFault reports that the request is refused for its content or form, so that a repetition fails too.
	// Quotas, networks and busy models are no such faults.
	RequestFault() bool
}

// CallRequest must be answered by a call of Tool.
type CallRequest struct {
	Model       string // a configured name; empty for the default
	System      string
	User        string
	Tool        string
	Description string
	Schema      map[string]any
	MaxOutput   int // tokens
}

// ToolCallResult answers a [CallRequest]. Arguments is empty if the model did not call the tool.
type ToolCallResult struct {
	Arguments string
	Text      string
	Model     string
	Usage     sessions.Usage
	Cost      float64
}

// Fencer sets one piece of data between fences.
type Fencer func(name, data string) string
