// Package llmtest has models and readers of requests that the tests of several packages share.
package llmtest

import (
	"context"

	"ebb/sessions/llm"
)

// Func is a model by a function.
type Func func(ctx context.Context, r llm.Request) (llm.Response, error)

// Generate implements llm.Model.
func (f Func) Generate(ctx context.Context, r llm.Request) (llm.Response, error) { return f(ctx, r) }

// Instructions returns those of a request of [llm.Prompt].
func Instructions(r llm.Request) string { return r.Messages[0].Content }

// Data returns the data of a request of [llm.Prompt].
func Data(r llm.Request) string { return r.Messages[1].Content }
