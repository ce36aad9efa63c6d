package sessions

import (
	"fmt"
	"slices"
	"strings"
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

// Readable returns the events as a model is shown them: a note stands for what it refuses. A nick that it refuses is left out of
// all of them. The given events stay as they are.
func Readable(events []Event, model ModelID) []Event {
	nicks := WithheldNicks(events, model)
	out := slices.Clone(events)
	for i := range out {
		if parts := out[i].Withheld[model].Parts; len(parts) > 0 || nicks[out[i].SenderNick] {
			out[i] = out[i].Without(parts...)
		}
		if nicks[out[i].SenderNick] {
			out[i].SenderNick = ""
		}
	}
	return out
}

// WithheldNicks are the nicks that a model refuses, as far as the events show it.
func WithheldNicks(events []Event, model ModelID) map[string]bool {
	var nicks map[string]bool
	for _, e := range events {
		if e.SenderNick != "" && e.Withheld.From(model, WithheldNick) {
			if nicks == nil {
				nicks = map[string]bool{}
			}
			nicks[e.SenderNick] = true
		}
	}
	return nicks
}

// Without returns the event without some of its parts. A note stands for the body.
func (e Event) Without(parts ...WithheldPart) Event {
	for _, part := range parts {
		switch part {
		case WithheldBody:
			e.Content, e.ToolCalls, e.Blob = WithheldText, nil, ""
			e.Tokens = min(e.Tokens, WithheldTokens)
			e.dropQuote()
		case WithheldQuote:
			if _, own, ok := strings.Cut(e.Content, quoteEnd); ok && strings.HasPrefix(e.Content, quoteStart) {
				e.Content = own
			}
			e.dropQuote()
		case WithheldNick:
			e.SenderNick = ""
		}
	}
	return e
}

func (e *Event) dropQuote() {
	if e.Message == nil {
		return
	}
	m := *e.Message
	m.Quote, m.Text = nil, e.Content
	e.Message = &m
}

// ErasedText replaces an erased body, and ErasedTokens is its count: a little more than its size.
const (
	ErasedText   = "[已删除 erased]"
	ErasedTokens = 8
)

// Readable returns the events as a model is shown them until the rows at fault are found. A note stands for a row under
// suspicion. Names may be at fault too.
func (s *Suspicion) Readable(events []Event, model ModelID) []Event {
	if !s.Concerns(model) {
		return events
	}
	out := slices.Clone(events)
	for i := range out {
		out[i].SenderNick = ""
		if s.Covers(model, out[i].Seq) {
			out[i] = out[i].Without(WithheldBody)
		}
	}
	return out
}
