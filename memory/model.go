package memory

import (
	"context"

	"ebb/sessions"
)

// Model makes a model call one tool. Its answer may still lack the call; the caller checks that. An error may be a
// [ModelFault]. The cost is returned with an error too.
type Model interface {
	Call(ctx context.Context, r CallRequest) (ToolCallResult, error)
}

// ModelFault is an error of a model that classifies the request's fault.
type ModelFault interface {
	error
	Overflow() bool // it was larger than the model's window
	// RequestFault reports that the request's content or form is refused, so that each attempt fails. Busy models,
	// quotas and networks are no such faults.
	RequestFault() bool
}

// CallRequest is a request that must be answered by a call of Tool.
type CallRequest struct {
	Model       string // a configured model's name; empty for the default
	System      string
	User        string
	Tool        string
	Description string
	Schema      map[string]any
	MaxOutput   int // tokens
}

// ToolCallResult is the answer to a [CallRequest]. Arguments is empty if the model did not call the tool.
type ToolCallResult struct {
	Arguments string
	Text      string
	Model     string
	Usage     sessions.Usage
	Cost      float64
}

// Fencer sets one piece of data between fences.
type Fencer func(name, data string) string
