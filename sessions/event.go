package sessions

import (
	"fmt"
	"slices"
	"time"
)

// Role is the author of an event.
type Role string

// The roles, as stored.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
	RoleSummary   Role = "summary"
)

// Known reports whether r is one of the roles.
func (r Role) Known() bool {
	return r == RoleUser || r == RoleAssistant || r == RoleTool || r == RoleSummary
}

// State is the inbox state of an event. Only user messages are ever pending or dead.
type State string

// The states.
const (
	Pending State = "pending" // accepted, not yet answered; Seq is 0
	Done    State = "done"    // answered by a committed turn
	Dead    State = "dead"    // dead letter after too many failed attempts; Seq is 0, in no view
)

// Event is one row of a session's log. Only an erasure changes a body.
type Event struct {
	ID   int64 // order of arrival, across all sessions
	Seq  int64 // order in the view, from 1, by send time; 0 while pending and for summaries
	Key  Key
	Role Role

	Content    string
	SenderID   UserID
	SenderNick string
	MsgID      MessageID

	ToolCalls  []ToolCall
	ToolCallID string // id of the call that a tool event answers
	ToolName   string

	Tokens int // counted at the commit; in a view, of the shown content
	// Blob is the address of an offloaded tool result, which the log keeps; Content is then its reference.
	Blob      string
	State     State
	Attempts  int  // known failed attempts, see [Turns.Begin]
	Admitted  bool // the limits counted an attempt at the pending message, see [Limiter.Admit]
	Archived  bool
	CreatedAt time.Time
	Message   *Message // a user event's, for the reply
	Withheld  Withheld // models that refuse it; nil: none
	Media     []Media  // its attachments, in a turn that shows them
}

// IsScheduled reports whether a schedule made the message.
func (e Event) IsScheduled() bool { return e.Message != nil && e.Message.Scheduled != nil }

// IsPress reports whether a button made the message.
func (e Event) IsPress() bool { return e.Message != nil && (e.Message.Press != nil || e.Message.Quiet) }

// HasFiles reports whether a message, or the message of the log that it quotes, has attachments that are read.
func (e *Event) HasFiles() bool {
	m := e.Message
	return m != nil && e.Content != ErasedText && (slices.ContainsFunc(m.Attachments, Attachment.IsRead) || m.Quote != nil && m.Quote.Event != 0)
}

// ToolCall is a call by the model. Arguments are JSON text.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// ToolRun records a tool call before it runs, so that a crash is detected.
type ToolRun struct {
	Call     ToolCall
	EventID  int64 // the oldest pending message, which links a run to the turn's next attempt
	Finished bool  // false after a crash: the call may have had an effect
	Result   string
}

// HistoryTool is the tool that reads a session's log.
const HistoryTool = "query_history"

// ReadCall is the call that reads one event.
func ReadCall(seq int64) string { return ReadCallOf(seq, seq) }

// ReadCallOf is the call that reads a range of events.
func ReadCallOf(from, through int64) string {
	if from == through {
		return fmt.Sprintf(`%s {"range":"%d"}`, HistoryTool, from)
	}
	return fmt.Sprintf(`%s {"range":"%d-%d"}`, HistoryTool, from, through)
}

// Usage is the size of model calls in tokens; 0 if the provider did not report it.
type Usage struct {
	Prompt     int
	Cached     int // part of Prompt from the provider's cache
	Completion int
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Prompt + v.Prompt, u.Cached + v.Cached, u.Completion + v.Completion}
}

// Spending is the usage and cost of one kind of work.
type Spending struct {
	Kind  SpentKind
	Usage Usage
	Cost  float64 // in llm.currency; 0 without prices
	Model string  // empty: not known, or a sum of several
}

// Add returns the sum, of t's kind and without a model.
func (s Spending) Add(t Spending) Spending {
	return Spending{Kind: t.Kind, Usage: s.Usage.Add(t.Usage), Cost: s.Cost + t.Cost}
}

// SpentKind is a kind of work with model calls.
type SpentKind string

// The kinds of work with model calls.
const (
	SpentTurn          SpentKind = "turn"
	SpentFlush         SpentKind = "flush"
	SpentSummary       SpentKind = "summary"
	SpentDigest        SpentKind = "digest"
	SpentConsolidation SpentKind = "consolidation"
	SpentProbe         SpentKind = "probe"
)

// IsUpkeep reports whether a kind counts in SpentToday. Answers don't, and neither do probes: refusals of a provider are no upkeep of
// the session, and the members' limits leave them out, too.
func (k SpentKind) IsUpkeep() bool { return k != SpentTurn && k != SpentProbe }
