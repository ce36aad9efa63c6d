package openaitest

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

func flush(r Request) Reply {
	before, asked := readAll(r)
	all := append(before, asked...)
	talk := only(all, inTranscript)
	if len(talk) == 0 { // a conversation that ends in an order to save, or notes to put into the tool
		talk = only(all, "context", "notes", "facts")
	}
	var fresh []said
	have := map[string]bool{}
	for _, s := range only(all, "known") {
		have[bulletRE.ReplaceAllString(s.text, "")] = true
	}
	for _, f := range facts(talk) {
		if !have[f.fact()] {
			fresh = append(fresh, f)
		}
	}
	tool := saveTool
	if len(r.Tools) > 0 && !r.Offers(saveTool) {
		tool = r.Tools[0].Name
	}
	args := saveArgs(schemaFor(r, tool), fresh)
	if len(r.Tools) == 0 {
		return Text(args)
	}
	return Calls(tool, args)
}

func schemaFor(r Request, tool string) map[string]any {
	for _, t := range r.Tools {
		if t.Name == tool {
			return t.Schema
		}
	}
	text := r.Last().Content
	var schema map[string]any
	if i := strings.IndexByte(text, '{'); i >= 0 {
		_ = json.Unmarshal([]byte(text[i:]), &schema)
	}
	return schema
}

// saveArgs fills in the schema: its array gets one fact an item, its boolean says that there is none.
func saveArgs(schema map[string]any, in []said) string {
	props, _ := schema["properties"].(map[string]any)
	args := map[string]any{}
	for name, p := range props {
		prop, _ := p.(map[string]any)
		switch prop["type"] {
		case "array":
			item, _ := prop["items"].(map[string]any)
			list := []any{}
			for _, f := range pack(in, number(prop["maxItems"], 20)) {
				list = append(list, saveItem(item, f))
			}
			args[name] = list
		case "boolean":
			args[name] = len(in) == 0
		}
	}
	if len(props) == 0 {
		args["facts"], args["nothing_to_save"] = []any{}, len(in) == 0
		for _, f := range in {
			args["facts"] = append(args["facts"].([]any), map[string]any{"content": f.fact(), "kind": "fact", "subject": f.who})
		}
	}
	b, _ := json.Marshal(args)
	return string(b)
}

func pack(in []said, n int) []said {
	if len(in) <= n {
		return in
	}
	var out []said
	for i := range n {
		part := in[i*len(in)/n : (i+1)*len(in)/n]
		if len(part) == 1 {
			out = append(out, part[0])
			continue
		}
		var texts []string
		for _, f := range part {
			texts = append(texts, strings.TrimRight(f.fact(), "。；; "))
		}
		out = append(out, said{text: strings.Join(texts, "；")})
	}
	return out
}

func number(v any, otherwise int) int {
	if f, ok := v.(float64); ok && f >= 1 {
		return int(f)
	}
	return otherwise
}

func saveItem(schema map[string]any, f said) any {
	if schema["type"] == "string" {
		return f.fact()
	}
	props, _ := schema["properties"].(map[string]any)
	item := map[string]any{}
	for name, p := range props {
		prop, _ := p.(map[string]any)
		enum, _ := prop["enum"].([]any)
		switch {
		case len(enum) > 0:
			item[name] = pick(enum, kindOfFact(f.text))
		case name == "content" || name == "text" || name == "fact":
			item[name] = f.fact()
		case name == "subject" || name == "speaker" || name == "who":
			item[name] = f.who
		}
	}
	return item
}

func pick(enum []any, want string) any {
	if slices.Contains(enum, any(want)) {
		return want
	}
	return enum[0]
}

var kindsOfFacts = []struct {
	re   *regexp.Regexp
	kind string
}{
	{regexp.MustCompile(`(?i)偏好|喜欢|\bprefer`), "preference"},
	{regexp.MustCompile(`我叫|我是`), "profile"},
	{regexp.MustCompile(`(?i)决定|约定|定在|改为|改到|\bdecid`), "decision"},
	{regexp.MustCompile(`(?i)负责|截止|到期|待办|\bdeadline|\bdue\b|\bowner`), "task"},
}

func kindOfFact(text string) string {
	for _, k := range kindsOfFacts {
		if k.re.MatchString(text) {
			return k.kind
		}
	}
	return "fact"
}

func searchArgs(schema map[string]any, question string) string {
	props, _ := schema["properties"].(map[string]any)
	args := map[string]any{}
	for _, name := range []string{"query", "q", "question", "keywords", "keyword", "text", "pattern"} {
		if p, ok := props[name].(map[string]any); ok && len(args) == 0 {
			args[name] = question
			if p["type"] == "array" {
				args[name] = []string{question}
			}
		}
	}
	if len(args) == 0 {
		args["query"] = question
	}
	b, _ := json.Marshal(args)
	return string(b)
}
