package openai

import (
	"encoding/json"
	"regexp"
	"strings"

	goopenai "github.com/sashabaranov/go-openai"

	"ebb/bot"
	"ebb/sessions"
)

// call is a request in one provider's form.
type call struct {
	req    goopenai.ChatCompletionRequest
	extra  map[string]any // members of the body that go-openai has no field for, or drops where they are zero
	stream bool
	tools  map[string]bool // the names on offer: they tell a repeated name from a piece of one
}

// build writes r in the form that m takes, as far as is known, with the tool forced in the way of rung. It asks for a
// stream, so that silence shows early, but not where that would lose the usage or is known to be in vain.
func (m *model) build(r bot.Request, rung rung) call {
	cl := call{
		req:    goopenai.ChatCompletionRequest{Model: m.Model, Messages: messages(r.Messages)},
		extra:  map[string]any{},
		stream: r.Delta != nil || !m.whole.Load() && !m.noStreamOptions.Load(),
		tools:  map[string]bool{},
	}
	if limit := m.outputLimit(r.MaxOutput); m.completionTokens.Load() {
		cl.req.MaxCompletionTokens = limit
	} else {
		cl.req.MaxTokens = limit
	}
	if m.Temperature != nil { // go-openai would drop a zero
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

// adapt learns from a refusal which form the provider wants, and reports whether that form is a new one.
func (m *model) adapt(cl call, err *bot.ModelError) bool {
	text := strings.ToLower(err.Err.Error())
	switch {
	case cl.req.StreamOptions != nil && strings.Contains(text, "stream_options"):
		m.noStreamOptions.Store(true)
	case cl.req.MaxTokens > 0 && strings.Contains(text, "max_completion_tokens"):
		m.completionTokens.Store(true)
	case m.MaxOutput > 0 && max(cl.req.MaxTokens, cl.req.MaxCompletionTokens) > m.MaxOutput && saysOutput.MatchString(text):
		m.ownOutput.Store(true)
	default:
		return false
	}
	return true
}

// saysOutput finds the refusal of an answer's length.
var saysOutput = regexp.MustCompile(`max_(completion_|output_|new_)?tokens`)

// wantsCompletionTokens names the models for which go-openai refuses max_tokens by itself.
func wantsCompletionTokens(model string) bool {
	for _, p := range []string{"o1", "o3", "o4", "gpt-5", "gpt-6"} {
		if strings.HasPrefix(model, p) {
			return true
		}
	}
	return false
}

// outputLimit is what a request asks for, and the model's own limit where it asks for nothing, or for more than the
// provider is known to take.
func (m *model) outputLimit(asked int) int {
	if asked <= 0 || m.ownOutput.Load() && m.MaxOutput > 0 && m.MaxOutput < asked {
		return m.MaxOutput
	}
	return asked
}

func tool(t bot.ToolSpec) goopenai.Tool {
	schema := t.Schema
	if len(schema) == 0 {
		schema = map[string]any{"type": "object", "properties": map[string]any{}}
	}
	return goopenai.Tool{Type: goopenai.ToolTypeFunction, Function: &goopenai.FunctionDefinition{
		Name: t.Name, Description: t.Description, Parameters: schema,
	}}
}

// messages keeps what a provider would take. Whether calls and results are paired is the caller's to see to.
func messages(in []bot.ChatMessage) []goopenai.ChatCompletionMessage {
	out := make([]goopenai.ChatCompletionMessage, 0, len(in))
	for _, m := range in {
		msg := goopenai.ChatCompletionMessage{Role: m.Role, Content: m.Content, ToolCallID: m.ToolCallID}
		switch m.Role {
		case goopenai.ChatMessageRoleAssistant:
			if m.Content == "" && len(m.ToolCalls) == 0 {
				continue
			}
			msg.ToolCalls = toolCalls(m.ToolCalls)
		case goopenai.ChatMessageRoleUser:
			msg.Name = speaker(m.Name)
		}
		if msg.Content == "" && len(msg.ToolCalls) == 0 {
			msg.Content = "(empty)" // go-openai leaves an empty content out, and a message without one is refused
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

// objectOr is args where it is a JSON object, as providers' templates demand, and an empty one otherwise.
func objectOr(args string) string {
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &o) != nil || o == nil {
		return "{}"
	}
	return args
}

var nameOK = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// speaker is name in the letters that the API allows, or nothing. A name that would lose letters is dropped whole:
// what is left of two Chinese names may be equal, and two people would become one.
func speaker(name string) string {
	name = strings.Join(strings.Fields(name), "_")
	if !nameOK.MatchString(name) {
		return ""
	}
	return name
}
