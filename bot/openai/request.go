package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	goopenai "github.com/sashabaranov/go-openai"

	"ebb/bot/llm"
	"ebb/sessions"
	"ebb/sessions/written"
)

// call is a request in one provider's form.
type call struct {
	req    goopenai.ChatCompletionRequest
	extra  map[string]any // body members that go-openai lacks, or drops when zero
	stream bool
	tools  map[string]bool // offered names, which distinguish a repeated name from a piece of one
	checks written.Config
}

// build writes r in the form that m is known to accept. It streams, so that silence is detected early, unless that
// loses the usage or is known to fail.
func (m *model) build(r llm.Request, rung rung) call {
	cl := call{
		req:    goopenai.ChatCompletionRequest{Model: m.Model, Messages: messages(r.Messages, m.ownThoughts.Load())},
		extra:  map[string]any{},
		stream: r.Delta != nil || !m.whole.Load() && !m.noStreamOptions.Load(),
		tools:  map[string]bool{},
		checks: checksOf(r),
	}
	if limit := m.outputLimit(r.MaxOutput); m.completionTokens.Load() {
		cl.req.MaxCompletionTokens = limit
	} else {
		cl.req.MaxTokens = limit
	}
	if m.Temperature != nil { // go-openai drops a zero
		cl.extra["temperature"] = *m.Temperature
	}
	if cl.stream && !m.noStreamOptions.Load() {
		cl.req.StreamOptions = &goopenai.StreamOptions{IncludeUsage: true}
	}
	for _, t := range r.Tools {
		cl.tools[t.Name] = true
		cl.req.Tools = append(cl.req.Tools, tool(t))
	}
	if rung != rungNone {
		cl.force(r, rung)
	}
	return cl
}

var saysOutput = ruleFile.Regexp("output") // The provider refuses an answer's length.

// adapt learns the required form from a refusal, and reports whether it is new.
func (m *model) adapt(cl call, err *llm.CallError) bool {
	text := strings.ToLower(err.Said)
	switch {
	case cl.req.StreamOptions != nil && strings.Contains(text, "stream_options"):
		m.noStreamOptions.Store(true)
	case strings.Contains(text, "reasoning_content") && !m.ownThoughts.Load():
		m.ownThoughts.Store(true)
	case cl.req.MaxTokens > 0 && strings.Contains(text, "max_completion_tokens"):
		m.completionTokens.Store(true)
	case m.MaxOutput > 0 && max(cl.req.MaxTokens, cl.req.MaxCompletionTokens) > m.MaxOutput && saysOutput().MatchString(text):
		m.ownOutput.Store(true)
	default:
		return false
	}
	return true
}

// outputLimit is the requested limit, or the model's own without one or if a larger one is refused.
func (m *model) outputLimit(asked int) int {
	if asked <= 0 || m.ownOutput.Load() && m.MaxOutput > 0 && m.MaxOutput < asked {
		return m.MaxOutput
	}
	return asked
}

func tool(t llm.ToolSpec) goopenai.Tool {
	schema := t.Schema
	if len(schema) == 0 {
		schema = map[string]any{"type": "object", "properties": map[string]any{}}
	}
	return goopenai.Tool{Type: goopenai.ToolTypeFunction, Function: &goopenai.FunctionDefinition{
		Name: t.Name, Description: t.Description, Parameters: schema,
	}}
}

// learnTags learns whether the model's template writes the opening tag of its reasoning. Later answers of such a
// model are not streamed before the closing tag.
func (m *model) learnTags(cl call, a *answer) {
	switch untagged := a.filter.Untagged(); {
	case untagged:
		m.untagged.Store(true)
	case a.text != "" && cl.req.ToolChoice == nil: // a forced call may have no reasoning
		m.untagged.Store(false)
	}
}

// noThought stands for reasoning that is not known any more. Some providers refuse an empty one.
const noThought = " "

// messages keeps what providers accept. The caller pairs calls and results. thoughts: the provider requires its
// reasoning of earlier rounds.
func messages(in []llm.Message, thoughts bool) []goopenai.ChatCompletionMessage {
	out := make([]goopenai.ChatCompletionMessage, 0, len(in))
	for _, m := range in {
		msg := goopenai.ChatCompletionMessage{Role: m.Role, Content: m.Content, ToolCallID: m.ToolCallID}
		if m.Role == goopenai.ChatMessageRoleAssistant {
			if m.Content == "" && len(m.ToolCalls) == 0 {
				continue
			}
			msg.ToolCalls = toolCalls(m.ToolCalls)
			if thoughts {
				msg.ReasoningContent = cmp.Or(m.Reasoning, noThought)
			}
		}
		if msg.Content == "" && len(msg.ToolCalls) == 0 {
			msg.Content = "(empty)" // go-openai omits an empty content, and providers refuse its absence
		}
		out = append(out, msg)
	}
	return out
}

func toolCalls(in []sessions.ToolCall) []goopenai.ToolCall {
	var out []goopenai.ToolCall
	for _, c := range in {
		out = append(out, goopenai.ToolCall{
			ID: c.ID, Type: goopenai.ToolTypeFunction,
			Function: goopenai.FunctionCall{Name: c.Name, Arguments: objectOr(c.Arguments)},
		})
	}
	return out
}

// Providers' templates require a JSON object as args.
func objectOr(args string) string {
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &o) != nil || o == nil {
		return "{}"
	}
	return args
}

// rung is a way to force a tool, from the strictest to the one that every model accepts.
type rung int32

const rungNone rung = -1
