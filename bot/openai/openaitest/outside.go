package openaitest

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// outsideRE matches a request to call a tool of another program by its name, such as: 用工具 odd__echo {"text":"你好"}.
var outsideRE = regexp.MustCompile(`(?i)(?:用工具|use the tool)\s+(\S+__\S+)\s*(\{.*\})?`)

// searchTool finds tools that a request does not offer.
const searchTool = "tool_search"

// findRE matches a request to find a tool by words and to call it, such as: 找工具 查询天气 {"text":"杭州"}.
var findRE = regexp.MustCompile(`(?i)(?:找工具|find a tool for)\s+(\S+)\s*(\{.*\})?`)

// foundRE matches the first tool in a result of a search.
var foundRE = regexp.MustCompile(`(?m)^- (\S+__\S+): `)

// findCall returns the search that a text asks for, and behind it the call of the first find.
func findCall(r Request, s said, turn turnResults) (Call, bool) {
	m := findRE.FindStringSubmatch(s.text)
	if m == nil || !r.Offers(searchTool) {
		return Call{}, false
	}
	if !turn.tried[searchTool] {
		args, _ := json.Marshal(map[string]string{"query": m[1]})
		return Call{Name: searchTool, Arguments: string(args)}, true
	}
	found := foundRE.FindStringSubmatch(turn.search)
	if found == nil || turn.tried[found[1]] || !r.Offers(found[1]) {
		return Call{}, false
	}
	return Call{Name: found[1], Arguments: cmp.Or(m[2], "{}")}, true
}

// outsideCall returns the call that a text asks for.
func outsideCall(r Request, s said) (Call, bool) {
	m := outsideRE.FindStringSubmatch(s.text)
	if m == nil || !r.Offers(m[1]) {
		return Call{}, false
	}
	return Call{Name: m[1], Arguments: cmp.Or(m[2], "{}")}, true
}

// outsideAnswer reports the result of the tool that a text asks for.
func outsideAnswer(s said, turn turnResults) (string, bool) {
	m := outsideRE.FindStringSubmatch(s.text)
	if m == nil {
		if len(turn.outside) == 0 {
			return "没有找到合适的工具。", findRE.MatchString(s.text)
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
