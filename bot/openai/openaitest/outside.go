package openaitest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// outsideRE matches a request to call a tool of another program by its name, such as: 用工具 odd__echo {"text":"你好"}.
var outsideRE = regexp.MustCompile(`(?i)(?:用工具|use the tool)\s+(\S+__\S+)\s*(\{.*\})?`)

// outsideCall returns the call that a text asks for.
func outsideCall(r Request, s said) (Call, bool) {
	m := outsideRE.FindStringSubmatch(s.text)
	if m == nil || !r.Offers(m[1]) {
		return Call{}, false
	}
	args := m[2]
	if args == "" {
		args = "{}"
	}
	return Call{Name: m[1], Arguments: args}, true
}

// outsideAnswer reports the result of the tool that a text asks for.
func outsideAnswer(s said, turn turnResults) (string, bool) {
	m := outsideRE.FindStringSubmatch(s.text)
	if m == nil {
		if len(turn.outside) == 0 {
			return "", false
		}
		var parts []string // results of calls that the turn began with
		for _, name := range slices.Sorted(maps.Keys(turn.outside)) {
			first, _, _ := strings.Cut(turn.outside[name], "\n")
			parts = append(parts, name+" 返回："+clip(first, 200))
		}
		return strings.Join(parts, "\n"), true
	}
	result, called := turn.outside[m[1]]
	if !called {
		return "没有名为 " + m[1] + " 的工具。", true
	}
	first, _, _ := strings.Cut(result, "\n")
	return m[1] + " 返回：" + clip(first, 200), true
}
