package bot

import (
	"context"
	"sync"

	"ebb/compaction"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
)

// plainModel lets the one model serve summaries and flushes in the words of their packages.
type plainModel struct {
	model Model
	kind  Kind
}

// Complete answers a summary request: no tools are offered. It makes one request: the retries are those of the summary.
func (p plainModel) Complete(ctx context.Context, r compaction.CompleteRequest) (compaction.Completion, error) {
	resp, err := p.model.Generate(ctx, Request{
		Kind: p.kind, Model: r.Model, MaxOutput: r.MaxOutput, Requests: 1,
		Messages: []ChatMessage{{Role: "system", Content: r.System}, {Role: "user", Content: r.User}},
	})
	c := compaction.Completion{Model: resp.Model, Usage: resp.Usage, Cost: resp.Cost}
	c.Reply = compaction.Reply{Text: resp.Text, Stop: resp.Finish == FinishStop, Calls: len(resp.ToolCalls) > 0}
	return c, err
}

// Call answers a flush request: the one tool is forced.
func (p plainModel) Call(ctx context.Context, r memory.CallRequest) (memory.Called, error) {
	resp, err := p.model.Generate(ctx, Request{
		Kind: p.kind, Model: r.Model, Force: r.Tool, MaxOutput: r.MaxOutput,
		Tools:    []ToolSpec{{Name: r.Tool, Description: r.Description, Schema: r.Schema}},
		Messages: []ChatMessage{{Role: "system", Content: r.System}, {Role: "user", Content: r.User}},
	})
	c := memory.Called{Text: resp.Text, Model: resp.Model, Usage: resp.Usage, Cost: resp.Cost}
	for _, call := range resp.ToolCalls {
		if call.Name == r.Tool && c.Arguments == "" {
			c.Arguments = call.Arguments
		}
	}
	return c, err
}

// counted remembers the counts of texts that stand in request after request: names, pinned memory, summaries.
type counted struct {
	counter *tokens.Counter
	mu      sync.Mutex
	known   map[string]int
}

// countedTexts bounds what is remembered; the map is emptied when it is full.
const countedTexts = 1024

func (c *counted) count(text string) int {
	c.mu.Lock()
	n, ok := c.known[text]
	c.mu.Unlock()
	if ok {
		return n
	}
	n = c.counter.Count(text)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= countedTexts {
		clear(c.known)
	}
	c.known[text] = n
	return n
}

// locks are one lock for each session, held by whoever compacts or flushes it.
type locks struct {
	mu   sync.Mutex
	held map[sessions.Key]chan struct{}
}

// lock waits for the session's lock and returns what gives it back; the error is ctx's cause.
func (l *locks) lock(ctx context.Context, key sessions.Key) (unlock func(), err error) {
	for {
		l.mu.Lock()
		busy, ok := l.held[key]
		if !ok {
			done := make(chan struct{})
			l.held[key] = done
			l.mu.Unlock()
			return func() {
				l.mu.Lock()
				delete(l.held, key)
				l.mu.Unlock()
				close(done)
			}, nil
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// busy reports whether somebody holds the session's lock.
func (l *locks) busy(key sessions.Key) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[key] != nil
}
