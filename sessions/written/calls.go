package written

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ebb/sessions"
)

// closing finds the end of a call; at is -1 for none.
func (m mark) closing(body string) (at, size int) {
	low := foldAll(body)
	at = -1
	for _, c := range m.close {
		if i := strings.Index(low.text, c); i >= 0 && (at < 0 || low.at[i] < at) {
			at = low.at[i]
			size = low.at[i+len(c)] - at
		}
	}
	return at, size
}

type foldedText struct {
	text string
	at   []int // offset in the text before it was folded, for each byte, and the end
}

func foldAll(s string) foldedText {
	var f foldedText
	var b strings.Builder
	for i, r := range s {
		one := string(folded(r))
		b.WriteString(one)
		for range len(one) {
			f.at = append(f.at, i)
		}
	}
	f.text, f.at = b.String(), append(f.at, len(s))
	return f
}

var callHead = regexp.MustCompile(`^(?:functions?[.:]|call:)?([A-Za-z_][\w.-]*)(?::\d+)?\s*(?:[\n<{\[(>"]|$)`)

const maxName = 100 // bytes before the arguments of a call

// beginsCall reports whether text behind a mark has the form of a call.
func (f *Filter) beginsCall(s string) (begins, wait bool) {
	s = strings.TrimLeft(s, " \t\r\n")
	if s == "" {
		return false, true
	}
	switch s[0] {
	case '{', '[', '<', '"', '`', '=':
		return true, false
	}
	if strings.HasPrefix(s, "to=") || strings.HasPrefix(s, "｜") {
		return true, false
	}
	if m := callHead.FindStringSubmatch(s); m != nil {
		return !strings.HasSuffix(m[0], m[1]) || len(s) > len(m[0]) || f.offers(m[1]) && len(s) == len(m[0]), len(s) < maxName && len(m[0]) == len(s)
	}
	return false, len(s) < maxName && !strings.ContainsAny(s, " \n") && s[0] < 0x80
}

func (f *Filter) offers(name string) bool {
	return slices.ContainsFunc(f.cfg.Tools, func(t Tool) bool { return t.Name == name })
}

// beginsName reports whether a text is the beginning of a call that is cut: another mark of calls, or a part of a tool's name.
func (f *Filter) beginsName(s string) bool {
	s = strings.TrimSpace(s)
	m, n, _ := findMark(s)
	return n > 0 && m.place == atCall ||
		s != "" && slices.ContainsFunc(f.cfg.Tools, func(t Tool) bool { return strings.HasPrefix(t.Name, s) || strings.HasPrefix("functions."+t.Name, s) })
}

func (c *Config) schema(name string) map[string]any {
	for _, t := range c.Tools {
		if t.Name == name {
			return t.Schema
		}
	}
	return nil
}

var (
	nameAttr  = regexp.MustCompile(`(?s)<(?:[a-z]+:)?(?:function=|invoke\s+name=|function\s+name=)"?([\w.-]+)"?`)
	parameter = regexp.MustCompile(`(?s)<(?:[a-z]+:)?parameter(?:=|\s+name=)"?([\w.-]+)"?[^>]*>(.*?)</(?:[a-z]+:)?parameter>`)
	keyValue  = regexp.MustCompile(`(?s)<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>`)
	anyName   = regexp.MustCompile(`[A-Za-z_][\w-]*`)
	python    = regexp.MustCompile(`(?s)^\W*(?:print\()?(?:default_api\.|functions\.)?([A-Za-z_][\w-]*)(?:\.call)?\((.*?)\)+\W*$`)
	pyArg     = regexp.MustCompile(`(?s)(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\w.+-]+|\[[^\]]*\])`)
)

// maxBroken bounds the brackets of a call that begin no JSON.
const maxBroken = 64

// parse reads all calls of a text. ok: each is a call of an offered tool with an object.
func (f *Filter) parse(s string) (calls []sessions.ToolCall, ok bool) {
	s = strings.NewReplacer("｜", "|", "▁", "_", "<｜DSML｜", "<", "</｜DSML｜", "</").Replace(s)
	if parameter.MatchString(s) || keyValue.MatchString(s) {
		return f.parseTags(s)
	}
	before, broken := 0, 0
	for i := 0; i < len(s) && broken < maxBroken; i++ {
		if s[i] != '{' && s[i] != '[' {
			continue
		}
		value, n := jsonAt(s[i:])
		if n == 0 {
			broken++
			continue
		}
		if found := callsIn(value); len(found) > 0 {
			calls = append(calls, found...)
		} else if name := f.nameBefore(s[before:i]); name != "" && value[0] == '{' {
			calls = append(calls, sessions.ToolCall{Name: name, Arguments: string(value)})
		}
		i += n - 1
		before = i + 1
	}
	if m := python.FindStringSubmatch(afterMarks(s)); len(calls) == 0 && m != nil {
		args := map[string]json.RawMessage{}
		for _, a := range pyArg.FindAllStringSubmatch(m[2], -1) {
			args[a[1]] = literal(a[2])
		}
		b, _ := json.Marshal(args)
		calls = append(calls, sessions.ToolCall{Name: m[1], Arguments: string(b)})
	}
	if m := nameAttr.FindStringSubmatch(s); len(calls) == 0 && m != nil && strings.Contains(s, "</") {
		calls = append(calls, sessions.ToolCall{Name: m[1], Arguments: "{}"})
	}
	return calls, f.allOffered(calls)
}

func (f *Filter) allOffered(calls []sessions.ToolCall) bool {
	return len(calls) > 0 && !slices.ContainsFunc(calls, func(c sessions.ToolCall) bool { return !f.offers(c.Name) })
}

var markRE = regexp.MustCompile("^\\s*(?:<\\|?[a-z_]+\\|?>|```[a-z_]*|\\[[a-z_]+\\])\\s*|\\s*(?:</?\\|?[a-z_]+\\|?>|```)\\s*$")

func afterMarks(s string) string { return markRE.ReplaceAllString(s, "") }

func literal(s string) json.RawMessage {
	if q := s[0]; q == '"' || q == '\'' {
		body := strings.NewReplacer(`\`+string(q), string(q), `\n`, "\n", `\\`, `\`).Replace(s[1 : len(s)-1])
		b, _ := json.Marshal(body)
		return b
	}
	switch s {
	case "True", "False":
		return json.RawMessage(strings.ToLower(s))
	case "None":
		return json.RawMessage("null")
	}
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	b, _ := json.Marshal(s)
	return b
}

// nameBefore is the last name of an offered tool, or of any, before its arguments.
func (f *Filter) nameBefore(s string) string {
	names := anyName.FindAllString(s, -1)
	for _, n := range slices.Backward(names) {
		if f.offers(n) {
			return n
		}
	}
	return ""
}

// parseTags reads calls whose arguments are tags.
func (f *Filter) parseTags(s string) (calls []sessions.ToolCall, ok bool) {
	starts := nameAttr.FindAllStringSubmatchIndex(s, -1)
	if len(starts) == 0 {
		for _, n := range anyName.FindAllStringIndex(s[:strings.Index(s, "<arg_key>")+1], -1) {
			if f.offers(s[n[0]:n[1]]) {
				starts = append(starts, []int{n[0], n[1], n[0], n[1]})
			}
		}
	}
	for i, at := range starts {
		end := len(s)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		name, args := s[at[2]:at[3]], map[string]json.RawMessage{}
		schema, _ := f.cfg.schema(name)["properties"].(map[string]any)
		for _, m := range append(parameter.FindAllStringSubmatch(s[at[1]:end], -1), keyValue.FindAllStringSubmatch(s[at[1]:end], -1)...) {
			args[strings.TrimSpace(m[1])] = valueOf(strings.Trim(m[2], "\r\n"), schema[strings.TrimSpace(m[1])])
		}
		b, _ := json.Marshal(args)
		calls = append(calls, sessions.ToolCall{Name: name, Arguments: string(b)})
	}
	return calls, f.allOffered(calls)
}

// valueOf is text for a string by the schema, else the JSON that it is.
func valueOf(s string, schema any) json.RawMessage {
	property, _ := schema.(map[string]any)
	if trimmed := strings.TrimSpace(s); property["type"] != "string" && json.Valid([]byte(trimmed)) {
		return json.RawMessage(trimmed)
	}
	b, _ := json.Marshal(s)
	return b
}

// jsonAt reads the value at the beginning of a text; n is 0 for none.
func jsonAt(s string) (value json.RawMessage, n int) {
	d := json.NewDecoder(strings.NewReader(s))
	if d.Decode(&value) != nil {
		return nil, 0
	}
	return value, int(d.InputOffset())
}

// isCut reports whether more text may complete a JSON value.
func isCut(s string) bool {
	var v json.RawMessage
	err := json.NewDecoder(strings.NewReader(s)).Decode(&v)
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// callsIn reads the calls of a JSON value in the forms of providers; nil: it has another form.
func callsIn(value json.RawMessage) []sessions.ToolCall {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) == nil {
		var calls []sessions.ToolCall
		for _, one := range list {
			found := callsIn(one)
			if len(found) == 0 {
				return nil
			}
			calls = append(calls, found...)
		}
		return calls
	}
	var o struct {
		Name, Tool, ToolName                       string
		Action                                     json.RawMessage
		ActionInput                                json.RawMessage `json:"action_input"`
		ToolUnder                                  string          `json:"tool_name"`
		Function                                   json.RawMessage `json:"function"`
		Call                                       json.RawMessage `json:"function_call"`
		Calls                                      json.RawMessage `json:"tool_calls"`
		Arguments, Parameters, Args, Input, Params json.RawMessage
		ToolInput                                  json.RawMessage `json:"tool_input"`
	}
	if json.Unmarshal(value, &o) != nil {
		return nil
	}
	for _, inner := range []json.RawMessage{o.Calls, o.Call, o.Function} {
		if len(inner) > 0 && (inner[0] == '{' || inner[0] == '[') {
			return callsIn(inner)
		}
	}
	name := o.Name
	for _, other := range []string{o.Tool, o.ToolName, o.ToolUnder, text(o.Function), text(o.Action)} {
		if name == "" {
			name = other
		}
	}
	name = strings.TrimPrefix(name, "functions.")
	for _, args := range []json.RawMessage{o.Arguments, o.Parameters, o.Args, o.Input, o.Params, o.ToolInput, o.ActionInput} {
		if s := text(args); s != "" {
			args = json.RawMessage(s)
		}
		var object map[string]json.RawMessage
		if name != "" && json.Unmarshal(args, &object) == nil && object != nil {
			return []sessions.ToolCall{{Name: name, Arguments: string(args)}}
		}
	}
	return nil
}

func text(raw json.RawMessage) string {
	s, err := strconv.Unquote(string(raw))
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
