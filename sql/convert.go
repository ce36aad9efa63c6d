package sql

import (
	"encoding/json"
	"fmt"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

func toSession(r *dbsqlc.Session, spentToday int64) sessions.Session {
	owner := orZero(r.LeaseOwner)
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
		CompactFailures: r.CompactFailures, CompactRetryAt: orZero(r.CompactRetryAt), RearmTokens: r.RearmTokens,
		ObservedTokens: r.ObservedTokens, ObservedSeq: r.ObservedSeq, CalibrationFactor: r.Calibration,
		Pinned: r.Pinned, PinnedDue: r.PinnedDue, Candidates: r.Candidates, BaseSeq: r.BaseSeq, CompactedAt: orZero(r.CompactedAt), CompactError: r.CompactError,
		Usage:      sessions.Usage{Prompt: int(r.PromptTokens), Cached: int(r.CachedTokens), Completion: int(r.CompletionTokens)},
		SpentToday: int(spentToday), Settings: string(r.Settings),
	}
}

func toEvent(r *dbsqlc.Event) (sessions.Event, error) {
	e := sessions.Event{
		ID: r.ID, Seq: orZero(r.Seq), Key: r.SessionKey, Role: r.Role,
		Content: r.Content, SenderID: r.SenderID, SenderNick: r.SenderNick, MsgID: orZero(r.MsgID),
		ToolCallID: r.ToolCallID, ToolName: r.ToolName,
		Tokens: r.Tokens, State: r.State, Attempts: r.Attempts, Archived: r.IsArchived, CreatedAt: r.CreatedAt,
	}
	if r.ToolCalls != nil {
		if err := json.Unmarshal(r.ToolCalls, &e.ToolCalls); err != nil {
			return e, fmt.Errorf("reading the tool calls of event %d: %w", r.ID, err)
		}
	}
	if r.Message != nil {
		e.Message = new(sessions.Message)
		if err := json.Unmarshal(r.Message, e.Message); err != nil {
			return e, fmt.Errorf("reading the message of event %d: %w", r.ID, err)
		}
	}
	return e, nil
}

// toShown is an event as the view shows it.
func toShown(r *dbsqlc.EventsViewRow) (sessions.Event, error) {
	e, err := toEvent(&dbsqlc.Event{
		SessionKey: r.SessionKey, ID: r.ID, Seq: r.Seq, Role: r.Role, State: r.State, Attempts: r.Attempts, Content: r.Content,
		SenderID: r.SenderID, SenderNick: r.SenderNick, MsgID: r.MsgID, ToolCalls: r.ToolCalls, ToolCallID: r.ToolCallID,
		ToolName: r.ToolName, Tokens: r.Tokens, IsArchived: r.IsArchived, Message: r.Message, CreatedAt: r.CreatedAt,
	})
	e.Blob = orZero(r.BlobID)
	if e.Message != nil && e.Message.Text == "" {
		e.Message.Text = e.Content // the same memory
	}
	return e, err
}

func toEvents(rows []dbsqlc.Event) ([]sessions.Event, error) {
	events := make([]sessions.Event, 0, len(rows))
	for i := range rows {
		e, err := toEvent(&rows[i])
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// summaryJSON is a row of session_summaries as PostgreSQL writes it in JSON.
type summaryJSON struct {
	SessionKey sessions.Key           `json:"session_key"`
	ID         int64                  `json:"id"`
	Level      int                    `json:"level"`
	StartSeq   int64                  `json:"start_seq"`
	EndSeq     int64                  `json:"end_seq"`
	StartMsgID int64                  `json:"start_msg_id"`
	EndMsgID   int64                  `json:"end_msg_id"`
	MsgCount   int                    `json:"msg_count"`
	Summary    string                 `json:"summary"`
	Tokens     int                    `json:"tokens"`
	Status     sessions.SummaryStatus `json:"status"`
	CreatedAt  time.Time              `json:"created_at"`
}

func toSummaries(b []byte) ([]sessions.Summary, error) {
	var rows []summaryJSON
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, fmt.Errorf("reading summaries: %w", err)
	}
	summaries := make([]sessions.Summary, 0, len(rows))
	for _, r := range rows {
		summaries = append(summaries, sessions.Summary{
			ID: r.ID, Key: r.SessionKey, StartSeq: r.StartSeq, EndSeq: r.EndSeq,
			StartMsgID: r.StartMsgID, EndMsgID: r.EndMsgID, MsgCount: r.MsgCount,
			Text: r.Summary, Tokens: r.Tokens, Level: r.Level, Status: r.Status, CreatedAt: r.CreatedAt,
		})
	}
	return summaries, nil
}

// runJSON is a row of tool_runs as PostgreSQL writes it in JSON.
type runJSON struct {
	EventID   int64  `json:"event_id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Finished  bool   `json:"finished"`
	Result    string `json:"result"`
}

func toRuns(b []byte) ([]sessions.ToolRun, error) {
	var rows []runJSON
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, fmt.Errorf("reading tool runs: %w", err)
	}
	runs := make([]sessions.ToolRun, 0, len(rows))
	for _, r := range rows {
		runs = append(runs, sessions.ToolRun{
			Call:    sessions.ToolCall{ID: r.CallID, Name: r.Name, Arguments: r.Arguments},
			EventID: r.EventID, Finished: r.Finished, Result: r.Result,
		})
	}
	return runs, nil
}

func toLogEntry(r *dbsqlc.CompactionLog) sessions.LogEntry {
	return sessions.LogEntry{
		ID: r.ID, Key: r.SessionKey, Trigger: r.Trigger, Policy: r.Policy, Mode: r.Mode, Model: r.Model,
		TokensBefore: r.TokensBefore, TokensAfter: r.TokensAfter, StartSeq: r.StartSeq, EndSeq: r.EndSeq,
		FlushOutcome: r.FlushOutcome, Audit: string(r.Audit), Duration: time.Duration(r.DurationMs) * time.Millisecond,
		Cost:    r.Cost,
		Usage:   sessions.Usage{Prompt: r.PromptTokens, Cached: r.CachedTokens, Completion: r.CompletionTokens},
		Outcome: r.Outcome, Error: r.Error, Focus: r.Focus, Undone: orZero(r.UndoneAt), CreatedAt: r.CreatedAt,
	}
}

func toMemory(r *dbsqlc.Memory) memory.Memory {
	return memory.Memory{
		ID: r.ID, Scope: r.Scope, ScopeID: r.ScopeID, Kind: r.Kind, Content: r.Content, Key: r.FactKey,
		SubjectID: r.SubjectID, SaidBy: r.SaidBy, SaidAt: orZero(r.SaidAt), SourceGroup: r.SourceGroup,
		SourceSession: r.SourceSession, StartSeq: r.StartSeq, EndSeq: r.EndSeq,
		SupersededBy: orZero(r.SupersededBy), SupersededAt: orZero(r.SupersededAt), ExpiresAt: orZero(r.ExpiresAt),
		LastSeenAt: r.LastSeenAt, Seen: r.Seen, PromotedBy: r.PromotedBy, CreatedAt: r.CreatedAt,
	}
}

func rangeEvents(rows []dbsqlc.EventsRangeRow) ([]sessions.Event, error) {
	events := make([]sessions.Event, 0, len(rows))
	for _, r := range rows {
		e, err := toEvent(&dbsqlc.Event{
			SessionKey: r.SessionKey, ID: r.ID, Seq: r.Seq, Role: r.Role, State: r.State, Attempts: r.Attempts, Content: r.Content,
			SenderID: r.SenderID, SenderNick: r.SenderNick, MsgID: r.MsgID, ToolCalls: r.ToolCalls, ToolCallID: r.ToolCallID,
			ToolName: r.ToolName, Tokens: r.Tokens, IsArchived: r.IsArchived, Message: r.Message, CreatedAt: r.CreatedAt,
		})
		if err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// pinnedRows are the rows of memory that a write pins.
func pinnedRows(p *sessions.Pinned) []int64 { return append([]int64{}, orZero(p).Rows...) }

func toTarget(b []byte) (sessions.Target, error) {
	var t sessions.Target
	err := json.Unmarshal(b, &t)
	return t, err
}

func restarts(rows []dbsqlc.Restart) []sessions.Restart {
	out := make([]sessions.Restart, 0, len(rows))
	for _, r := range rows {
		out = append(out, restart(r))
	}
	return out
}

func restart(r dbsqlc.Restart) sessions.Restart {
	return sessions.Restart{
		Replica: sessions.ReplicaID(r.Replica), StartedAt: r.StartedAt, StoppedAt: orZero(r.StoppedAt), Ending: sessions.Ending(r.Ending),
		Figures: sessions.RestartFigures{
			Answered: r.Answered, Drained: r.Drained, Flushed: r.Flushed, Debt: r.Debt, Resumed: r.Resumed,
			Redelivered: r.Redelivered, Doubled: r.Doubled, Lost: r.Lost,
		},
	}
}
