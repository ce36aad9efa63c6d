package rows

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"ebb/memory/pages"
	"ebb/sessions"
)

// Session is a conversation, or one member's part of it.
type Session struct {
	SessionKey       sessions.Key              `json:"session_key"`
	RobotCode        sessions.RobotCode        `json:"robot_code"`
	ConversationID   sessions.ConversationID   `json:"conversation_id"`
	ConversationType sessions.ConversationType `json:"conversation_type"`
	Private          bool                      `json:"private"` // also for an unknown type
	Title            string                    `json:"title"`
	TotalTokens      int                       `json:"total_tokens"`
	LastSeq          int64                     `json:"last_seq"`
	BaseSeq          int64                     `json:"base_seq"`
	CompactedSeq     int64                     `json:"compacted_seq"`
	FlushedSeq       int64                     `json:"flushed_seq"`
	Generation       int                       `json:"generation"`
	CompactionCount  int                       `json:"compaction_count"`
	FlushCount       int                       `json:"flush_count"`
	CompactFailures  int                       `json:"compact_failures"`
	CompactError     string                    `json:"compact_error"`
	CompactRetryAt   time.Time                 `json:"compact_retry_at,omitzero"`
	CompactedAt      time.Time                 `json:"compacted_at,omitzero"`
	RearmTokens      int                       `json:"rearm_tokens"`
	SpentToday       int                       `json:"spent_today"` // tokens of upkeep, UTC
	Calibration      float64                   `json:"calibration"`
	Settings         json.RawMessage           `json:"settings,omitzero"` // the conversation's own
	Usage            Usage                     `json:"usage"`
	LeaseOwner       sessions.ReplicaID        `json:"lease_owner"`
	LeaseTerm        int64                     `json:"lease_term"`
	CreatedAt        time.Time                 `json:"created_at"`
	LastActiveAt     time.Time                 `json:"last_active_at"`

	// WithheldEvents are those that a model refuses. Nil: not counted.
	WithheldEvents *int `json:"withheld_events,omitempty"`
	// Work is in the lists of the API. Nil: not read.
	Model     *string `json:"model,omitempty"` // the last answer's
	Waiting   *int    `json:"waiting,omitempty"`
	Dead      *int    `json:"dead,omitempty"`
	FlushOwed *bool   `json:"flush_owed,omitempty"`
}

// Usage is a number of tokens.
type Usage struct {
	Prompt     int `json:"prompt_tokens"`
	Cached     int `json:"cached_tokens"` // the part of Prompt from the provider's cache
	Completion int `json:"completion_tokens"`
}

// OfSession returns the row of a session, without its work.
func OfSession(s sessions.Session) Session {
	return Session{
		SessionKey: s.Key, RobotCode: s.RobotCode, ConversationID: s.ConversationID, ConversationType: s.ConversationType,
		Private: s.ConversationType != sessions.Group, Title: s.Title, TotalTokens: s.TotalTokens, LastSeq: s.LastSeq, BaseSeq: s.BaseSeq,
		CompactedSeq: s.CompactedSeq, FlushedSeq: s.FlushedSeq, Generation: s.Gen, CompactionCount: s.CompactionCount, FlushCount: s.FlushCount,
		CompactFailures: s.CompactFailures, CompactError: s.CompactError, CompactRetryAt: s.CompactRetryAt, CompactedAt: s.CompactedAt,
		RearmTokens: s.RearmTokens, SpentToday: s.SpentToday, Calibration: s.CalibrationFactor, Settings: raw(s.Settings), Usage: Usage(s.Usage),
		LeaseOwner: s.Lease.Owner, LeaseTerm: s.Lease.Term, CreatedAt: s.CreatedAt, LastActiveAt: s.LastActiveAt,
	}
}

// OfListed returns the row of a session with its work.
func OfListed(r pages.SessionRow) Session {
	s := OfSession(r.Session)
	s.Model, s.Waiting, s.Dead, s.FlushOwed = &r.Model, &r.Waiting, &r.Dead, &r.Owed
	return s
}

// Event is a row of the log. It has no delivery data, such as webhooks.
type Event struct {
	ID         int64               `json:"id"`
	Seq        int64               `json:"seq"` // 0 for a message without an answer
	SessionKey sessions.Key        `json:"session_key"`
	Role       sessions.Role       `json:"role"`
	Content    string              `json:"content"`
	SenderID   sessions.UserID     `json:"sender_id,omitempty"`
	SenderNick string              `json:"sender_nick,omitempty"`
	MsgID      sessions.MessageID  `json:"msg_id,omitempty"`
	ToolCalls  []sessions.ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string              `json:"tool_call_id,omitempty"`
	ToolName   string              `json:"tool_name,omitempty"`
	Tokens     int                 `json:"tokens"`
	State      sessions.State      `json:"state"`
	Attempts   int                 `json:"attempts"`
	Archived   bool                `json:"is_archived"`
	SentAt     time.Time           `json:"sent_at,omitzero"` // by the sender's clock
	CreatedAt  time.Time           `json:"created_at"`
	Withheld   []Withheld          `json:"withheld,omitempty"`
}

// OfEvent returns the row of an event.
func OfEvent(e sessions.Event) Event {
	v := Event{
		ID: e.ID, Seq: e.Seq, SessionKey: e.Key, Role: e.Role, Content: e.Content, SenderID: e.SenderID, SenderNick: e.SenderNick,
		MsgID: e.MsgID, ToolCalls: e.ToolCalls, ToolCallID: e.ToolCallID, ToolName: e.ToolName, Tokens: e.Tokens, State: e.State,
		Attempts: e.Attempts, Archived: e.Archived, CreatedAt: e.CreatedAt, Withheld: withheld(e.Withheld),
	}
	if e.Message != nil {
		v.SentAt = e.Message.SentAt
	}
	return v
}

// SaidAt prefers the sender's clock: an imported event is stored long after it was sent.
func (e Event) SaidAt() time.Time {
	if e.SentAt.IsZero() {
		return e.CreatedAt
	}
	return e.SentAt
}

// Withheld is a model whose requests leave out parts of a row.
type Withheld struct {
	Model sessions.ModelID        `json:"model"`
	Parts []sessions.WithheldPart `json:"parts"`
	Class string                  `json:"class"` // the model's error
	At    time.Time               `json:"at"`
}

func withheld(w sessions.Withheld) (list []Withheld) {
	for _, m := range slices.Sorted(maps.Keys(w)) {
		list = append(list, Withheld{m, w[m].Parts, w[m].Class, w[m].At})
	}
	return list
}

// raw is nil for a text that is empty or no JSON.
func raw(text string) json.RawMessage {
	if !json.Valid([]byte(text)) {
		return nil
	}
	return json.RawMessage(text)
}
