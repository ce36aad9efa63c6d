package bottest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ebb/bot/chat"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Script is a model that answers from functions, one for each kind of request, and keeps what it was asked.
type Script struct {
	Mu                   sync.Mutex
	Asked                []llm.Request
	Chat, Flush, Summary func(ctx context.Context, r llm.Request) (llm.Response, error)
}

// KindOfRequest is flush, summary or chat.
func KindOfRequest(r llm.Request) string {
	switch {
	case r.Force != "":
		return "flush"
	case len(r.Tools) == 0:
		return "summary"
	}
	return "chat"
}

// Generate implements llm.Model.
func (m *Script) Generate(ctx context.Context, r llm.Request) (llm.Response, error) {
	r.Messages = slices.Clone(r.Messages)
	m.Mu.Lock()
	m.Asked = append(m.Asked, r)
	n := len(m.Asked)
	f, kind := m.Chat, KindOfRequest(r)
	switch kind {
	case "flush":
		f = m.Flush
	case "summary":
		f = m.Summary
	}
	m.Mu.Unlock()
	if f != nil {
		return f(ctx, r)
	}
	switch kind {
	case "flush":
		return SaveCall(fmt.Sprintf("fact number %d", n)), nil
	case "summary":
		return llm.Response{Text: GoodSummary, Finish: llm.FinishStop, Model: "fake"}, nil
	}
	return Text("re: " + LastWords(r)), nil
}

// GoodSummary passes the gate with any text.
const GoodSummary = "## State\nAlice and Bob planned the autumn release. Carol owns the database move, due on 3 November; Dave reviews it. " +
	"The staging cluster is called heron, the production one osprey. Open: who writes the announcement, and whether the old API stays until spring."

// Text is an answer of words.
func Text(s string) llm.Response { return llm.Response{Text: s, Finish: llm.FinishStop, Model: "fake"} }

// Calls is an answer that calls tools.
func Calls(cs ...sessions.ToolCall) llm.Response {
	return llm.Response{ToolCalls: cs, Finish: llm.FinishTools, Model: "fake"}
}

// SaveCall is an answer that saves facts.
func SaveCall(facts ...string) llm.Response {
	var list []map[string]string
	for _, f := range facts {
		list = append(list, map[string]string{"content": f, "kind": "fact"})
	}
	args, err := json.Marshal(map[string]any{"facts": list})
	if err != nil {
		panic(err)
	}
	return Calls(sessions.ToolCall{ID: "f1", Name: "memory_save", Arguments: string(args)})
}

// LastWords is the last message of a request.
func LastWords(r llm.Request) string { return r.Messages[len(r.Messages)-1].Content }

// Requests lists what was asked of one kind.
func (m *Script) Requests(kind string) []llm.Request {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	var out []llm.Request
	for _, r := range m.Asked {
		if KindOfRequest(r) == kind {
			out = append(out, r)
		}
	}
	return out
}

// HandTool is a tool that runs a function; it counts as having effects unless reads is set.
type HandTool struct {
	Name  string
	Reads bool
	F     func(ctx context.Context, in chat.ToolInput) (string, error)
}

// Spec implements chat.Tool.
func (h HandTool) Spec() llm.ToolSpec {
	return llm.ToolSpec{Name: h.Name, Description: "does " + h.Name, Schema: map[string]any{"type": "object"}}
}

// Repeatable implements chat.Repeatable.
func (h HandTool) Repeatable() bool { return h.Reads }

// Call implements chat.Tool.
func (h HandTool) Call(ctx context.Context, in chat.ToolInput) (string, error) {
	if h.F == nil {
		return "done", nil
	}
	return h.F(ctx, in)
}

// Hang is a model that never answers.
func Hang(ctx context.Context, _ llm.Request) (llm.Response, error) {
	<-ctx.Done()
	return llm.Response{}, context.Cause(ctx)
}

// Rounds answers request after request with the next of a list, and with words when it is used up.
func Rounds(rs ...llm.Response) func(context.Context, llm.Request) (llm.Response, error) {
	var n atomic.Int32
	return func(context.Context, llm.Request) (llm.Response, error) {
		if i := int(n.Add(1)) - 1; i < len(rs) {
			return rs[i], nil
		}
		return Text("the end"), nil
	}
}

// Call is a call of a tool.
func Call(id, name, args string) sessions.ToolCall {
	return sessions.ToolCall{ID: id, Name: name, Arguments: args}
}

// CountedTool makes a tool that says how often it ran.
func CountedTool(name string, reads bool, n *atomic.Int32) chat.Tool {
	return HandTool{Name: name, Reads: reads, F: func(_ context.Context, in chat.ToolInput) (string, error) {
		return fmt.Sprintf("%s run %d with %s", name, n.Add(1), in.Arguments), nil
	}}
}

// Halfway has the model speak of each question that holds a word until its call ends, and answer all others.
func Halfway(word, said string) func(context.Context, llm.Request) (llm.Response, error) {
	return func(ctx context.Context, r llm.Request) (llm.Response, error) {
		if !strings.Contains(LastWords(r), word) {
			return Text("re: " + LastWords(r)), nil
		}
		<-ctx.Done()
		err := &llm.CallError{Class: llm.Busy, Err: context.Cause(ctx)}
		return llm.Response{Text: said, Parts: []llm.Part{{Model: "fake", Requests: 1, Err: err}}}, err
	}
}
