package config

import (
	"strings"
	"testing"
)

func serverFile(server string) string { return `{"tools": {"mcp": [{` + server + `}]}}` }

// Each mistake in a server of tools is named with its field and what was expected.
func TestMistakesInServersOfTools(t *testing.T) {
	t.Parallel()
	for _, tt := range []errorCase{
		{"no way to it", `{"tools": {"mcp": [^{"name": "a"}]}}`, "tools.mcp[0]: has neither command nor url, want one of the two"},
		{"two ways to it", `{"tools": {"mcp": [^{"name": "a", "command": "x", "url": "https://example.com"}]}}`, "tools.mcp[0]: has both command and url"},
		{"no name", serverFile(`"name": ^"", "command": "x"`), "tools.mcp[0].name: is empty, want a name for its tools"},
		{"name with the separator", serverFile(`"name": ^"a__b", "command": "x"`), `tools.mcp[0].name: got "a__b", want letters`},
		{"name of a built-in tool", serverFile(`"name": ^"memory_save", "command": "x"`), `tools.mcp[0].name: got "memory_save", want another name than that of a built-in tool`},
		{"variable without a name", serverFile(`"name": "a", "command": "x", "env": ^{"A=B": "c"}`), `tools.mcp[0].env: got "A=B", want the name of a variable`},
		{"header's name", serverFile(`"name": "a", "url": "https://example.com", "headers": ^{"X Key": "c"}`), `tools.mcp[0].headers: got "X Key", want the name of an HTTP header`},
		{"header of two lines", serverFile(`"name": "a", "url": "https://example.com", "headers": ^{"X-Key": "c\nd"}`), `tools.mcp[0].headers: got a value of "X-Key" with control characters, want one line`},
		{"pattern", serverFile(`"name": "a", "command": "x", "allow": [^"[a"]`), `tools.mcp[0].allow[0]: got "[a", want the name of a tool`},
		{"everyone with a person's key", serverFile(`"name": "a", "command": "x", "identity": "person", "groups": [^"*"]`), `tools.mcp[0].groups[0]: got "*" with identity "person"`},
		{"identity", serverFile(`"name": "a", "command": "x", "identity": ^"me"`), `tools.mcp[0].identity: got "me", want`},
		{"time of a call", serverFile(`"name": "a", "command": "x", "timeout": ^"1ms"`), `tools.mcp[0].timeout: got 1ms, want at least 1s`},
		{"unknown key", serverFile(`"name": "a", "command": "x", ^"alow": []`), `tools.mcp[0].alow: no such key, did you mean "allow"?`},
	} {
		t.Run(tt.name, tt.run)
	}
}

// A list of tools that names a server for a conversation that its groups leave out offers nothing, and the model says that it has no such tool.
func TestToolsOfUnservedGroupsAreWarnedOf(t *testing.T) {
	t.Parallel()
	file := func(server, tools string) string {
		return `{"groups": {"cidA": {"tools": [` + tools + `]}}, "tools": {"mcp": [{"name": "files", "command": "x"` + server + `}]}}`
	}
	for name, tt := range map[string]struct{ server, tools, want string }{
		"the server":          {`, "groups": ["cidB"]`, `"memory_search", "files"`, `groups.cidA.tools[1]: "files" does nothing: the groups of its server in tools.mcp leave out this conversation`},
		"a tool of it":        {`, "groups": ["cidB"]`, `"files__read"`, `groups.cidA.tools[0]: "files__read" does nothing`},
		"served":              {`, "groups": ["cidB", "cidA"]`, `"files"`, ""},
		"served everywhere":   {"", `"files", "files__read"`, ""},
		"no list":             {`, "groups": ["cidB"]`, `"memory_search"`, ""},
		"a server of none":    {`, "groups": []`, `"memory_search"`, `tools.mcp[0].groups: an empty list serves no conversation`},
		"a server without it": {`, "allow": []`, `"memory_search"`, `tools.mcp[0].allow: an empty list offers no tool`},
	} {
		got := strings.Join(mustParse(t, file(tt.server, tt.tools)).Warnings, "\n")
		if (tt.want == "") != (got == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// A list of tools that names a server that is not configured is an error, because no call could name it.
func TestToolsOfUnknownServersAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []errorCase{
		{"the server", `{"groups": {"cidA": {"tools": [^"files"]}}}`, `groups.cidA.tools[0]: got "files", want`},
		{"a tool of it", `{"groups": {"cidA": {"tools": ["memory_search", ^"files__read"]}}}`, `groups.cidA.tools[1]: got "files__read", want`},
	} {
		t.Run(tt.name, tt.run)
	}
}
