package openaitest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Kind is the purpose of a gateway's request.
type Kind string

// The kinds of requests.
const (
	Chat    Kind = "chat"
	Flush   Kind = "flush"   // a forced tool, in any way
	Summary Kind = "summary" // no tools
)

// Request is a received chat request.
type Request struct {
	N          int // from 1
	At         time.Time
	Kind       Kind
	Key        string
	Model      string
	Messages   []Message
	Tools      []Tool
	ToolChoice string // "auto", "required", "none", the name of a forced tool, or nothing
	JSON       bool   // response_format asks for a JSON object
	Stream     bool
	UsageAsked bool                       // stream_options.include_usage
	Raw        map[string]json.RawMessage // all members of the body
}

// Message is one message of a request.
type Message struct {
	Role, Name, Content, ToolCallID string
	Reasoning                       string // reasoning_content
	ToolCalls                       []Call
	Pictures                        []Picture
}

// Call is a tool call.
type Call struct{ ID, Name, Arguments string }

// Tool is an offered tool.
type Tool struct {
	Name, Description string
	Schema            map[string]any
}

// Last returns the last message.
func (r Request) Last() Message {
	if len(r.Messages) == 0 {
		return Message{}
	}
	return r.Messages[len(r.Messages)-1]
}

// Text returns the contents of all messages.
func (r Request) Text() string {
	var b strings.Builder
	for _, m := range r.Messages {
		b.WriteString(m.Content)
		b.WriteByte('\n')
	}
	return b.String()
}

// Arguments returns the arguments of all calls.
func (r Request) Arguments() string {
	var b strings.Builder
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			b.WriteString(c.Arguments)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Offers reports whether a tool is offered.
func (r Request) Offers(tool string) bool {
	for _, t := range r.Tools {
		if t.Name == tool {
			return true
		}
	}
	return false
}

// lean omits the fields of Options.Lean.
func parse(body []byte, lean bool) (Request, error) {
	var q struct {
		Model    string
		Messages []struct {
			Role, Name string
			Content    any
			ToolCallID string `json:"tool_call_id"`
			Reasoning  string `json:"reasoning_content"`
			ToolCalls  []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Tools []struct {
			Function struct {
				Name, Description string
				Parameters        json.RawMessage
			}
		}
		ToolChoice    json.RawMessage `json:"tool_choice"`
		Stream        bool
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		ResponseFormat struct{ Type string } `json:"response_format"`
	}
	r := Request{}
	if err := json.Unmarshal(body, &q); err != nil {
		return r, fmt.Errorf("the body is not a chat request: %w", err)
	}
	if !lean {
		if err := json.Unmarshal(body, &r.Raw); err != nil {
			return r, fmt.Errorf("the body is not an object: %w", err)
		}
	}
	r.Model, r.Stream, r.UsageAsked = q.Model, q.Stream, q.StreamOptions.IncludeUsage
	r.JSON = strings.HasPrefix(q.ResponseFormat.Type, "json")
	for _, m := range q.Messages {
		msg := Message{Role: m.Role, Name: m.Name, Content: textOf(m.Content), ToolCallID: m.ToolCallID, Reasoning: m.Reasoning, Pictures: picturesOf(m.Content)}
		for _, c := range m.ToolCalls {
			msg.ToolCalls = append(msg.ToolCalls, Call{c.ID, c.Function.Name, c.Function.Arguments})
		}
		r.Messages = append(r.Messages, msg)
	}
	for _, t := range q.Tools {
		tool := Tool{Name: t.Function.Name, Description: t.Function.Description}
		if !lean {
			_ = json.Unmarshal(t.Function.Parameters, &tool.Schema) // illegalTools reports unreadable schemas
		}
		r.Tools = append(r.Tools, tool)
	}
	r.ToolChoice = choiceOf(q.ToolChoice)
	r.Kind = kindOf(r)
	return r, nil
}

func textOf(content any) string {
	switch c := content.(type) {
	case nil:
		return ""
	case string:
		return c
	case []any: // parts
		var all []string
		for _, part := range c {
			if one, ok := part.(map[string]any); ok {
				text, _ := one["text"].(string)
				all = append(all, text)
			}
		}
		return strings.Join(all, "\n")
	}
	return fmt.Sprint(content)
}

func choiceOf(raw json.RawMessage) string {
	var s string
	var named struct{ Function struct{ Name string } }
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	_ = json.Unmarshal(raw, &named)
	return named.Function.Name
}

const saveTool = "memory_save"

// clockRE finds the time before a message. Only chat requests have it at the beginning of a line.
var clockRE = regexp.MustCompile(`(?m)^\[\d{4}-\d\d-\d\d \d\d:\d\d `)

func kindOf(r Request) Kind {
	alone := len(r.Tools) == 1 && r.Tools[0].Name == saveTool
	switch {
	case r.ToolChoice == "required" || r.Offers(r.ToolChoice) || alone:
		return Flush
	case len(r.Tools) > 0:
		return Chat
	case r.JSON || strings.Contains(r.Last().Content, "the arguments of "+saveTool):
		return Flush // request for the tool's arguments as JSON text
	case clockRE.MatchString(r.Text()):
		return Chat // the model has no tools
	}
	return Summary
}

// Illegal lists the faults of requests that a provider would refuse. It finds unpaired calls and results, tools not on
// offer, a missing user message, and empty contents, names or ids. One system message must be at the head.
func (s *Server) Illegal() []string {
	var out []string
	for _, r := range s.Requests() {
		for _, bad := range illegal(r, s.formed()) {
			out = append(out, fmt.Sprintf("request %d (%s): %s", r.N, r.Kind, bad))
		}
	}
	return out
}

// A provider with a form of its own may have refused the system message.
func illegal(r Request, formed bool) []string {
	var bad []string
	add := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	users, open, ids := 0, map[string]bool{}, map[string]bool{}
	for i, m := range r.Messages {
		if (m.Role == "system") != (i == 0) && !(formed && i == 0) {
			add("message %d is %q: one system message stands first, and no other", i, m.Role)
		}
		if m.Role != "tool" && len(open) > 0 {
			add("message %d (%s) stands between calls and their results", i, m.Role)
			clear(open)
		}
		bad = append(bad, illegalMessage(i, m, open, ids)...)
		if m.Role == "user" {
			users++
		}
	}
	if len(open) > 0 {
		add("the last calls have no results")
	}
	if users == 0 {
		add("there is no user message")
	}
	if r.Last().Role == "assistant" {
		add("the last message is the assistant's")
	}
	return append(bad, illegalTools(r)...)
}

var userName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func illegalMessage(i int, m Message, open, ids map[string]bool) []string {
	var bad []string
	add := func(format string, args ...any) {
		bad = append(bad, fmt.Sprintf("message %d (%s): ", i, m.Role)+fmt.Sprintf(format, args...))
	}
	if strings.TrimSpace(m.Content) == "" && len(m.ToolCalls) == 0 {
		add("it is empty")
	}
	if m.Name != "" && !userName.MatchString(m.Name) {
		add("name %q", m.Name)
	}
	switch m.Role {
	case "tool":
		if !open[m.ToolCallID] {
			add("result %q answers no call before it", m.ToolCallID)
		}
		delete(open, m.ToolCallID)
	case "assistant":
		for _, c := range m.ToolCalls {
			switch {
			case c.ID == "" || c.Name == "":
				add("a call without id or name")
			case ids[c.ID]:
				add("call id %q is used twice", c.ID)
			case !isObject(c.Arguments):
				add("the arguments of call %q are not a JSON object", c.ID)
			}
			open[c.ID], ids[c.ID] = true, true
		}
	case "system", "user":
	default:
		add("no such role")
	}
	return bad
}

func illegalTools(r Request) []string {
	var bad []string
	seen := map[string]bool{}
	for _, t := range r.Tools {
		if !userName.MatchString(t.Name) || seen[t.Name] {
			bad = append(bad, fmt.Sprintf("tool name %q is not allowed or used twice", t.Name))
		}
		seen[t.Name] = true
		if t.Schema["type"] != "object" {
			bad = append(bad, fmt.Sprintf("the schema of tool %q is not an object's", t.Name))
		}
	}
	switch r.ToolChoice {
	case "":
	case "auto", "required", "none":
		if len(r.Tools) == 0 {
			bad = append(bad, "tool_choice without tools")
		}
	default:
		if !seen[r.ToolChoice] {
			bad = append(bad, fmt.Sprintf("tool_choice %q is not on offer", r.ToolChoice))
		}
	}
	return bad
}

func isObject(s string) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal([]byte(s), &o) == nil && o != nil
}
