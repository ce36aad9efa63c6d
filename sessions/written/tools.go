package written

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"ebb/sessions"
)

// tools are the offered tools. They find the calls in the text of a model, and read them.
type tools []Tool

var callHead = regexp.MustCompile(`^(?:functions?[.:]|call:)?([A-Za-z_][\w.-]*)(?::\d+)?\s*(?:[\n<{\[(>"]|$)`)

const maxName = 100 // bytes before the arguments of a call

// beginsCall reports whether text behind a mark has the form of a call.
func (ts tools) beginsCall(s string) (begins, wait bool) {
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
		return !strings.HasSuffix(m[0], m[1]) || len(s) > len(m[0]) || ts.offers(m[1]) && len(s) == len(m[0]), len(s) < maxName && len(m[0]) == len(s)
	}
	return false, len(s) < maxName && !strings.ContainsAny(s, " \n") && s[0] < 0x80
}

func (ts tools) offers(name string) bool {
	return slices.ContainsFunc(ts, func(t Tool) bool { return t.Name == name })
}

// beginsName reports whether a text is the beginning of a call that is cut: another mark of calls, or a part of a tool's name.
func (ts tools) beginsName(s string) bool {
	s = strings.TrimSpace(s)
	m, n, _ := findMark(s)
	return n > 0 && m.place == atCall ||
		s != "" && slices.ContainsFunc(ts, func(t Tool) bool { return strings.HasPrefix(t.Name, s) || strings.HasPrefix("functions."+t.Name, s) })
}

func (ts tools) schema(name string) map[string]any {
	for _, t := range ts {
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
func (ts tools) parse(s string) (calls []sessions.ToolCall, ok bool) {
	s = strings.NewReplacer("｜", "|", "▁", "_", "<｜DSML｜", "<", "</｜DSML｜", "</").Replace(s)
	if parameter.MatchString(s) || keyValue.MatchString(s) {
		return ts.parseTags(s)
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
		} else if name := ts.nameBefore(s[before:i]); name != "" && value[0] == '{' {
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
	return calls, ts.allOffered(calls)
}

func (ts tools) allOffered(calls []sessions.ToolCall) bool {
	return len(calls) > 0 && !slices.ContainsFunc(calls, func(c sessions.ToolCall) bool { return !ts.offers(c.Name) })
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
func (ts tools) nameBefore(s string) string {
	names := anyName.FindAllString(s, -1)
	for _, n := range slices.Backward(names) {
		if ts.offers(n) {
			return n
		}
	}
	return ""
}

// parseTags reads calls whose arguments are tags.
func (ts tools) parseTags(s string) (calls []sessions.ToolCall, ok bool) {
	starts := nameAttr.FindAllStringSubmatchIndex(s, -1)
	if len(starts) == 0 {
		for _, n := range anyName.FindAllStringIndex(s[:strings.Index(s, "<arg_key>")+1], -1) {
			if ts.offers(s[n[0]:n[1]]) {
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
		schema, _ := ts.schema(name)["properties"].(map[string]any)
		for _, m := range append(parameter.FindAllStringSubmatch(s[at[1]:end], -1), keyValue.FindAllStringSubmatch(s[at[1]:end], -1)...) {
			args[strings.TrimSpace(m[1])] = valueOf(strings.Trim(m[2], "\r\n"), schema[strings.TrimSpace(m[1])])
		}
		b, _ := json.Marshal(args)
		calls = append(calls, sessions.ToolCall{Name: name, Arguments: string(b)})
	}
	return calls, ts.allOffered(calls)
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
