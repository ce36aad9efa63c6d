package mcp

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"ebb/sessions"
)

// Server is the configuration of a server: Command or URL is set.
type Server struct {
	Name    string
	Command string
	Args    []string
	Env     map[string]string
	URL     string
	Headers map[string]string
	// Allow and Confirm are patterns over the server's own names of tools, with * and ?. A tool in Confirm needs an approval for each call.
	Allow, Confirm []string
	Groups         []string // ids of conversations; "*": all
	// Personal says that the credentials are a person's own: the tools are offered in the private chats among Groups alone.
	Personal        bool
	Timeout         time.Duration // for one call
	MaxResultTokens int           // a larger result is shown as a reference
}

// everywhere stands for all conversations.
const everywhere = "*"

// serves reports whether a conversation may use the tools.
func (s Server) serves(id sessions.ConversationID, kind sessions.ConversationType) bool {
	if slices.Contains(s.Groups, string(id)) {
		return !s.Personal || kind == sessions.Private
	}
	return !s.Personal && slices.Contains(s.Groups, everywhere)
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(flat(pattern), flat(name))
		return err == nil && ok
	})
}

// unmatched names the patterns of the configuration that match no allowed tool. A misspelt one in confirm leaves calls without approval.
func (s Server) unmatched(allowed []string) (odd []string) {
	for _, list := range []struct {
		key      string
		patterns []string
	}{{"allow", s.Allow}, {"confirm", s.Confirm}} {
		for _, pattern := range list.patterns {
			if pattern != "*" && !slices.ContainsFunc(allowed, func(name string) bool { return matches([]string{pattern}, name) }) {
				odd = append(odd, fmt.Sprintf("%s %q: matches no allowed tool of the server", list.key, pattern))
			}
		}
	}
	return odd
}

// flat has another character in place of "/", at which * and ? of a path stop. Names of tools are no paths.
func flat(name string) string { return strings.ReplaceAll(name, "/", "\x01") }

// ValidPattern reports whether a pattern of names can be read.
func ValidPattern(pattern string) bool {
	_, err := path.Match(pattern, "")
	return err == nil && pattern != ""
}

// Status is the state of a server.
type Status struct {
	Name      string
	Connected bool
	Since     time.Time // beginning of the state
	Tools     int       // offered
	Odd       []string  // its tools that are left out or have another name, and patterns that match no tool, each with the reason
	Failures  int       // in a row, of connecting
	Fault     string    // the reason why it is not connected, without secrets; empty: none
}
