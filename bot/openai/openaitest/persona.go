package openaitest

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
)

// Persona plays a helpful assistant by fixed rules, in the language of each message, so that tests and the demo need
// no model. It answers from the request or from memory_search, and says so when it does not know. It saves facts and sets
// reminders on request, extracts facts in a flush, and summarizes.
func Persona(r Request) Reply {
	switch r.Kind {
	case Flush:
		return flush(r)
	case Summary:
		return summarize(r)
	}
	before, asked := readAll(r)
	recalled := recalledIn(before)
	before = only(before, "context", "memory", "summary")
	if len(asked) == 0 {
		return Text("我在，请说。")
	}
	turn := readTurn(r)
	results := append(recalled, turn.found...)
	if calls := wanted(r, append(results, before...), asked, turn); len(calls) > 0 {
		reply := newReply()
		for _, c := range calls {
			reply = reply.Call(c.Name, c.Arguments)
		}
		return reply
	}
	var out []string
	for _, s := range asked {
		if line, ok := outsideAnswer(s, turn); ok {
			out = append(out, line)
		} else if line := answerTo(s, before, asked, results, turn); line != "" {
			out = append(out, line)
		}
	}
	if seen := r.Seen(); seen != "" {
		out = append(out, seen)
	}
	return Text(strings.Join(out, "\n\n"))
}

// turnResults are the tool results since the last answer.
type turnResults struct {
	found     []said            // lines of searches
	saved     bool              // memory_save succeeded
	reminders map[string]string // results of remind by their arguments
	tried     map[string]bool   // names of called tools
	outside   map[string]string // results of tools of other programs by name
	search    string            // result of the search for tools
}

func readTurn(r Request) turnResults {
	var turn turnResults
	calls := map[string]Call{}
	clear := func() {
		turn = turnResults{reminders: map[string]string{}, tried: map[string]bool{}, outside: map[string]string{}}
	}
	clear()
	for _, m := range r.Messages {
		switch m.Role {
		case "assistant":
			if len(m.ToolCalls) == 0 {
				clear()
			}
			for _, c := range m.ToolCalls {
				calls[c.ID], turn.tried[c.Name] = c, true
			}
		case "tool":
			turn.add(calls[m.ToolCallID], m.Content)
		}
	}
	return turn
}

func (t *turnResults) add(c Call, result string) {
	switch c.Name {
	case saveTool:
		t.saved = strings.HasPrefix(result, "saved")
		return
	case remindTool:
		t.reminders[c.Arguments] = result
		return
	case searchTool:
		t.search = result
		return
	}
	if strings.Contains(c.Name, "__") {
		t.outside[c.Name] = result
		return
	}
	for _, text := range texts(result) {
		if !noneRE.MatchString(text) && !strings.Contains(text, outdated) {
			t.found = append(t.found, hit(text, c.Name))
		}
	}
}

// placed matches a line of a result that begins with place, time and speaker.
var placed = regexp.MustCompile(`^(?:\S+ \(\d{4}-\d\d-\d\d \d\d:\d\d ?([^;]*?)(?:;.*?)?\)|#\d+ \d{4}-\d\d-\d\d \d\d:\d\d ([^:]*)): (.*)$`)

var noneRE = regexp.MustCompile(`(?i)^(?:error:|nothing found|no (?:results?|matches|hits)|没有找到|没找到|未找到)`)

const outdated = "; OUTDATED, corrected later"

// Recalled hits need no tool call.
func recalledIn(before []said) []said {
	var out []said
	for _, s := range only(before, "recall") {
		if line := bulletRE.ReplaceAllString(s.text, ""); placed.MatchString(line) && !strings.Contains(line, outdated) {
			out = append(out, hit(line, "memory_search"))
		}
	}
	return out
}

// The found text may name its speaker itself.
func hit(line, tool string) said {
	m := placed.FindStringSubmatch(line)
	if m == nil {
		return said{text: line, from: tool}
	}
	s := said{who: m[1] + m[2], text: m[3]}
	if s.who != "assistant" && !strings.HasPrefix(s.text, s.nick()+"：") {
		s.text = s.fact()
	}
	return said{text: s.text, from: tool}
}

// The result of a tool is lines, or JSON with strings.
func texts(content string) []string {
	var v any
	if json.Unmarshal([]byte(content), &v) == nil {
		if out := leaves(v); len(out) > 0 {
			return out
		}
	}
	var out []string
	for line := range strings.SplitSeq(content, "\n") {
		line = bulletRE.ReplaceAllString(strings.TrimSpace(line), "")
		var o map[string]any
		if json.Unmarshal([]byte(line), &o) == nil {
			out = append(out, leaves(o)...)
		} else if line != "" && !fenceOpen.MatchString(line) && !fenceClose.MatchString(line) {
			out = append(out, line)
		}
	}
	return out
}

// Only the content of objects counts.
func leaves(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = append(out, leaves(e)...)
		}
	case map[string]any:
		for _, k := range []string{"content", "text", "hits", "results", "events", "messages", "memories", "items"} {
			if e, ok := v[k]; ok {
				out = append(out, leaves(e)...)
			}
		}
	}
	return out
}

func wanted(r Request, before, asked []said, turn turnResults) []Call {
	var calls []Call
	tried := turn.tried
	for _, s := range asked {
		if args, ok := reminderOf(s); ok && r.Offers(remindTool) {
			if _, done := turn.reminders[args]; !done {
				calls = append(calls, Call{Name: remindTool, Arguments: args})
			}
			continue
		}
		if call, ok := findCall(r, s, turn); ok {
			calls = append(calls, call)
			continue
		}
		if call, ok := outsideCall(r, s); ok {
			if !tried[call.Name] {
				calls = append(calls, call)
			}
			continue
		}
		if rememberRE.MatchString(s.text) && r.Offers(saveTool) && !tried[saveTool] {
			calls = append(calls, Call{Name: saveTool, Arguments: saveArgs(schemaFor(r, saveTool), []said{{who: s.who, text: statements(s.text)}})})
			continue
		}
		if !isQuestion(s.text) || smallTalk(s.text) != "" {
			continue
		}
		if _, ok := best(s.text, known(before, asked, s)); ok {
			continue
		}
		for _, tool := range []string{"memory_search", "query_history"} {
			if r.Offers(tool) && !tried[tool] {
				calls = append(calls, Call{Name: tool, Arguments: searchArgs(schemaFor(r, tool), lookFor(tool, s.text))})
				break
			}
		}
	}
	return calls
}

// Memory ranks by similarity, the history matches words.
func lookFor(tool, question string) string {
	if tool != "query_history" {
		return question
	}
	longest := ""
	for _, f := range strings.FieldsFunc(asking.ReplaceAllString(question, " "), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' }) {
		if len(f) > len(longest) {
			longest = f
		}
	}
	return longest
}

func known(before, asked []said, s said) []said {
	var out []said
	out = append(out, before...)
	for _, a := range asked {
		if a != s {
			out = append(out, a)
		}
	}
	return out
}

func clip(s string, n int) string {
	if rs := []rune(s); len(rs) > n {
		return string(rs[:n]) + "…"
	}
	return s
}
