package written

import (
	"regexp"
	"slices"
	"strings"

	"ebb/sessions"
)

// calls decides on the calls that a text begins with. A call is held back to its end, so loops are looked for in it, too.
type calls struct {
	tools tools
	held  held // text that is undecided since it may be a call
	words int  // marks without an end that begin no call
}

// forget drops the text that is held back.
func (c *calls) forget() {
	if c.held.looked > 0 {
		c.held = held{}
	}
}

// maxWords bounds the marks without an end that are looked at: each look reads the rest of the text.
const maxWords = 8

// marked decides on a call behind a mark of n bytes.
func (c *calls) marked(s string, m mark, n int, final bool) decision {
	begins, wait := c.tools.beginsCall(s[n:])
	if wait && !final {
		return open
	}
	if !begins || c.words > maxWords {
		return words(n)
	}
	end := len(s)
	at, size := m.closing(s[n:])
	switch {
	case at >= 0:
		end = n + at + size
	case c.held.loops(s):
		return looped(end)
	case !final:
		return open
	}
	if at >= 0 && strings.TrimSpace(s[n:n+at]) == "" {
		return words(end) // words about a pair of marks
	}
	if c.held.loops(s[:end]) {
		return looped(end)
	}
	found, ok := c.tools.parse(s[:end])
	if !ok && at < 0 && !c.tools.beginsName(s[n:]) && !strings.ContainsAny(s[n:], "{[") && !strings.Contains(s[n:], "<parameter") && !strings.Contains(s[n:], "<arg_") {
		c.words++
		return words(n) // words about a mark
	}
	return called(end, found, ok)
}

var (
	// callKey begins the JSON of a call.
	callKey  = regexp.MustCompile(`^(?:\[\s*)?\{\s*"(?:name|function|function_call|tool|tool_name|tool_calls|type|id|arguments|parameters|action|action_input|recipient_name)"`)
	halfKey  = regexp.MustCompile(`^(?:\[\s*)?(?:\{\s*(?:"[a-z_]{0,16})?)?$`)
	fence    = regexp.MustCompile("^```[A-Za-z_]*[ \t]*\r?\n\\s*")
	half     = regexp.MustCompile("^`{1,3}(?:[A-Za-z_]{0,20}[ \t]*\r?(?:\n\\s*)?)?$")
	fenceEnd = regexp.MustCompile("^\\s*\n?```[ \t]*\\s*$")
)

// whole takes a block of code that is the whole answer and has nothing but calls. Other JSON is an answer.
func (c *calls) whole(s string, final bool) decision {
	if !final && half.MatchString(s) {
		return open
	}
	at := len(fence.FindString(s))
	if at == 0 || len(c.tools) == 0 {
		return other
	}
	body, code := s[at:], strings.HasPrefix(s, "```tool_code")
	if !code && !callKey.MatchString(body) {
		return openIf(!final && halfKey.MatchString(body))
	}
	if code {
		if end := strings.Index(body, "```"); end < 0 || strings.TrimSpace(body[end+3:]) != "" || !final {
			return openIf(!final && (end < 0 || strings.TrimSpace(body[end+3:]) == ""))
		}
		if found, ok := c.tools.parse(s); ok {
			return called(len(s), found, true)
		}
		return other
	}
	value, n := jsonAt(body)
	if n == 0 {
		return openIf(!final && isCut(body))
	}
	found, rest := callsIn(value), body[n:]
	switch {
	case !c.tools.allOffered(found):
		return other
	case !final:
		return openIf(strings.Trim(rest, "` \t\r\n") == "")
	case strings.TrimSpace(rest) == "" || fenceEnd.MatchString(rest):
		return called(len(s), found, true)
	}
	return other
}

var (
	calledLine = regexp.MustCompile(`^(?:functions\.|Action: ?|✿FUNCTION✿: ?)([A-Za-z_][\w-]{0,80})(?::\d{1,6})?\s?\s?(?:(?:Action Input|✿ARGS✿):\s?)?(\{)`)
	halfCalled = regexp.MustCompile(`^(?:functions\.|Action: ?|✿FUNCTION✿: ?)(?:[A-Za-z_][\w-]{0,80}(?::\d{0,6})?\s?\s?(?:[A✿][^\n:{]{0,12}:?\s?)?)?$`)
	callLeads  = []string{"functions.", "Action:", "✿FUNCTION✿:"}
)

// line takes JSON that begins a line, outside code, and calls an offered tool, also behind a name as Kimi, ReAct and Qwen-Agent
// write it. The words behind it are dropped.
func (c *calls) line(s string, final bool, l *lines) decision {
	if len(c.tools) == 0 {
		return other
	}
	if m := calledLine.FindStringSubmatchIndex(s); m != nil && c.tools.offers(s[m[2]:m[3]]) {
		value, n := jsonAt(s[m[4]:])
		if n == 0 {
			return c.cut(s, s[m[4]:], final)
		}
		found, ok := c.tools.parse(s[:m[4]] + string(value))
		return called(m[4]+n, found, ok)
	}
	if d := c.bare(s, final, l); d.outcome != isOther {
		return d
	}
	if !final && (beginsLead(s) || halfCalled.MatchString(s) || (s[0] == '{' || s[0] == '[') && halfKey.MatchString(s)) {
		return open
	}
	if !callKey.MatchString(s) {
		return other
	}
	value, n := jsonAt(s)
	if n == 0 {
		return c.cut(s, s, final)
	}
	found := callsIn(value)
	if !c.tools.allOffered(found) {
		return other
	}
	return called(n, found, true)
}

func beginsLead(s string) bool {
	return slices.ContainsFunc(callLeads, func(lead string) bool { return strings.HasPrefix(lead, s) })
}

// cut decides on a call without its end: more may come, else it is removed.
func (c *calls) cut(s, value string, final bool) decision {
	if !isCut(value) {
		return other
	}
	named := slices.ContainsFunc(c.tools, func(t Tool) bool { return strings.Contains(s, t.Name) })
	switch {
	case named && c.held.loops(s):
		return looped(len(s))
	case !final:
		return open
	case named:
		return called(len(s), nil, false)
	}
	return other
}

var (
	channelLead = regexp.MustCompile(`^(?:assistant)?commentary to=functions\.`)
	halfChannel = regexp.MustCompile(`^(?:a(?:s(?:s(?:i(?:s(?:t(?:a(?:n(?:t)?)?)?)?)?)?)?)?)?(?:c(?:o(?:m(?:m(?:e(?:n(?:t(?:a(?:r(?:y(?: (?:t(?:o(?:=[a-z.]{0,10})?)?)?)?)?)?)?)?)?)?)?)?)?)?$`)
	beforeJSON  = regexp.MustCompile(`^(?:[ \t]|json|code|<\|[a-z_]{1,20}\|>|\r?\n){1,8}`)
	halfJSON    = regexp.MustCompile(`^(?:[ \t]|json|code|<\|[a-z_]{1,20}\|>|\r?\n){0,8}(?:js?o?|co?d?|<\|?[a-z_]{0,20}\|?)?$`)
	pyCall      = regexp.MustCompile(`^\(((?:\s*\w+\s*=\s*(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[\w.+-]+|\[[^\]\n]*\])\s*,?)+)\)\]?[ \t]*(?:\r?\n|$)`)
)

// bare takes a call without marks. GLM writes the name of a tool and JSON on the next line, gpt-oss the words of a channel before
// both, and Llama a line of Python.
func (c *calls) bare(s string, final bool, l *lines) decision {
	lead := len(channelLead.FindString(s))
	if lead == 0 && !final && halfChannel.MatchString(s) {
		return open
	}
	if lead == 0 && s[0] == '[' {
		lead = 1
	}
	for _, t := range c.tools {
		rest, named := strings.CutPrefix(s[lead:], t.Name)
		switch {
		case !final && strings.HasPrefix(t.Name, s[lead:]):
			return open
		case !named:
		case strings.HasPrefix(rest, "("):
			if d := c.python(s, rest, final, l); d.outcome != isOther {
				return d
			}
		case lead != 1:
			if !final && halfJSON.MatchString(rest) {
				return open
			}
			between := beforeJSON.FindString(rest)
			at := len(s) - len(rest) + len(between)
			if between == "" || lead == 0 && !strings.Contains(between, "\n") || at >= len(s) || s[at] != '{' {
				continue
			}
			value, size := jsonAt(s[at:])
			if size == 0 {
				return c.cut(s, s[at:], final)
			}
			return called(at+size, []sessions.ToolCall{{Name: t.Name, Arguments: string(value)}}, true)
		}
	}
	return other
}

// python decides on a line of Python, from its bracket. Behind an introduction it is an example, unless it ends the answer.
func (c *calls) python(s, rest string, final bool, l *lines) decision {
	line, after, ended := strings.Cut(rest, "\n")
	if !ended && !final {
		return openIf(len(line) < maxPython)
	}
	if !pyCall.MatchString(line) {
		return other
	}
	if l.introduced() && (!final || strings.TrimSpace(after) != "") {
		return openIf(strings.TrimSpace(after) == "")
	}
	whole := s[:len(s)-len(after)]
	found, ok := c.tools.parse(strings.TrimSpace(whole))
	return called(len(whole), found, ok)
}

// maxPython bounds a line of Python that is waited for.
const maxPython = 2000
