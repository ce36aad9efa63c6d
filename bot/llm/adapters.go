package llm

import (
	"context"

	"ebb/compaction/audit"
	"ebb/compaction/summarize"
	"ebb/memory"
)

// Plain adapts a Model to the ports of summaries and flushes.
type Plain struct {
	Model Model
	Kind  Kind
}

// Complete sends one request without tools, because the caller retries. A silent model would be silent again.
func (p Plain) Complete(ctx context.Context, r summarize.CompleteRequest) (summarize.Completion, error) {
	resp, err := p.Model.Generate(ctx, Request{
		Kind: p.Kind, Model: r.Model, MaxOutput: r.MaxOutput, Requests: 1, Passes: true,
		Messages: []Message{{Role: "system", Content: r.System}, {Role: "user", Content: r.User}},
	})
	c := summarize.Completion{Model: resp.UsedModel(), Usage: resp.Usage, Cost: resp.Cost}
	c.Reply = audit.Reply{Text: resp.Text, Stop: resp.Finish == FinishStop, Calls: len(resp.ToolCalls) > 0}
	return c, err
}

// Call forces the one tool.
func (p Plain) Call(ctx context.Context, r memory.CallRequest) (memory.ToolCallResult, error) {
	resp, err := p.Model.Generate(ctx, Request{
		Kind: p.Kind, Model: r.Model, Force: r.Tool, MaxOutput: r.MaxOutput,
		Tools:    []ToolSpec{{Name: r.Tool, Description: r.Description, Schema: r.Schema}},
		Messages: []Message{{Role: "system", Content: r.System}, {Role: "user", Content: r.User}},
	})
	c := memory.ToolCallResult{Text: resp.Text, Model: resp.UsedModel(), Usage: resp.Usage, Cost: resp.Cost}
	for _, call := range resp.ToolCalls {
		if call.Name == r.Tool && c.Arguments == "" {
			c.Arguments = call.Arguments
		}
	}
	return c, err
}
