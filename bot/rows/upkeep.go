package rows

import (
	"encoding/json"
	"time"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
)

// Compaction is an attempt at a compaction.
type Compaction struct {
	ID              int64                      `json:"id"`
	SessionKey      sessions.Key               `json:"session_key"`
	CreatedAt       time.Time                  `json:"created_at"`
	Trigger         sessions.Trigger           `json:"trigger"`
	Outcome         sessions.CompactionOutcome `json:"outcome"`
	Error           string                     `json:"error"`
	Policy          string                     `json:"policy"`
	Mode            string                     `json:"mode"`
	Model           string                     `json:"model"`
	Focus           string                     `json:"focus"`
	TokensBefore    int                        `json:"tokens_before"`
	TokensAfter     int                        `json:"tokens_after"`
	StartSeq        int64                      `json:"start_seq"` // the first event that left the context
	EndSeq          int64                      `json:"end_seq"`   // less than StartSeq for none
	FlushOutcome    sessions.FlushOutcome      `json:"flush_outcome"`
	Audit           json.RawMessage            `json:"audit,omitzero"`
	DurationMS      int64                      `json:"duration_ms"`
	Cost            float64                    `json:"cost"` // in llm.currency
	Usage           Usage                      `json:"usage"`
	RequestedBy     string                     `json:"requested_by,omitempty"`
	RequestedByNick string                     `json:"requested_by_nick,omitempty"`
	UndoneAt        time.Time                  `json:"undone_at,omitzero"`
	ErasedAt        time.Time                  `json:"erased_at,omitzero"`  // in place of UndoneAt after an erasure
	SummaryID       int64                      `json:"summary_id,omitzero"` // its newest summary; 0: none, or not read

	// Only for a single attempt.
	Flushes []Receipt `json:"flushes,omitzero"`
	Summary string    `json:"summary,omitzero"`
}

// OfCompaction returns the row of an attempt, without its summary and flushes.
func OfCompaction(e sessions.LogEntry) Compaction {
	return Compaction{
		ID: e.ID, SessionKey: e.Key, CreatedAt: e.CreatedAt, Trigger: e.Trigger, Outcome: e.Outcome, Error: e.Error, Policy: e.Policy,
		Mode: e.Mode, Model: e.Model, Focus: e.Focus, TokensBefore: e.TokensBefore, TokensAfter: e.TokensAfter, StartSeq: e.StartSeq,
		EndSeq: e.EndSeq, FlushOutcome: e.FlushOutcome, Audit: raw(e.Audit), DurationMS: e.Duration.Milliseconds(), Cost: e.Cost,
		Usage: Usage(e.Usage), RequestedBy: e.RequestedBy, UndoneAt: e.Undone,
	}
}

// OfAttempt returns the row of an attempt in a list.
func OfAttempt(r pages.CompactionRow) Compaction {
	c := OfCompaction(r.LogEntry)
	c.RequestedByNick = r.RequesterNick
	return c
}

// Receipt lists the ids of memories that one flush saved from its events.
type Receipt struct {
	StartSeq   int64               `json:"start_seq"`
	EndSeq     int64               `json:"end_seq"`
	Trigger    memory.FlushTrigger `json:"trigger"`
	Saved      []int64             `json:"saved"`
	Known      []int64             `json:"known"`
	Superseded []int64             `json:"superseded"`
}

// Memory is a fact or a digest.
type Memory struct {
	ID            int64           `json:"id"`
	Scope         memory.Scope    `json:"scope"`
	ScopeID       string          `json:"scope_id"`
	Kind          memory.Kind     `json:"kind"`
	Content       string          `json:"content"`
	FactKey       string          `json:"fact_key,omitempty"`
	SubjectID     sessions.UserID `json:"subject_id,omitempty"`
	SubjectNick   string          `json:"subject_nick,omitempty"` // newest nick in the conversation
	SaidBy        sessions.UserID `json:"said_by,omitempty"`
	SaidByNick    string          `json:"said_by_nick,omitempty"`
	SaidAt        time.Time       `json:"said_at,omitzero"`
	SourceGroup   string          `json:"source_group,omitempty"`
	SourceSession sessions.Key    `json:"source_session"`
	StartSeq      int64           `json:"start_seq"`
	EndSeq        int64           `json:"end_seq"`
	SupersededBy  int64           `json:"superseded_by,omitempty"`
	SupersededAt  time.Time       `json:"superseded_at,omitzero"`
	ExpiresAt     time.Time       `json:"expires_at,omitzero"`
	LastSeenAt    time.Time       `json:"last_seen_at"`
	Seen          int             `json:"seen"` // how often it was said
	PromotedBy    sessions.UserID `json:"promoted_by,omitempty"`
	CreatedAt     time.Time       `json:"created_at"`
	Withheld      []Withheld      `json:"withheld,omitempty"`
}

// OfMemory returns the row of a memory.
func OfMemory(m memory.Memory) Memory {
	return Memory{
		ID: m.ID, Scope: m.Scope, ScopeID: m.ScopeID, Kind: m.Kind, Content: m.Content, FactKey: m.Key, SubjectID: m.SubjectID,
		SubjectNick: m.SubjectNick, SaidBy: m.SaidBy, SaidByNick: m.SaidByNick, SaidAt: m.SaidAt, SourceGroup: m.SourceGroup,
		SourceSession: m.SourceSession, StartSeq: m.StartSeq, EndSeq: m.EndSeq, SupersededBy: m.SupersededBy, SupersededAt: m.SupersededAt,
		ExpiresAt: m.ExpiresAt, LastSeenAt: m.LastSeenAt, Seen: m.Seen, PromotedBy: m.PromotedBy, CreatedAt: m.CreatedAt,
		Withheld: withheld(m.Withheld),
	}
}

// Restart is the account of a process.
type Restart struct {
	Replica   sessions.ReplicaID      `json:"replica"`
	StartedAt time.Time               `json:"started_at"`
	StoppedAt time.Time               `json:"stopped_at,omitzero"` // the last heartbeat of a killed process
	Ending    sessions.Ending         `json:"ending"`              // empty while the process runs
	Figures   sessions.RestartFigures `json:"figures"`
}

// OfRestart returns the row of an account.
func OfRestart(r sessions.Restart) Restart {
	return Restart{r.Replica, r.StartedAt, r.StoppedAt, r.Ending, r.Figures}
}

// Cost is the usage of one kind of work, by what the sums are divided. A field of no division is absent.
type Cost struct {
	SessionKey sessions.Key    `json:"session_key,omitempty"`
	Title      string          `json:"title,omitempty"`
	Month      string          `json:"month,omitempty"` // 2006-01, UTC
	Day        string          `json:"day,omitempty"`   // 2006-01-02, UTC
	Bot        string          `json:"bot,omitempty"`
	Model      string          `json:"model,omitempty"`
	PersonID   sessions.UserID `json:"person_id,omitempty"`
	PersonNick string          `json:"person_nick,omitempty"`
	Kind       string          `json:"kind"`
	Turns      int             `json:"turns"`
	Prompt     int             `json:"prompt_tokens"`
	Cached     int             `json:"cached_tokens"`
	Completion int             `json:"completion_tokens"`
	Cost       float64         `json:"cost"` // in llm.currency; 0 without a price
}

// Plus adds the figures of another row.
func (c Cost) Plus(other Cost) Cost {
	c.Turns, c.Prompt, c.Cached = c.Turns+other.Turns, c.Prompt+other.Prompt, c.Cached+other.Cached
	c.Completion, c.Cost = c.Completion+other.Completion, c.Cost+other.Cost
	return c
}

// OfUsage returns the row of a sum.
func OfUsage(u pages.Usage) Cost {
	return Cost{
		SessionKey: u.Key, Title: u.Title, Day: u.Day, Bot: u.Bot, Model: u.Model, PersonID: u.Person, PersonNick: u.Nick, Kind: string(u.Kind),
		Turns: u.Turns, Prompt: u.Usage.Prompt, Cached: u.Usage.Cached, Completion: u.Usage.Completion, Cost: u.Cost,
	}
}

// Debt is an owed flush of the events FromSeq+1 to ThroughSeq.
type Debt struct {
	SessionKey sessions.Key `json:"session_key"`
	FromSeq    int64        `json:"from_seq"`
	ThroughSeq int64        `json:"through_seq"`
	Failures   int          `json:"failures"`
	Reason     string       `json:"reason"` // one of a fixed set
	CreatedAt  time.Time    `json:"created_at"`
}

// Schedule is a reminder, or a question at set times.
type Schedule struct {
	SessionKey    sessions.Key           `json:"session_key"`
	ID            int64                  `json:"id"`
	Title         string                 `json:"title"`
	Private       bool                   `json:"private"`
	State         sessions.ScheduleState `json:"state"`
	Kind          sessions.ScheduleKind  `json:"kind"`
	DueAt         time.Time              `json:"due_at"` // the next time; the last of an ended one
	Spec          string                 `json:"spec"`   // all times, as they are stored
	Text          string                 `json:"text"`
	CreatedBy     sessions.UserID        `json:"created_by"`
	CreatedByNick string                 `json:"created_by_nick,omitempty"`
	CreatedAt     time.Time              `json:"created_at"`
	SettledAt     time.Time              `json:"settled_at,omitzero"`
}

// OfSchedule returns the row of a schedule.
func OfSchedule(r pages.ScheduleRow) Schedule {
	return Schedule{
		SessionKey: r.Key, ID: r.ID, Title: r.Title, Private: r.Private, State: r.State, Kind: r.Kind, DueAt: r.DueAt, Spec: r.Spec, Text: r.Text,
		CreatedBy: r.Creator.SenderID, CreatedByNick: r.Creator.SenderNick, CreatedAt: r.CreatedAt, SettledAt: r.SettledAt,
	}
}

// Approval is a call of a tool that needs an approval.
type Approval struct {
	SessionKey    sessions.Key           `json:"session_key"`
	ID            int64                  `json:"id"`
	Title         string                 `json:"title"`
	Private       bool                   `json:"private"`
	State         sessions.ApprovalState `json:"state"`
	Tool          string                 `json:"tool"`
	Arguments     string                 `json:"arguments"` // JSON text
	AskedBy       sessions.UserID        `json:"asked_by"`
	AskedByNick   string                 `json:"asked_by_nick,omitempty"`
	DecidedBy     sessions.UserID        `json:"decided_by,omitempty"`
	DecidedByNick string                 `json:"decided_by_nick,omitempty"`
	CreatedAt     time.Time              `json:"created_at"`
	ExpiresAt     time.Time              `json:"expires_at"`
	DecidedAt     time.Time              `json:"decided_at,omitzero"` // end of the wait, also without a decision
}

// OfApproval returns the row of an approval.
func OfApproval(r pages.ApprovalRow) Approval {
	return Approval{
		SessionKey: r.Key, ID: r.ID, Title: r.Title, Private: r.Private, State: r.State, Tool: r.Tool, Arguments: r.Arguments, AskedBy: r.AskedBy,
		AskedByNick: r.Asker, DecidedBy: r.DecidedBy, DecidedByNick: r.Decider, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, DecidedAt: r.DecidedAt,
	}
}

// PersonFact is a fact in the export of a person's data. Its type keeps it apart from messages.
type PersonFact struct {
	Type string `json:"type"` // "fact"
	Memory
}

// OfPersonFact returns the row of a fact.
func OfPersonFact(m memory.Memory) PersonFact { return PersonFact{"fact", OfMemory(m)} }

// PersonMessage is a message in the export of a person's data.
type PersonMessage struct {
	Type string `json:"type"` // "message"
	Event
	Title   string `json:"conversation_title"`
	Private bool   `json:"private"`
}

// OfPersonMessage returns the row of a message.
func OfPersonMessage(m memory.PersonMessage) PersonMessage {
	return PersonMessage{"message", OfEvent(m.Event), m.Title, m.Private}
}

// File is a kept file.
type File struct {
	SessionKey sessions.Key       `json:"session_key"`
	ID         int64              `json:"id"`
	Title      string             `json:"title"`
	Private    bool               `json:"private"`
	Name       string             `json:"name"`
	Version    int                `json:"version"`
	Kind       sessions.MediaKind `json:"kind"`
	Bytes      int64              `json:"bytes"`
	Pages      int                `json:"pages"`
	SentBy     sessions.UserID    `json:"sent_by"` // empty: not known
	KeptBy     sessions.UserID    `json:"kept_by"` // empty: erased
	KeptByNick string             `json:"kept_by_nick,omitempty"`
	CreatedAt  time.Time          `json:"created_at"` // when this version was kept
}

// OfFile converts a kept file. Its texts are in no list.
func OfFile(r pages.FileRow) File {
	return File{
		SessionKey: r.Key, ID: r.ID, Title: r.Title, Private: r.Private, Name: r.Name, Version: r.Version, Kind: r.Kind, Bytes: r.Bytes, Pages: r.Pages,
		SentBy: r.SentBy, KeptBy: r.KeptBy, KeptByNick: r.Keeper, CreatedAt: r.KeptAt,
	}
}
