package chat

import (
	"context"
	"strings"

	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
	"ebb/sessions/llm"
)

// Tool is a function that the model may call in a turn.
type Tool interface {
	Spec() llm.ToolSpec
	// Call takes arguments in JSON, as the model wrote them. The model sees the error: it names the fault in the
	// arguments and no secret.
	Call(ctx context.Context, in ToolInput) (string, error)
}

// ToolInput is the context of a call.
type ToolInput struct {
	Arguments string
	Lease     sessions.Lease
	Reader    memory.Reader
	Chat      draft.Chat // conversation and speakers
	CallID    string
	Current   []sessions.Event                             // from the running turn, numbered as its commit will number them
	Suspicion *sessions.Suspicion                          // rows that the result leaves out; nil: none
	Room      int                                          // bound of the result in bytes; a longer one is cut; 0: none
	May       func(by sessions.Event, command string) bool // whether a message's sender may use a command, by its English name
	Read      func(id int64)                               // called with each memory that the tool read; nil: not noted
	Send      func(name string, body []byte) error         // sends a file behind the reply; the error says why not, for the model; nil: none is sent
	// Show shows a picture of the conversation in the next request of the turn. It reports whether there is room; nil: no request shows any.
	Show func(m sessions.Media) bool
}

// Repeatable marks tools without side effects, whose calls a crash may repeat.
type Repeatable interface{ Repeatable() bool }

// NeedsApproval marks tools of which a person approves each call.
type NeedsApproval interface{ NeedsApproval() bool }

// ServerSeparator stands between the names of a server and of its tool.
const ServerSeparator = "__"

// ServerOf returns the server's part of the name of a tool; empty for a tool of the bot's own.
func ServerOf(tool string) string {
	server, _, ok := strings.Cut(tool, ServerSeparator)
	if !ok {
		return ""
	}
	return server
}

// SearchTool is the name of the tool that finds others, which requests do not offer by themselves.
const SearchTool = "tool_search"

const foundLead, foundEnd = "- ", ": "

// FoundLine begins the line of a tool in a result of [SearchTool].
func FoundLine(name string) string { return foundLead + name + foundEnd }

// FoundIn lists the names in a result of [SearchTool].
func FoundIn(result string) (names []string) {
	for line := range strings.Lines(result) {
		if rest, ok := strings.CutPrefix(line, foundLead); ok {
			if name, _, ok := strings.Cut(rest, foundEnd); ok {
				names = append(names, name)
			}
		}
	}
	return names
}

// Toolbox has the tools of other programs. They come and go while the process runs.
type Toolbox interface {
	// Tools returns those that a conversation may use, sorted by name.
	Tools(id sessions.ConversationID, kind sessions.ConversationType) []Tool
	// Version changes with each new list of tools.
	Version() int64
	// MaxResultTokens is the size over which requests show a part of the tool's results; 0: none of its own. It depends on the name alone.
	MaxResultTokens(tool string) int
	// Away lists the servers of a conversation that are not connected now.
	Away(id sessions.ConversationID, kind sessions.ConversationType) []string
	// Connected returns when the server of a tool is connected, with true, or when ctx ends, with false. It is true at once for a tool of no server
	// of the conversation.
	Connected(ctx context.Context, id sessions.ConversationID, kind sessions.ConversationType, tool string) bool
	// Odd lists the tools of a conversation's servers that are left out or have another name, each with the reason.
	Odd(id sessions.ConversationID, kind sessions.ConversationType) []string
}
