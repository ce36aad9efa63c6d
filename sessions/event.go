package sessions

import (
	"fmt"
	"time"
)

// Role says whose words an event holds.
type Role string

// The roles of events, as they stand in the table.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
	RoleSummary   Role = "summary"
)

// State is where an event is on its way through the inbox. Only a user's message is ever anything but done.
type State string

// The states of an event.
const (
	Pending State = "pending" // accepted, not answered yet: Seq is 0
	Done    State = "done"    // taken by a turn that committed
	Dead    State = "dead"    // set aside after it broke its turn too often: Seq is 0, it is in no view
)

// Event is one row of a session's log. The log is append-only: what compaction does never changes a body, and
// nothing but an erasure does.
type Event struct {
	ID   int64 // order of arrival, over all sessions
	Seq  int64 // order of the view, per session, from 1: turns take messages as they were sent; 0 while pending, and for summaries, whose place is their range
	Key  Key
	Role Role

	Content    string
	SenderID   UserID
	SenderNick string
	MsgID      MessageID

	ToolCalls  []ToolCall // of an assistant event
	ToolCallID string     // of a tool event: the call that it answers
	ToolName   string     // of a tool event

	Tokens int // counted once, when the turn that took it committed; in a view, of what that shows
	// Blob is the address of a tool result that was moved out of the view: Content is then what the view shows in its
	// place. The log keeps the whole.
	Blob      string
	State     State
	Attempts  int // turns that it broke, as far as is known: see [Store.Begin]
	Archived  bool
	CreatedAt time.Time
	Message   *Message // of a user event: how it came, for the reply
}

// ToolCall is one call that the model asked for. Arguments are JSON text, as the model wrote it.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ToolRun is the record of a tool call, made before it runs, so that a crash between the two is seen.
type ToolRun struct {
	Call     ToolCall
	EventID  int64  // the oldest pending message of the turn: what ties a run to the turn's next attempt
	Finished bool   // false after a crash: the call may have had an effect
	Result   string // of a finished run
}

// HistoryTool is the tool that reads a session's log back.
const HistoryTool = "query_history"

// ReadCall is the call that reads an event of the log whole, as notes in a view name it.
func ReadCall(seq int64) string { return ReadCallOf(seq, seq) }

// ReadCallOf is the call that reads a range of events whole.
func ReadCallOf(from, through int64) string {
	if from == through {
		return fmt.Sprintf(`%s {"range":"%d"}`, HistoryTool, from)
	}
	return fmt.Sprintf(`%s {"range":"%d-%d"}`, HistoryTool, from, through)
}

// Usage is what a model call took, in tokens, as the provider reported it; zero where it did not say.
type Usage struct {
	Prompt     int
	Cached     int // part of Prompt that the provider read from its cache
	Completion int
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Prompt + v.Prompt, u.Cached + v.Cached, u.Completion + v.Completion}
}

// Spending is what model calls of one kind of work took.
type Spending struct {
	Kind  string
	Usage Usage
	Cost  float64 // in the unit of the configured prices; 0 where none are
}

// The kinds of work that model calls are paid for.
const (
	SpentTurn          = "turn" // not part of a session's SpentToday, which is upkeep alone
	SpentFlush         = "flush"
	SpentSummary       = "summary"
	SpentDigest        = "digest"
	SpentConsolidation = "consolidation"
)
