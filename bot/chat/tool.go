package chat

import (
	"context"

	"ebb/bot/llm"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
)

// Tool is something that the model may call in a turn.
type Tool interface {
	Spec() llm.ToolSpec
	// Call runs the tool with arguments that are JSON text as the model wrote them. Its error is told to the model,
	// so it names what was wrong with the arguments and nothing secret.
	Call(ctx context.Context, in ToolInput) (string, error)
}

// ToolInput is what a call knows of its turn.
type ToolInput struct {
	Arguments string
	Lease     sessions.Lease
	Reader    memory.Reader
	Chat      draft.Chat // where it was asked, and who speaks there
	CallID    string
	Current   []sessions.Event // of the running turn, numbered as its commit will number them: the log lacks them so far
	Room      int              // bytes that a result may have without being cut; 0: any number
}

// Repeatable marks tools whose calls have no effect, so that a call cut off by a crash may be made again.
type Repeatable interface{ Repeatable() bool }
