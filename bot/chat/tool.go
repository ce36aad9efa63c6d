package chat

import (
	"context"

	"ebb/bot/llm"
	"ebb/memory"
	"ebb/memory/draft"
	"ebb/sessions"
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
}

// Repeatable marks tools without side effects, whose calls a crash may repeat.
type Repeatable interface{ Repeatable() bool }
