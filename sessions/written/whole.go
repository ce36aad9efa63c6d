package written

import (
	"regexp"
	"slices"
	"strings"

	"ebb/sessions"
)

var (
	// callKey begins the JSON of a call.
	callKey  = regexp.MustCompile(`^(?:\[\s*)?\{\s*"(?:name|function|function_call|tool|tool_name|tool_calls|type|id|arguments|parameters|action|action_input|recipient_name)"`)
	halfKey  = regexp.MustCompile(`^(?:\[\s*)?(?:\{\s*(?:"[a-z_]{0,16})?)?$`)
	fence    = regexp.MustCompile("^```[A-Za-z_]*[ \t]*\r?\n\\s*")
	half     = regexp.MustCompile("^`{1,3}(?:[A-Za-z_]{0,20}[ \t]*\r?(?:\n\\s*)?)?$")
	fenceEnd = regexp.MustCompile("^\\s*\n?```[ \t]*\\s*$")
)

// wholeCall takes a block of code that is the whole answer and has nothing but calls. Other JSON is an answer.
func (f *Filter) wholeCall(final bool) (n int, is, wait bool) {
	s := f.buf
	if !final && half.MatchString(s) {
		return 0, false, true
	}
	at := len(fence.FindString(s))
	if at == 0 || len(f.cfg.Tools) == 0 {
		return 0, false, false
	}
	body, code := s[at:], strings.HasPrefix(s, "```tool_code")
	if !code && !callKey.MatchString(body) {
		return 0, false, !final && halfKey.MatchString(body)
	}
	if code {
		if end := strings.Index(body, "```"); end < 0 || strings.TrimSpace(body[end+3:]) != "" || !final {
			return 0, false, !final && (end < 0 || strings.TrimSpace(body[end+3:]) == "")
		}
		if calls, ok := f.parse(s); ok {
			f.take(calls, true)
			return len(s), true, false
		}
		return 0, false, false
	}
	value, n := jsonAt(body)
	if n == 0 {
		return 0, false, !final && isCut(body)
	}
	calls, rest := callsIn(value), body[n:]
	switch {
	case !f.allOffered(calls):
		return 0, false, false
	case !final:
		return 0, false, strings.Trim(rest, "` \t\r\n") == ""
	case strings.TrimSpace(rest) == "" || fenceEnd.MatchString(rest):
		f.take(calls, true)
		return len(s), true, false
	}
	return 0, false, false
}

var (
	calledLine = regexp.MustCompile(`^(?:functions\.|Action: ?|✿FUNCTION✿: ?)([A-Za-z_][\w-]{0,80})(?::\d{1,6})?\s?\s?(?:(?:Action Input|✿ARGS✿):\s?)?(\{)`)
	halfCalled = regexp.MustCompile(`^(?:functions\.|Action: ?|✿FUNCTION✿: ?)(?:[A-Za-z_][\w-]{0,80}(?::\d{0,6})?\s?\s?(?:[A✿][^\n:{]{0,12}:?\s?)?)?$`)
	callLeads  = []string{"functions.", "Action:", "✿FUNCTION✿:"}
)

// lineCall takes JSON that begins a line, outside code, and calls an offered tool, also behind a name as Kimi, ReAct and Qwen-Agent
// write it. The words behind it are dropped.
func (f *Filter) lineCall(final bool) (n int, is, wait bool) {
	s := f.buf
	if len(f.cfg.Tools) == 0 {
		return 0, false, false
	}
	if m := calledLine.FindStringSubmatchIndex(s); m != nil && f.offers(s[m[2]:m[3]]) {
		value, n := jsonAt(s[m[4]:])
		if n == 0 {
			return f.cutCall(s, s[m[4]:], final)
		}
		calls, ok := f.parse(s[:m[4]] + string(value))
		f.take(calls, ok)
		return m[4] + n, true, false
	}
	if n, is, wait := f.bareCall(s, final); is || wait {
		return n, is, wait
	}
	if !final && (beginsLead(s) || halfCalled.MatchString(s) || (s[0] == '{' || s[0] == '[') && halfKey.MatchString(s)) {
		return 0, false, true
	}
	if !callKey.MatchString(s) {
		return 0, false, false
	}
	value, n := jsonAt(s)
	if n == 0 {
		return f.cutCall(s, s, final)
	}
	calls := callsIn(value)
	if !f.allOffered(calls) {
		return 0, false, false
	}
	f.take(calls, true)
	return n, true, false
}

func beginsLead(s string) bool {
	return slices.ContainsFunc(callLeads, func(lead string) bool { return strings.HasPrefix(lead, s) })
}

// cutCall decides on a call without its end: more may come, else it is removed.
func (f *Filter) cutCall(s, value string, final bool) (n int, is, wait bool) {
	if !isCut(value) {
		return 0, false, false
	}
	named := slices.ContainsFunc(f.cfg.Tools, func(t Tool) bool { return strings.Contains(s, t.Name) })
	switch {
	case named && f.endless(s):
		return len(s), true, false
	case !final:
		return 0, false, true
	case named:
		f.take(nil, false)
		return len(s), true, false
	}
	return 0, false, false
}

var (
	channelLead = regexp.MustCompile(`^(?:assistant)?commentary to=functions\.`)
	halfChannel = regexp.MustCompile(`^(?:a(?:s(?:s(?:i(?:s(?:t(?:a(?:n(?:t)?)?)?)?)?)?)?)?)?(?:c(?:o(?:m(?:m(?:e(?:n(?:t(?:a(?:r(?:y(?: (?:t(?:o(?:=[a-z.]{0,10})?)?)?)?)?)?)?)?)?)?)?)?)?)?$`)
	beforeJSON  = regexp.MustCompile(`^(?:[ \t]|json|code|<\|[a-z_]{1,20}\|>|\r?\n){1,8}`)
	halfJSON    = regexp.MustCompile(`^(?:[ \t]|json|code|<\|[a-z_]{1,20}\|>|\r?\n){0,8}(?:js?o?|co?d?|<\|?[a-z_]{0,20}\|?)?$`)
	pyCall      = regexp.MustCompile(`^\(((?:\s*\w+\s*=\s*(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[\w.+-]+|\[[^\]\n]*\])\s*,?)+)\)\]?[ \t]*(?:\r?\n|$)`)
)

// bareCall takes a call without marks. GLM writes the name of a tool and JSON on the next line, gpt-oss the words of a channel before
// both, and Llama a line of Python.
func (f *Filter) bareCall(s string, final bool) (n int, is, wait bool) {
	lead := len(channelLead.FindString(s))
	if lead == 0 && !final && halfChannel.MatchString(s) {
		return 0, false, true
	}
	if lead == 0 && s[0] == '[' {
		lead = 1
	}
	for _, t := range f.cfg.Tools {
		rest, named := strings.CutPrefix(s[lead:], t.Name)
		switch {
		case !final && strings.HasPrefix(t.Name, s[lead:]):
			return 0, false, true
		case !named:
		case strings.HasPrefix(rest, "("):
			if n, is, wait := f.pythonCall(s, rest, final); is || wait {
				return n, is, wait
			}
		case lead != 1:
			if !final && halfJSON.MatchString(rest) {
				return 0, false, true
			}
			between := beforeJSON.FindString(rest)
			at := len(s) - len(rest) + len(between)
			if between == "" || lead == 0 && !strings.Contains(between, "\n") || at >= len(s) || s[at] != '{' {
				continue
			}
			value, size := jsonAt(s[at:])
			if size == 0 {
				return f.cutCall(s, s[at:], final)
			}
			f.take([]sessions.ToolCall{{Name: t.Name, Arguments: string(value)}}, true)
			return at + size, true, false
		}
	}
	return 0, false, false
}

// pythonCall decides on a line of Python, from its bracket. Behind an introduction it is an example, unless it ends the answer.
func (f *Filter) pythonCall(s, rest string, final bool) (n int, is, wait bool) {
	line, after, ended := strings.Cut(rest, "\n")
	if !ended && !final {
		return 0, false, len(line) < maxPython
	}
	if !pyCall.MatchString(line) {
		return 0, false, false
	}
	if f.introduced() && (!final || strings.TrimSpace(after) != "") {
		return 0, false, strings.TrimSpace(after) == ""
	}
	whole := s[:len(s)-len(after)]
	calls, ok := f.parse(strings.TrimSpace(whole))
	f.take(calls, ok)
	return len(whole), true, false
}

// maxPython bounds a line of Python that is waited for.
const maxPython = 2000
