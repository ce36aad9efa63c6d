package convert

import (
	"encoding/json"
	"fmt"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Session converts a row of a session; spentToday comes from another table.
func Session(r *dbsqlc.Session, spentToday int64) sessions.Session {
	owner := pg.OrZero(r.LeaseOwner)
	epoch := -1
	if r.FlushEpoch != nil {
		epoch = *r.FlushEpoch
	}
	return sessions.Session{
		Key: r.SessionKey, RobotCode: r.RobotCode, ConversationID: r.ConversationID,
		ConversationType: r.ConversationType, Title: r.Title,
		TotalTokens: r.TotalTokens, CompactionCount: r.CompactionCount, FlushCount: r.FlushCount,
		LastActiveAt: r.LastActiveAt, CreatedAt: r.CreatedAt,
		LastSeq: r.LastSeq, Gen: r.Gen, ViewVersion: r.ViewVersion,
		Lease:        sessions.Lease{Key: r.SessionKey, Owner: owner, Term: r.LeaseTerm},
		CompactedSeq: r.CompactedSeq, FlushedSeq: r.FlushedSeq, FlushEpoch: epoch, FlushFailures: r.FlushFailures,
		CompactFailures: r.CompactFailures, CompactRetryAt: pg.OrZero(r.CompactRetryAt), RearmTokens: r.RearmTokens,
		ObservedTokens: r.ObservedTokens, ObservedSeq: r.ObservedSeq, CalibrationFactor: r.Calibration,
		Pinned: r.Pinned, PinnedDue: r.PinnedDue, Candidates: r.Candidates, BaseSeq: r.BaseSeq, CompactedAt: pg.OrZero(r.CompactedAt), CompactError: r.CompactError,
		Usage:      sessions.Usage{Prompt: int(r.PromptTokens), Cached: int(r.CachedTokens), Completion: int(r.CompletionTokens)},
		SpentToday: int(spentToday), Settings: string(r.Settings), Suspicion: Suspicion(r.Suspicion), Files: r.Files,
	}
}

// Withheld reads the marks of a row; nil for none.
func Withheld(b []byte) (sessions.Withheld, error) {
	if b == nil {
		return nil, nil
	}
	var w sessions.Withheld
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, fmt.Errorf("reading the models that refuse a row: %w", err)
	}
	return w, nil
}

// Suspicion reads the rows under suspicion of a session; nil for none. An unreadable one is none: the next refusal makes another one.
func Suspicion(b []byte) *sessions.Suspicion {
	var s sessions.Suspicion
	if b == nil || json.Unmarshal(b, &s) != nil {
		return nil
	}
	return &s
}

// messageBody is a message without the fields that are columns of its event, so that an erasure has one place for each. They hide those
// of the embedded message in its JSON.
type messageBody struct {
	sessions.Message
	ID         any             `json:"msg_id,omitempty"`
	SenderID   any             `json:"sender_id,omitempty"`
	SenderNick any             `json:"sender_nick,omitempty"`
	Text       any             `json:"text,omitempty"`
	StaffID    sessions.UserID `json:"staff_id,omitempty"` // differs from the sender's id
	IsStaff    bool            `json:"is_staff,omitempty"` // The sender's id is the staff id.
}

// MessageBody is the JSON of a message without the fields that are columns of its event. [Event] puts them back.
func MessageBody(m sessions.Message) ([]byte, error) {
	b := messageBody{Message: m, StaffID: m.StaffID}
	if m.StaffID == m.SenderID && m.StaffID != "" {
		b.StaffID, b.IsStaff = "", true
	}
	return pg.CleanJSON(b)
}

func (b messageBody) message(e sessions.Event) *sessions.Message {
	m := b.Message
	m.ID, m.SenderID, m.SenderNick, m.Text, m.StaffID = e.MsgID, e.SenderID, e.SenderNick, e.Content, b.StaffID // the same memory
	if b.IsStaff {
		m.StaffID = e.SenderID
	}
	return &m
}

// EventJSON are the columns of a row of the log that are JSON; nil where a query does not read one.
type EventJSON struct{ ToolCalls, Message, Withheld []byte }

// Event completes the event of a row, whose other columns it has, by its JSON.
func Event(e sessions.Event, j EventJSON) (sessions.Event, error) {
	if j.ToolCalls != nil {
		if err := json.Unmarshal(j.ToolCalls, &e.ToolCalls); err != nil {
			return e, fmt.Errorf("reading the tool calls of event %d: %w", e.ID, err)
		}
	}
	if j.Message != nil {
		var b messageBody
		if err := json.Unmarshal(j.Message, &b); err != nil {
			return e, fmt.Errorf("reading the message of event %d: %w", e.ID, err)
		}
		e.Message = b.message(e)
	}
	var err error
	e.Withheld, err = Withheld(j.Withheld)
	return e, err
}

// WholeEvent converts a whole row of the log.
func WholeEvent(r *dbsqlc.Event) (sessions.Event, error) {
	return Event(sessions.Event{
		ID: r.ID, Seq: pg.OrZero(r.Seq), Key: r.SessionKey, Role: r.Role,
		Content: r.Content, SenderID: r.SenderID, SenderNick: r.SenderNick, MsgID: pg.OrZero(r.MsgID),
		ToolCallID: r.ToolCallID, ToolName: r.ToolName,
		Tokens: r.Tokens, State: r.State, Attempts: r.Attempts, Archived: r.IsArchived, CreatedAt: r.CreatedAt,
	}, EventJSON{r.ToolCalls, r.Message, r.Withheld})
}

// Schedule converts a row of a schedule. An unreadable creator is the schedule's Fault.
func Schedule(r *dbsqlc.Schedule) sessions.Schedule {
	s := sessions.Schedule{
		Key: r.SessionKey, ID: r.ID, Kind: r.Kind, State: r.State, DueAt: r.DueAt, Spec: r.Spec, Text: r.Text, Origin: r.Origin,
		CreatedAt: r.CreatedAt, SettledAt: pg.OrZero(r.SettledAt),
	}
	if err := json.Unmarshal(r.Creator, &s.Creator); err != nil {
		s.Creator, s.Fault = sessions.Message{}, fmt.Errorf("reading the creator of a schedule: %w", err)
	}
	return s
}

// Approval converts a row of an approval.
func Approval(r *dbsqlc.Approval) sessions.Approval {
	return sessions.Approval{
		Key: r.SessionKey, ID: r.ID, EventID: r.TurnEventID, Tool: r.Tool, Arguments: r.Arguments, AskedBy: r.AskedBy, State: r.State,
		DecidedBy: r.DecidedBy, DecidedAt: pg.OrZero(r.DecidedAt), DecidedEvent: pg.OrZero(r.DecidedEvent), CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt,
		Webhook: r.Webhook, WebhookExpires: pg.OrZero(r.WebhookExpires),
	}
}

// Events converts whole rows of the log.
func Events(rows []dbsqlc.Event) ([]sessions.Event, error) {
	events := make([]sessions.Event, 0, len(rows))
	for i := range rows {
		e, err := WholeEvent(&rows[i])
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// Summary converts a summary.
func Summary(r *dbsqlc.SessionSummary) (sessions.Summary, error) {
	s := sessions.Summary{
		ID: r.ID, Key: r.SessionKey, StartSeq: r.StartSeq, EndSeq: r.EndSeq, StartMsgID: r.StartMsgID, EndMsgID: r.EndMsgID, MsgCount: r.MsgCount,
		Text: r.Summary, Tokens: r.Tokens, Level: r.Level, Status: r.Status, CreatedAt: r.CreatedAt,
	}
	var err error
	s.Withheld, err = Withheld(r.Withheld)
	return s, err
}

// LogEntry converts a row of the compaction log.
func LogEntry(r *dbsqlc.CompactionLog) sessions.LogEntry {
	return sessions.LogEntry{
		ID: r.ID, Key: r.SessionKey, Trigger: sessions.Trigger(r.Trigger), Policy: r.Policy, Mode: r.Mode, Model: r.Model,
		TokensBefore: r.TokensBefore, TokensAfter: r.TokensAfter, StartSeq: r.StartSeq, EndSeq: r.EndSeq,
		FlushOutcome: sessions.FlushOutcome(r.FlushOutcome), Audit: string(r.Audit), Duration: time.Duration(r.DurationMs) * time.Millisecond,
		Cost:    r.Cost,
		Usage:   sessions.Usage{Prompt: r.PromptTokens, Cached: r.CachedTokens, Completion: r.CompletionTokens},
		Outcome: sessions.CompactionOutcome(r.Outcome), Error: r.Error, Focus: r.Focus, RequestedBy: r.RequestedBy, Undone: pg.OrZero(r.UndoneAt), CreatedAt: r.CreatedAt,
	}
}

// Memory converts a row of a fact. Queries for whole facts select its columns, most of them in this order.
func Memory(r *dbsqlc.MemoriesReadableRow) memory.Memory {
	refused, _ := Withheld(r.Withheld) // unreadable marks are none
	return memory.Memory{
		Withheld: refused,
		ID:       r.ID, Scope: r.Scope, ScopeID: r.ScopeID, Kind: r.Kind, Content: r.Content, Key: r.FactKey,
		SubjectID: r.SubjectID, SaidBy: r.SaidBy, SaidAt: pg.OrZero(r.SaidAt), SourceGroup: r.SourceGroup,
		SourceSession: r.SourceSession, StartSeq: r.StartSeq, EndSeq: r.EndSeq,
		SupersededBy: pg.OrZero(r.SupersededBy), SupersededAt: pg.OrZero(r.SupersededAt), ExpiresAt: pg.OrZero(r.ExpiresAt),
		LastSeenAt: r.LastSeenAt, Seen: r.Seen, PromotedBy: r.PromotedBy, CreatedAt: r.CreatedAt,
	}
}

// Message converts the row of a person's message.
func Message(r dbsqlc.MessagesBeforeRow) (sessions.Event, error) {
	return Event(sessions.Event{
		Key: r.SessionKey, ID: r.ID, Seq: pg.OrZero(r.Seq), Role: sessions.RoleUser, Content: r.Content, SenderID: r.SenderID,
		SenderNick: r.SenderNick, MsgID: pg.OrZero(r.MsgID), State: r.State, CreatedAt: r.CreatedAt,
	}, EventJSON{Message: r.Message})
}

// RangeEvents converts the rows of a range of the log.
func RangeEvents(rows []dbsqlc.EventsRangeRow) ([]sessions.Event, error) {
	events := make([]sessions.Event, 0, len(rows))
	for _, r := range rows {
		e, err := Event(sessions.Event{
			Key: r.SessionKey, ID: r.ID, Seq: pg.OrZero(r.Seq), Role: r.Role, State: r.State, Attempts: r.Attempts, Content: r.Content,
			SenderID: r.SenderID, SenderNick: r.SenderNick, MsgID: pg.OrZero(r.MsgID), ToolCallID: r.ToolCallID,
			ToolName: r.ToolName, Tokens: r.Tokens, Archived: r.IsArchived, CreatedAt: r.CreatedAt,
		}, EventJSON{r.ToolCalls, r.Message, r.Withheld})
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// PinnedRows are the rows of memory that a write pins.
func PinnedRows(p *sessions.Pinned) []int64 { return append([]int64{}, pg.OrZero(p).Rows...) }

// Target reads the target of a reply from its JSON.
func Target(b []byte) (sessions.Target, error) {
	var t sessions.Target
	err := json.Unmarshal(b, &t)
	return t, err
}

// Restarts converts rows of restarts.
func Restarts(rows []dbsqlc.Restart) []sessions.Restart {
	out := make([]sessions.Restart, 0, len(rows))
	for _, r := range rows {
		out = append(out, Restart(r))
	}
	return out
}

// Restart converts a row of a restart.
func Restart(r dbsqlc.Restart) sessions.Restart {
	return sessions.Restart{
		Replica: sessions.ReplicaID(r.Replica), StartedAt: r.StartedAt, StoppedAt: pg.OrZero(r.StoppedAt), Ending: sessions.Ending(r.Ending),
		Figures: sessions.RestartFigures{
			Answered: r.Answered, Drained: r.Drained, Flushed: r.Flushed, Debt: r.Debt, Resumed: r.Resumed,
			Redelivered: r.Redelivered, Doubled: r.Doubled, Lost: r.Lost,
		},
	}
}

// KeptFile converts a row of a kept file, without its keeper's nick.
func KeptFile(r *dbsqlc.File) sessions.KeptFile {
	return sessions.KeptFile{
		Key: r.SessionKey, ID: r.ID, Name: r.Name, Version: r.Version, Kind: sessions.MediaKind(r.Kind), Media: r.MediaID, Bytes: r.Bytes, Pages: r.Pages,
		SentBy: sessions.UserID(r.SentBy), KeptBy: sessions.UserID(r.KeptBy), Event: r.EventID, KeptFrom: r.KeptEvent, KeptAt: r.CreatedAt,
	}
}
