package memory

import (
	"context"
	"ebb/sessions"
)

// Model makes a model call one tool. Its answer may still lack the call: that is for the caller to judge. An error may
// say by [ModelFault] what about the request is to blame. What was paid is said with an error, too.
type Model interface {
	Call(ctx context.Context, r CallRequest) (ToolCallResult, error)
}

// ModelFault is an error of a model that says what about the request is to blame.
type ModelFault interface {
	error
	Overflow() bool // it was larger than the model's window
	// RequestFault reports that it is what the request says or how it says it, so that it fails as often as it is sent; busy models,
	// quotas and networks are not.
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

// ToolCallResult is the answer. Arguments is empty where the model did not call the tool.
type ToolCallResult struct {
	Arguments string
	Text      string
	Model     string
	Usage     sessions.Usage
	Cost      float64
}

// Fencer sets one piece of data between fences.
type Fencer func(name, data string) string
