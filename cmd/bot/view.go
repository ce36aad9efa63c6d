package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/admin"
	"ebb/sql/facts"
)

// sessionView is the output of --json. Scripts may rely on its names.
type sessionView struct {
	Session          sessions.Key              `json:"session"`
	RobotCode        sessions.RobotCode        `json:"robot_code"`
	ConversationID   sessions.ConversationID   `json:"conversation_id"`
	ConversationType sessions.ConversationType `json:"conversation_type"`
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
	SpentToday       int                       `json:"spent_today"`
	Calibration      float64                   `json:"calibration"`
	Settings         json.RawMessage           `json:"settings,omitzero"` // the conversation's own settings
	Usage            usageView                 `json:"usage"`
	LeaseOwner       sessions.ReplicaID        `json:"lease_owner"`
	LeaseTerm        int64                     `json:"lease_term"`
	Withheld         int                       `json:"withheld,omitempty"` // events that a model refuses; only of a single session
	CreatedAt        time.Time                 `json:"created_at"`
	LastActiveAt     time.Time                 `json:"last_active_at"`
}

type usageView struct {
	Prompt     int `json:"prompt_tokens"`
	Cached     int `json:"cached_tokens"`
	Completion int `json:"completion_tokens"`
}

func viewSession(s sessions.Session) sessionView {
	return sessionView{
		Session: s.Key, RobotCode: s.RobotCode, ConversationID: s.ConversationID, ConversationType: s.ConversationType,
		Title: s.Title, TotalTokens: s.TotalTokens, LastSeq: s.LastSeq, BaseSeq: s.BaseSeq, CompactedSeq: s.CompactedSeq,
		FlushedSeq: s.FlushedSeq, Generation: s.Gen, CompactionCount: s.CompactionCount, FlushCount: s.FlushCount,
		CompactFailures: s.CompactFailures, CompactError: s.CompactError, CompactRetryAt: s.CompactRetryAt, CompactedAt: s.CompactedAt,
		RearmTokens: s.RearmTokens, SpentToday: s.SpentToday, Calibration: s.CalibrationFactor, Usage: usageView(s.Usage),
		Settings:   rawOrNone(s.Settings),
		LeaseOwner: s.Lease.Owner, LeaseTerm: s.Lease.Term, CreatedAt: s.CreatedAt, LastActiveAt: s.LastActiveAt,
	}
}

// eventView leaves out delivery data such as webhooks. The export names the conversation once.
type eventView struct {
	ID         int64               `json:"id"`
	Seq        int64               `json:"seq"`
	Session    sessions.Key        `json:"session"`
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
	Withheld   sessions.Withheld   `json:"withheld,omitempty"` // models that refuse it
	SentAt     time.Time           `json:"sent_at,omitzero"`   // by the sender's clock
	CreatedAt  time.Time           `json:"created_at"`
}

func viewEvent(e sessions.Event) eventView {
	v := eventView{
		ID: e.ID, Seq: e.Seq, Session: e.Key, Role: e.Role, Content: e.Content, SenderID: e.SenderID, SenderNick: e.SenderNick,
		MsgID: e.MsgID, ToolCalls: e.ToolCalls, ToolCallID: e.ToolCallID, ToolName: e.ToolName, Tokens: e.Tokens, State: e.State,
		Attempts: e.Attempts, Archived: e.Archived, CreatedAt: e.CreatedAt, Withheld: e.Withheld,
	}
	if e.Message != nil {
		v.SentAt = e.Message.SentAt
	}
	return v
}

// said prefers the sender's clock: an imported event is stored long after it was sent.
func (v eventView) said() time.Time {
	if v.SentAt.IsZero() {
		return v.CreatedAt
	}
	return v.SentAt
}

type compactionView struct {
	ID           int64           `json:"id"`
	Session      sessions.Key    `json:"session"`
	CreatedAt    time.Time       `json:"created_at"`
	Trigger      string          `json:"trigger"`
	Outcome      string          `json:"outcome"`
	Error        string          `json:"error"`
	Policy       string          `json:"policy"`
	Mode         string          `json:"mode"`
	Model        string          `json:"model"`
	Focus        string          `json:"focus"`
	TokensBefore int             `json:"tokens_before"`
	TokensAfter  int             `json:"tokens_after"`
	StartSeq     int64           `json:"start_seq"`
	EndSeq       int64           `json:"end_seq"`
	SummaryID    int64           `json:"summary_id,omitzero"` // id of its newest summary
	FlushOutcome string          `json:"flush_outcome"`
	Audit        json.RawMessage `json:"audit"`
	DurationMS   int64           `json:"duration_ms"`
	Cost         float64         `json:"cost"`
	Usage        usageView       `json:"usage"`
	RequestedBy  string          `json:"requested_by,omitempty"`
	UndoneAt     time.Time       `json:"undone_at,omitzero"`
	ErasedAt     time.Time       `json:"erased_at,omitzero"` // in place of undone_at after an erasure
	// Only for a single attempt.
	Flushes []receiptView `json:"flushes,omitzero"`
	Summary string        `json:"summary,omitzero"`
}

// receiptView lists the ids of memories that one flush saved.
type receiptView struct {
	StartSeq   int64   `json:"start_seq"`
	EndSeq     int64   `json:"end_seq"`
	Trigger    string  `json:"trigger"`
	Saved      []int64 `json:"saved"`
	Known      []int64 `json:"known"`
	Superseded []int64 `json:"superseded"`
}

func viewReceipts(receipts []facts.FlushReceipt) []receiptView {
	var out []receiptView
	for _, r := range receipts {
		out = append(out, receiptView{
			StartSeq: r.From + 1, EndSeq: r.Through, Trigger: r.Trigger,
			Saved: r.Receipt.Saved, Known: r.Receipt.Duplicate, Superseded: r.Receipt.Superseded,
		})
	}
	return out
}

// String is one line.
func (r receiptView) String() string {
	var out strings.Builder
	if r.EndSeq < r.StartSeq {
		fmt.Fprintf(&out, "%s, read again up to event %d:", r.Trigger, r.EndSeq) // a call with the maximum of facts
	} else {
		fmt.Fprintf(&out, "%s, events %d to %d:", r.Trigger, r.StartSeq, r.EndSeq)
	}
	for _, part := range []struct {
		word string
		ids  []int64
	}{{"saved", r.Saved}, {"known before", r.Known}, {"corrected", r.Superseded}} {
		if len(part.ids) > 0 {
			out.WriteString(" " + part.word)
		}
		for _, id := range part.ids {
			fmt.Fprintf(&out, " #%d", id)
		}
	}
	if len(r.Saved)+len(r.Known) == 0 {
		out.WriteString(" nothing to save")
	}
	return out.String()
}

func viewCompaction(e sessions.LogEntry, end admin.CompactionEnd) compactionView {
	audit := json.RawMessage(e.Audit)
	if !json.Valid(audit) {
		audit = json.RawMessage("null")
	}
	undone, erased := e.Undone, time.Time{}
	if end.Erased {
		undone, erased = erased, undone
	}
	return compactionView{
		ID: e.ID, Session: e.Key, CreatedAt: e.CreatedAt, Trigger: e.Trigger, Outcome: e.Outcome, Error: e.Error, Policy: e.Policy,
		Mode: e.Mode, Model: e.Model, Focus: e.Focus, TokensBefore: e.TokensBefore, TokensAfter: e.TokensAfter, StartSeq: e.StartSeq,
		EndSeq: e.EndSeq, FlushOutcome: e.FlushOutcome, Audit: audit, DurationMS: e.Duration.Milliseconds(), Cost: e.Cost,
		Usage: usageView(e.Usage), RequestedBy: e.RequestedBy, UndoneAt: undone, ErasedAt: erased, SummaryID: end.SummaryID,
	}
}

// auditWords are in reading order.
var auditWords = []struct{ key, says string }{
	{"source_tokens", "summarized, tokens in full"},
	{"summary_tokens", "summary, tokens"},
	{"calls", "model calls"},
	{"fallback", "fallback model"},
	{"recall", "identifiers kept"},
	{"precision", "identifiers of the source"},
	{"added", "identifiers added"},
	{"missing", "added verbatim"},
	{"invented", "marked as unverified"},
	{"repaired", "written again"},
	{"healed", "mended without a model"},
	{"rolled_up", "older summaries joined"},
	{"roll_up_failed", "not joined"},
	{"unavailable", "results not readable"},
	{"offloads_deleted", "offloads deleted"},
	{"deleted_files", "deleted files"},
	{"preserved_count", "events preserved"},
	{"pinned_growth", "newly pinned, tokens"},
	{"memories", "saved to memory"},
}

// auditRows puts described figures first.
func auditRows(audit string) [][2]string {
	if strings.TrimSpace(audit) == "" {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(audit))
	dec.UseNumber()
	var fields map[string]any
	if err := dec.Decode(&fields); err != nil {
		return [][2]string{{"audit", audit}}
	}
	var rows [][2]string
	add := func(key, says string) {
		if text := auditText(key, fields[key]); text != "" {
			rows = append(rows, [2]string{says, text})
		}
		delete(fields, key)
	}
	for _, w := range auditWords {
		add(w.key, w.says)
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		add(key, strings.ReplaceAll(key, "_", " "))
	}
	return rows
}

// auditText is empty for a value without information.
func auditText(key string, value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return "yes"
		}
		return ""
	case json.Number:
		if share, err := v.Float64(); err == nil && (key == "recall" || key == "precision") {
			return strconv.FormatFloat(math.Round(1000*share)/10, 'f', -1, 64) + " %"
		}
		return v.String()
	case string:
		return v
	case []any:
		texts := make([]string, 0, len(v))
		for _, x := range v {
			texts = append(texts, auditText("", x))
		}
		return strings.Join(texts, ", ")
	default:
		var b bytes.Buffer
		if err := json.NewEncoder(&b).Encode(v); err != nil {
			return fmt.Sprint(v)
		}
		return strings.TrimSpace(b.String())
	}
}

func rawOrNone(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

type memoryView struct {
	ID            int64             `json:"id"`
	Scope         memory.Scope      `json:"scope"`
	ScopeID       string            `json:"scope_id"`
	Kind          memory.Kind       `json:"kind"`
	Content       string            `json:"content"`
	Key           string            `json:"fact_key,omitzero"`
	SubjectID     sessions.UserID   `json:"subject_id,omitzero"`
	SaidBy        sessions.UserID   `json:"said_by,omitzero"`
	SaidAt        time.Time         `json:"said_at,omitzero"`
	SourceGroup   string            `json:"source_group,omitzero"`
	SourceSession sessions.Key      `json:"source_session"`
	StartSeq      int64             `json:"start_seq"`
	EndSeq        int64             `json:"end_seq"`
	SupersededBy  int64             `json:"superseded_by,omitzero"`
	SupersededAt  time.Time         `json:"superseded_at,omitzero"`
	ExpiresAt     time.Time         `json:"expires_at,omitzero"`
	LastSeenAt    time.Time         `json:"last_seen_at"`
	Seen          int               `json:"seen"`
	PromotedBy    sessions.UserID   `json:"promoted_by,omitzero"`
	CreatedAt     time.Time         `json:"created_at"`
	SaidByNick    string            `json:"said_by_nick,omitzero"` // newest nick in the conversation
	SubjectNick   string            `json:"subject_nick,omitzero"`
	Withheld      sessions.Withheld `json:"withheld,omitempty"` // models that refuse it
}

func viewMemory(m memory.Memory) memoryView { return memoryView(m) }

func (m memoryView) said() time.Time {
	if m.SaidAt.IsZero() {
		return m.CreatedAt
	}
	return m.SaidAt
}

func (m memoryView) state(now time.Time) string {
	switch {
	case m.SupersededBy != 0:
		return fmt.Sprintf("superseded by %d", m.SupersededBy)
	case !m.ExpiresAt.IsZero() && !m.ExpiresAt.After(now):
		return "expired"
	}
	return "in force"
}
