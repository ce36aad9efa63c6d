package openai

import (
	"encoding/json"
	"maps"
	"slices"

	lru "github.com/hashicorp/golang-lru/v2"
	goopenai "github.com/sashabaranov/go-openai"

	"ebb/sessions/llm"
	"ebb/sessions/written"
)

// call is a request in one provider's form.
type call struct {
	body       map[string]any
	stream     bool
	way        rung
	tools      map[string]bool // offered names, which distinguish a repeated name from a piece of one
	shows      property        // properties whose opposite the request shows
	limit      int             // tokens of the answer; 0: none
	limitField string
	optional   []string // fields that an answer does not need
	checks     written.Config
}

const (
	maxTokens           = "max_tokens"
	maxCompletionTokens = "max_completion_tokens"
)

// leastOutput is the shortest limit of an answer that no provider is known to refuse.
const leastOutput = 64

// writer writes requests to one model.
type writer struct {
	conf  *ModelConfig
	tools encodedTools
}

// buildCall writes r in the given form; whole says that the model answers in one piece. It streams, so that silence is detected early, unless that
// loses the usage or is known to fail.
func (w writer) buildCall(r llm.Request, way rung, f forms, whole bool) call {
	if f.has(noTools) && way > rungNone {
		way = max(way, rungJSON)
	}
	cl := call{
		body: merge(map[string]any{}, w.conf.Params), way: way, tools: map[string]bool{}, checks: checksOf(r),
		stream: !f.has(noStream) && (r.Delta != nil || !whole && !f.has(noStreamOptions)),
	}
	cl.optional = slices.Sorted(maps.Keys(cl.body))
	var msgs []message
	msgs, cl.shows = f.writeMessages(r.Messages)
	cl.body["model"], cl.body["messages"] = w.conf.Model, msgs
	if cl.stream {
		cl.body["stream"] = true
		cl.shows |= noStream
		if !f.has(noStreamOptions) {
			cl.body["stream_options"] = goopenai.StreamOptions{IncludeUsage: true}
			cl.shows |= noStreamOptions
		}
	}
	if w.conf.Temperature != nil {
		cl.body["temperature"] = *w.conf.Temperature
		cl.optional = append(cl.optional, "temperature")
	}
	cl.setLimit(f, outputLimit(w.conf, r.MaxOutput, f), wantsCompletionTokens(w.conf.Model))
	w.addTools(&cl, r, f)
	if way > rungNone {
		cl.demandTool(r, msgs, f)
	}
	for _, field := range f.without {
		delete(cl.body, field)
		cl.optional = slices.DeleteFunc(cl.optional, func(s string) bool { return s == field })
	}
	return cl
}

// outputLimit is the requested limit, or the model's own without one, as far as the provider takes it.
func outputLimit(conf *ModelConfig, asked int, f forms) int {
	if asked <= 0 {
		asked = conf.MaxOutput
	}
	if asked > 0 {
		asked = max(asked, f.least)
	}
	for _, most := range []int{f.output, f.room} {
		if most > 0 && (asked <= 0 || asked > most) {
			asked = most
		}
	}
	return asked
}

// demandTool makes the model call the tool, in the way of the call.
func (cl *call) demandTool(r llm.Request, msgs []message, f forms) {
	d := cl.way.demandOf(r.Force, schemaOf(r.Tools, r.Force))
	merge(cl.body, d.fields)
	if d.replaces {
		delete(cl.body, "tools")
	}
	if d.ask == "" {
		return
	}
	last := message{Role: roleUser, Content: d.ask}
	if n := len(msgs); f.has(mergedRoles) && msgs[n-1].Role == roleUser && !f.has(textParts) {
		msgs[n-1] = joined(msgs[n-1], last)
	} else {
		f.finishMessage(&last)
		msgs = append(msgs, last)
	}
	cl.body["messages"] = msgs
}

func (cl *call) setLimit(f forms, limit int, completion bool) {
	if limit <= 0 || f.has(noLimit) {
		return
	}
	cl.limit, cl.limitField = limit, maxTokens
	if completion != f.has(otherLimit) {
		cl.limitField = maxCompletionTokens
	}
	cl.body[cl.limitField] = limit
	if limit < leastOutput {
		cl.shows |= longAnswer
	}
}

func (w writer) addTools(cl *call, r llm.Request, f forms) {
	if f.has(noTools) || len(r.Tools) == 0 {
		return
	}
	for _, t := range r.Tools {
		cl.tools[t.Name] = true
	}
	some := r.Tools
	if cl.way > rungNamed {
		at := slices.IndexFunc(some, func(t llm.ToolSpec) bool { return t.Name == r.Force })
		some = some[at : at+1]
	}
	cl.body["tools"] = w.tools.encodeTools(some, f.has(plainSchemas))
	cl.shows |= noTools | plainSchemas
}

// encodedTools remembers the JSON of tools, by the slice that has them: each turn of a conversation offers the same one.
type encodedTools struct {
	known *lru.Cache[toolsKey, json.RawMessage]
}

type toolsKey struct {
	first *llm.ToolSpec
	n     int
	plain bool
}

const maxEncodedTools = 64

func newEncodedTools() encodedTools {
	known, _ := lru.New[toolsKey, json.RawMessage](maxEncodedTools) // it fails only without a size
	return encodedTools{known}
}

// encodeTools returns the tools themselves if a schema is no JSON: the request fails then.
func (e encodedTools) encodeTools(all []llm.ToolSpec, plain bool) any {
	key := toolsKey{&all[0], len(all), plain}
	if known, ok := e.known.Get(key); ok {
		return known
	}
	tools := make([]goopenai.Tool, len(all))
	for i, t := range all {
		tools[i] = tool(t, plain)
	}
	b, err := json.Marshal(tools)
	if err != nil {
		return tools
	}
	e.known.Add(key, b)
	return json.RawMessage(b)
}

func tool(t llm.ToolSpec, plain bool) goopenai.Tool {
	var schema any = t.Schema
	if len(t.Schema) == 0 {
		schema = map[string]any{"type": "object", "properties": map[string]any{}}
	}
	if plain {
		schema = plainSchema(schema)
	}
	return goopenai.Tool{Type: goopenai.ToolTypeFunction, Function: &goopenai.FunctionDefinition{
		Name: t.Name, Description: t.Description, Parameters: schema,
	}}
}

var plainKeys = []string{"type", "description", "properties", "required", "items", "enum"}

// plainSchema keeps the keywords that every provider knows.
func plainSchema(v any) any {
	schema, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for _, k := range plainKeys {
		switch part, given := schema[k]; {
		case !given:
		case k == "properties":
			all := map[string]any{}
			fields, _ := part.(map[string]any)
			for name, field := range fields {
				all[name] = plainSchema(field)
			}
			out[k] = all
		case k == "items":
			out[k] = plainSchema(part)
		default:
			out[k] = part
		}
	}
	return out
}

// merge adds members to an object, deeply: other members of an object that both have stay.
func merge(into, from map[string]any) map[string]any {
	for k, v := range from {
		if part, ok := v.(map[string]any); ok {
			base, _ := into[k].(map[string]any)
			v = merge(maps.Clone(base), part)
		}
		if into == nil {
			into = map[string]any{}
		}
		into[k] = v
	}
	if into == nil {
		into = map[string]any{}
	}
	return into
}

// checksOf is how an answer is checked. Only the answers of turns are read by people; others are checked by their readers.
func checksOf(r llm.Request) written.Config {
	c := written.Config{
		Turn: r.Kind == llm.KindTurn || r.Kind == "" || r.Force != "", Self: r.Voices.Self, Speakers: r.Voices.Speakers, Askers: r.Voices.Askers, Question: r.Voices.Question,
	}
	for _, t := range r.Tools {
		c.Tools = append(c.Tools, written.Tool{Name: t.Name, Schema: t.Schema})
	}
	return c
}
