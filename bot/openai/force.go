package openai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	goopenai "github.com/sashabaranov/go-openai"

	"ebb/sessions"
	"ebb/sessions/llm"
)

// rung is a way to force a tool, from the strictest to the one that every model accepts.
type rung int

const rungNone rung = -1 // no tool is forced

const (
	rungNamed      rung = iota // tool_choice names the tool
	rungRequired               // tool_choice "required", with that tool only
	rungNoThinking             // the same without thinking, which some models require
	rungAuto                   // that tool only, and an instruction to call it
	rungJSON                   // no tools: a JSON object of the arguments
	rungText                   // the same for providers without response_format
)

// These find refusals of a way to force a tool.
var (
	refusesChoice   = ruleFile.Regexp("refusesChoice")
	refusesThinking = ruleFile.Regexp("refusesThinking")
	refusesTools    = ruleFile.Regexp("refusesTools")
	refusesJSON     = ruleFile.Regexp("refusesJSON")
)

// String is the name of a way in Response.Forced.
func (r rung) String() string {
	names := []string{"named", "required", "required_no_thinking", "auto", "json", "text"}
	if r < 0 || int(r) >= len(names) {
		return ""
	}
	return names[r]
}

func (r rung) wasRefused(err *llm.CallError) bool {
	if err.Class != llm.Malformed {
		return false
	}
	text := err.Said
	ways := []func() *regexp.Regexp{refusesChoice, refusesTools}
	switch r {
	case rungNoThinking:
		ways = append(ways, refusesThinking)
	case rungJSON:
		ways = []func() *regexp.Regexp{refusesJSON}
	}
	for _, w := range ways {
		if w().MatchString(text) {
			return true
		}
	}
	return false
}

func called(resp llm.Response, name string) bool {
	for _, c := range resp.ToolCalls {
		if c.Name == name {
			return true
		}
	}
	return false
}

// salvage turns an answer with the tool's arguments as JSON text into the call.
func salvage(resp *llm.Response, r llm.Request) {
	if len(resp.ToolCalls) > 0 {
		return
	}
	args, ok := objectIn(resp.Text)
	if !ok || !fits(args, schemaOf(r.Tools, r.Force)) {
		return
	}
	resp.Text, resp.Finish = "", llm.FinishTools
	resp.ToolCalls = []sessions.ToolCall{{ID: newCallID(), Name: r.Force, Arguments: args}}
}

// objectIn accepts the whole text, or the part from the first to the last brace.
func objectIn(text string) (string, bool) {
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if from < 0 || to < from || !json.Valid([]byte(text[from:to+1])) {
		return "", false
	}
	return text[from : to+1], true
}

// An object fits if it has a member of the schema, unlike other JSON of a model.
func fits(args string, schema map[string]any) bool {
	var o map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &o) != nil {
		return false
	}
	props, _ := schema["properties"].(map[string]any)
	for k := range o {
		if _, known := props[k]; known {
			return true
		}
	}
	return len(props) == 0
}

func schemaOf(tools []llm.ToolSpec, name string) map[string]any {
	for _, t := range tools {
		if t.Name == name {
			return t.Schema
		}
	}
	return nil
}

// demand is how a rung makes a model call the tool.
type demand struct {
	fields   map[string]any // merged into the request
	ask      string         // last words of the request; empty: none
	replaces bool           // The answer is the arguments, and no tool is offered.
}

// demandOf writes the rung of the ladder by which a model is made to call the tool. Each rung asks for less than the one before:
// providers refuse the forms above it. The two last ones replace the call by an answer in JSON, which the caller reads as the
// arguments.
func (r rung) demandOf(tool string, schema map[string]any) demand {
	switch r {
	case rungNamed:
		return demand{fields: map[string]any{"tool_choice": goopenai.ToolChoice{
			Type: goopenai.ToolTypeFunction, Function: goopenai.ToolFunction{Name: tool},
		}}}
	case rungRequired:
		return demand{fields: map[string]any{"tool_choice": "required"}}
	case rungNoThinking:
		// top level for hosted Qwen and for DeepSeek and Kimi, template arguments for vLLM and SGLang
		return demand{fields: map[string]any{
			"enable_thinking": false, "thinking": map[string]any{"type": "disabled"}, "chat_template_kwargs": map[string]any{"enable_thinking": false},
			"tool_choice": "required",
		}}
	case rungAuto:
		return demand{ask: fmt.Sprintf("Call the tool %s now, exactly once. Do not write any text: an answer without this call is an error.", tool)}
	case rungJSON, rungText:
		text, _ := json.Marshal(schema) // it was sent as a tool before
		d := demand{replaces: true}
		d.ask = fmt.Sprintf("Answer with one JSON object and nothing else. It is the arguments of %s, by this JSON schema:\n%s", tool, text)
		if r == rungJSON {
			d.fields = map[string]any{"response_format": map[string]string{"type": string(goopenai.ChatCompletionResponseFormatTypeJSONObject)}}
		}
		return d
	}
	return demand{}
}
