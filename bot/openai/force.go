package openai

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	goopenai "github.com/sashabaranov/go-openai"

	"ebb/bot"
	"ebb/sessions"
)

// rung is a way to force a tool. They go from the strictest to the one that any model can be asked in.
type rung int32

const (
	rungNamed      rung = iota // tool_choice names the tool
	rungRequired               // tool_choice "required", that tool alone on offer
	rungNoThinking             // the same with thinking switched off, which some models demand
	rungAuto                   // that tool alone on offer, and an instruction to call it
	rungJSON                   // no tools: a JSON object that is the arguments
	rungText                   // the same for providers without response_format
)

// rungNone forces nothing.
const rungNone rung = -1

// String is the name that Response.Forced gives to a way.
func (r rung) String() string {
	names := []string{"named", "required", "required_no_thinking", "auto", "json", "text"}
	if r < 0 || int(r) >= len(names) {
		return ""
	}
	return names[r]
}

// The provider's words that mean "not in this way". Words that a refusal for another reason may hold must not match:
// the lower rungs would be asked in vain, and the lowest would stick.
var (
	refusesChoice   = regexp.MustCompile(`(?i)tool[_ -]?choice|thinking|reasoning|function[_ ]call\b`)
	refusesThinking = regexp.MustCompile(`(?i)chat_template|extra (inputs|fields)|unrecogni[sz]ed|unknown (field|param|arg|name)`)
	refusesTools    = regexp.MustCompile(`(?i)(support|allow|enable|recogni[sz]e)[^.]{0,60}\b(tools?|functions?)\b|\b(tools?|functions?)\b[^.]{0,60}(support|allow|enable|recogni[sz]e)`)
	refusesJSON     = regexp.MustCompile(`(?i)response_?format|json[_ ](object|mode|schema)`)
)

func (r rung) refused(err *bot.ModelError) bool {
	if err.Class != bot.Malformed {
		return false
	}
	text := err.Err.Error()
	ways := []*regexp.Regexp{refusesChoice, refusesTools}
	switch r {
	case rungNoThinking:
		ways = append(ways, refusesThinking)
	case rungJSON:
		ways = []*regexp.Regexp{refusesJSON}
	}
	for _, w := range ways {
		if w.MatchString(text) {
			return true
		}
	}
	return false
}

// forced walks down the rungs until the tool was called. A rung that the provider refuses is remembered and not tried
// again; an answer in prose only makes this one call go on to the rungs that tell the model in words. What those answers
// took is part of what is returned, with an error too.
func (s *slot) forced() (bot.Response, *bot.ModelError) {
	m, r := s.m, s.Request
	var spent bot.Response // Usage and Cost of answers that were no use
	for way := rung(m.rung.Load()); ; {
		a, err := s.retry(way)
		resp := m.response(a)
		resp.Usage, resp.Cost = resp.Usage.Add(spent.Usage), resp.Cost+spent.Cost
		spent = bot.Response{Usage: resp.Usage, Cost: resp.Cost}
		if err != nil {
			if !way.refused(err) || way == rungText {
				return spent, err
			}
			m.rung.CompareAndSwap(int32(way), int32(way+1))
			way++
			continue
		}
		resp.Forced = way.String()
		salvage(&resp, r)
		if called(resp, r.Force) || resp.Finish == bot.FinishLength || resp.Finish == bot.FinishFilter || way >= rungJSON {
			return resp, nil
		}
		way = max(way+1, rungAuto)
	}
}

func called(resp bot.Response, name string) bool {
	for _, c := range resp.ToolCalls {
		if c.Name == name {
			return true
		}
	}
	return false
}

// salvage turns an answer that is the tool's arguments, written out as JSON, into the call that was meant.
func salvage(resp *bot.Response, r bot.Request) {
	if len(resp.ToolCalls) > 0 {
		return
	}
	args, ok := objectIn(resp.Text)
	if !ok || !fits(args, schemaOf(r.Tools, r.Force)) {
		return
	}
	resp.Text, resp.Finish = "", bot.FinishTools
	resp.ToolCalls = []sessions.ToolCall{{ID: newCallID(), Name: r.Force, Arguments: args}}
}

// objectIn finds a JSON object in text: the whole of it, or what stands between the first brace and the last.
func objectIn(text string) (string, bool) {
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if from < 0 || to < from || !json.Valid([]byte(text[from:to+1])) {
		return "", false
	}
	return text[from : to+1], true
}

// fits says whether the object has a member that the schema knows, so that a model's other JSON is not taken for it.
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

func schemaOf(tools []bot.ToolSpec, name string) map[string]any {
	for _, t := range tools {
		if t.Name == name {
			return t.Schema
		}
	}
	return nil
}

// force shapes the request for a rung.
func (cl *call) force(r bot.Request, way rung) {
	if way == rungNamed {
		cl.req.ToolChoice = goopenai.ToolChoice{
			Type: goopenai.ToolTypeFunction, Function: goopenai.ToolFunction{Name: r.Force},
		}
		return
	}
	only := cl.req.Tools[:0:0]
	for _, t := range cl.req.Tools {
		if t.Function.Name == r.Force {
			only = append(only, t)
		}
	}
	cl.req.Tools = only
	switch way {
	case rungNoThinking:
		// Top level for hosted Qwen, the template's arguments for vLLM and SGLang.
		cl.extra["enable_thinking"] = false
		cl.extra["chat_template_kwargs"] = map[string]any{"enable_thinking": false}
		cl.req.ToolChoice = "required"
	case rungRequired:
		cl.req.ToolChoice = "required"
	case rungAuto:
		cl.instruct(fmt.Sprintf("Call the tool %s now, exactly once. Do not write any text: an answer without this call is an error.", r.Force))
	case rungJSON:
		cl.req.ResponseFormat = &goopenai.ChatCompletionResponseFormat{Type: goopenai.ChatCompletionResponseFormatTypeJSONObject}
		fallthrough
	case rungText:
		cl.req.Tools = nil
		schema, _ := json.Marshal(schemaOf(r.Tools, r.Force)) // a map of plain values: it was sent as a tool before
		cl.instruct(fmt.Sprintf("Answer with one JSON object and nothing else. It is the arguments of %s, by this JSON schema:\n%s", r.Force, schema))
	}
}

func (cl *call) instruct(text string) {
	cl.req.Messages = append(cl.req.Messages, goopenai.ChatCompletionMessage{Role: goopenai.ChatMessageRoleUser, Content: text})
}
