package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"ebb/bot/chat"
	"ebb/bot/config/strict"
	"ebb/bot/tools"
	"ebb/bot/tools/mcp"
)

// ToolsConfig has the tools of other programs.
type ToolsConfig struct {
	// ApprovalTimeout is the time after which a call that waits for approval expires.
	ApprovalTimeout time.Duration `json:"approval_timeout"`
	// SchemaTokens bounds the schemas of servers' tools in a request. The model finds the tools beyond it by a search.
	SchemaTokens int `json:"schema_tokens"`
	// MCP are servers of the Model Context Protocol.
	MCP []MCPConfig `json:"mcp"`
}

// MCPConfig is one server: Command or URL is set.
type MCPConfig struct {
	// Name begins the names of its tools. Required, unique.
	Name string `json:"name"`
	// Command is a program that speaks MCP on its standard input and output, with Args. An argument may be an address with a password: none
	// is printed.
	Command string   `json:"command"`
	Args    []Secret `json:"args"`
	// Env has further variables of the program. It sees none of the bot's but PATH, HOME and the like.
	Env map[string]Secret `json:"env"`
	// URL is an endpoint of the streamable HTTP transport, with Headers.
	URL     Endpoint          `json:"url"`
	Headers map[string]Secret `json:"headers"`
	// Allow are patterns of the server's own names of tools that are offered.
	Allow []string `json:"allow"`
	// Confirm are patterns of those whose calls need an approval each.
	Confirm []string `json:"confirm"`
	// Groups are ids of conversations that may use the tools; "*" stands for all.
	Groups []string `json:"groups"`
	// Identity is "bot", or "person" for credentials of a person, which serve the private chats among Groups alone.
	Identity string `json:"identity"`
	// Timeout bounds a call.
	Timeout time.Duration `json:"timeout"`
	// MaxResultTokens is the size over which a request shows a part of a result.
	MaxResultTokens int `json:"max_result_tokens"`
}

// The identities of a server.
const (
	identityBot    = "bot"
	identityPerson = "person"
)

func defaultMCP() MCPConfig {
	return MCPConfig{
		Args: []Secret{}, Env: map[string]Secret{}, Headers: map[string]Secret{}, Allow: []string{"*"}, Confirm: []string{}, Groups: []string{"*"},
		Identity: identityBot, Timeout: 30 * time.Second, MaxResultTokens: 8000,
	}
}

// SetDefaults fills in a server of the list.
func (m *MCPConfig) SetDefaults(*strict.Source, string, int) { *m = defaultMCP() }

// serverName is what providers accept in the name of a tool, without the separator of server and tool.
var serverName = regexp.MustCompile(`^[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*$`)

// headerName is a token of RFC 9110.
var headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

const (
	maxServerName = 24
	maxServers    = 20
	// maxApprovalTimeout is a week: later no member remembers the question.
	maxApprovalTimeout = 7 * 24 * time.Hour
	minResultLimit     = 200
)

func (t *ToolsConfig) check(k *strict.Source) {
	k.Want(t.ApprovalTimeout >= time.Second && t.ApprovalTimeout <= maxApprovalTimeout, "tools.approval_timeout", strict.DurationText(t.ApprovalTimeout), "1s to %s", strict.DurationText(maxApprovalTimeout))
	k.Want(t.SchemaTokens >= 0, "tools.schema_tokens", t.SchemaTokens, "0 or more")
	k.Want(len(t.MCP) <= maxServers, "tools.mcp", len(t.MCP), "at most %d servers", maxServers)
	first := map[string]int{}
	for i := range t.MCP {
		m, at := &t.MCP[i], fmt.Sprintf("tools.mcp[%d]", i)
		m.check(k, at)
		if other, twice := first[m.Name]; twice {
			k.Fail(at+".name", "the same as that of tools.mcp[%d], want another one", other)
		}
		first[m.Name] = i
	}
}

func (m *MCPConfig) check(k *strict.Source, at string) {
	k.Required(at+".name", m.Name, "a name for its tools, such as files")
	k.Want(m.Name == "" || serverName.MatchString(m.Name) && len(m.Name) <= maxServerName, at+".name", strconv.Quote(m.Name),
		"letters, digits, - and single _, at most %d", maxServerName)
	k.Want(!slices.Contains(tools.Names(), m.Name), at+".name", strconv.Quote(m.Name), "another name than that of a built-in tool: groups.ID.tools could mean both")
	for _, name := range slices.Sorted(maps.Keys(m.Env)) {
		k.Want(name != "" && !strings.ContainsAny(name, "=\x00"), at+".env", strconv.Quote(name), "the name of a variable")
	}
	for _, name := range slices.Sorted(maps.Keys(m.Headers)) {
		k.Want(headerName.MatchString(name), at+".headers", strconv.Quote(name), "the name of an HTTP header")
		k.Want(!strings.ContainsFunc(m.Headers[name].Reveal(), unicode.IsControl), at+".headers", "a value of "+strconv.Quote(name)+" with control characters", "one line")
	}
	switch {
	case m.Command == "" && m.URL == "":
		k.Fail(at, "has neither command nor url, want one of the two")
	case m.Command != "" && m.URL != "":
		k.Fail(at, "has both command and url, want one of the two")
	case m.URL != "":
		address, _, _ := strings.Cut(m.URL.Reveal(), "?") // DingTalk's own servers take their key there
		wantURL(k, at+".url", address)
	}
	k.Advise(m.URL == "" || len(m.Env)+len(m.Args) == 0, at+".url", "args and env do nothing with it")
	k.Advise(m.Command == "" || len(m.Headers) == 0, at+".command", "headers do nothing with it")
	for key, patterns := range map[string][]string{"allow": m.Allow, "confirm": m.Confirm} {
		for i, p := range patterns {
			k.Want(mcp.ValidPattern(p), fmt.Sprintf("%s.%s[%d]", at, key, i), strconv.Quote(p), "the name of a tool, or a pattern with * and ?")
		}
	}
	k.Advise(len(m.Groups) > 0, at+".groups", "an empty list serves no conversation")
	k.Advise(len(m.Allow) > 0, at+".allow", "an empty list offers no tool")
	for i, id := range m.Groups {
		path := fmt.Sprintf("%s.groups[%d]", at, i)
		if id != "*" {
			wantConversation(k, path, id)
		} else if m.Identity == identityPerson {
			k.Fail(path, `got "*" with identity "person", want the ids of that person's private chats`)
		}
	}
	k.OneOf(at+".identity", m.Identity, []string{identityBot, identityPerson})
	k.Want(m.Timeout >= time.Second, at+".timeout", strict.DurationText(m.Timeout), "at least 1s")
	k.Want(m.MaxResultTokens >= minResultLimit, at+".max_result_tokens", m.MaxResultTokens, "at least %d", minResultLimit)
}

// names lists the servers.
func (t *ToolsConfig) names() []string {
	names := make([]string, len(t.MCP))
	for i, m := range t.MCP {
		names[i] = m.Name
	}
	return names
}

// serverOf returns the server of a name in a list of tools; nil: none.
func (t *ToolsConfig) serverOf(name string) *MCPConfig {
	at := slices.IndexFunc(t.MCP, func(m MCPConfig) bool { return m.Name == name || m.Name == chat.ServerOf(name) })
	if at < 0 {
		return nil
	}
	return &t.MCP[at]
}

// serves reports whether the groups of a server have a conversation.
func (m *MCPConfig) serves(id string) bool {
	return slices.Contains(m.Groups, "*") || slices.Contains(m.Groups, id)
}

// Servers returns the servers for the client.
func (t *ToolsConfig) Servers() []mcp.Server {
	servers := make([]mcp.Server, len(t.MCP))
	for i, m := range t.MCP {
		servers[i] = mcp.Server{
			Name: m.Name, Command: m.Command, Args: m.args(), Env: revealed(m.Env), URL: m.URL.Reveal(), Headers: revealed(m.Headers),
			Allow: m.Allow, Confirm: m.Confirm, Groups: m.Groups, Personal: m.Identity == identityPerson, Timeout: m.Timeout, MaxResultTokens: m.MaxResultTokens,
		}
	}
	return servers
}

func (m *MCPConfig) args() []string {
	plain := make([]string, len(m.Args))
	for i, a := range m.Args {
		plain[i] = a.Reveal()
	}
	return plain
}

func revealed(secrets map[string]Secret) map[string]string {
	plain := make(map[string]string, len(secrets))
	for name, s := range secrets {
		plain[name] = s.Reveal()
	}
	return plain
}

// checkNames judges a list of tools at the path of its owner.
func (t *ToolsConfig) checkNames(k *strict.Source, at string, names []string) {
	toolNames, servers := tools.Names(), t.names()
	for i, name := range names {
		known := slices.Contains(toolNames, name) || slices.Contains(servers, name) || slices.Contains(servers, chat.ServerOf(name))
		k.Want(known, fmt.Sprintf("%s.tools[%d]", at, i), strconv.Quote(name), "%s", strict.Quoted(slices.Concat(toolNames, servers)))
	}
}
