package console

import (
	"maps"
	"slices"
	"time"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
)

// each converts all rows; the result is never null in JSON.
func each[T, V any](rows []T, view func(T) V) []any {
	out := make([]any, len(rows))
	for i, row := range rows {
		out[i] = view(row)
	}
	return out
}

type sessionJSON struct {
	Key          sessions.Key            `json:"session_key"`
	Title        string                  `json:"title"`
	Conversation sessions.ConversationID `json:"conversation_id"`
	Private      bool                    `json:"private"`
	Tokens       int                     `json:"total_tokens"`
	LastSeq      int64                   `json:"last_seq"`
	CompactedSeq int64                   `json:"compacted_seq"`
	FlushedSeq   int64                   `json:"flushed_seq"`
	Compactions  int                     `json:"compaction_count"`
	Flushes      int                     `json:"flush_count"`
	Model        string                  `json:"model"`
	Waiting      int                     `json:"waiting"`
	Dead         int                     `json:"dead"`
	Owed         bool                    `json:"flush_owed"`
	LastActiveAt time.Time               `json:"last_active_at"`
}

func viewSession(r pages.SessionRow) sessionJSON {
	return sessionJSON{
		Key: r.Key, Title: r.Title, Conversation: r.ConversationID, Private: private(r.Session), Tokens: r.TotalTokens, LastSeq: r.LastSeq,
		CompactedSeq: r.CompactedSeq, FlushedSeq: r.FlushedSeq, Compactions: r.CompactionCount, Flushes: r.FlushCount, Model: r.Model,
		Waiting: r.Waiting, Dead: r.Dead, Owed: r.Owed, LastActiveAt: r.LastActiveAt,
	}
}

type eventJSON struct {
	ID        int64               `json:"id"`
	Seq       int64               `json:"seq"`
	Role      sessions.Role       `json:"role"`
	Content   string              `json:"content"`
	Sender    sessions.UserID     `json:"sender_id,omitempty"`
	Nick      string              `json:"sender_nick,omitempty"`
	ToolCalls []sessions.ToolCall `json:"tool_calls,omitempty"`
	ToolName  string              `json:"tool_name,omitempty"`
	Tokens    int                 `json:"tokens"`
	State     sessions.State      `json:"state"`
	CreatedAt time.Time           `json:"created_at"`
	Withheld  []withheldJSON      `json:"withheld,omitempty"`
}

// withheldJSON is a model whose requests leave out parts of the row.
type withheldJSON struct {
	Model sessions.ModelID        `json:"model"`
	Parts []sessions.WithheldPart `json:"parts"`
	Class string                  `json:"class"`
	At    time.Time               `json:"at"`
}

func viewWithheld(w sessions.Withheld) (list []withheldJSON) {
	for _, m := range slices.Sorted(maps.Keys(w)) {
		list = append(list, withheldJSON{m, w[m].Parts, w[m].Class, w[m].At})
	}
	return list
}

func viewEvent(e sessions.Event) eventJSON {
	return eventJSON{
		ID: e.ID, Seq: e.Seq, Role: e.Role, Content: e.Content, Sender: e.SenderID, Nick: e.SenderNick, ToolCalls: e.ToolCalls,
		ToolName: e.ToolName, Tokens: e.Tokens, State: e.State, CreatedAt: e.CreatedAt, Withheld: viewWithheld(e.Withheld),
	}
}

type compactionJSON struct {
	ID           int64        `json:"id"`
	Key          sessions.Key `json:"session_key"`
	Trigger      string       `json:"trigger"`
	Policy       string       `json:"policy"`
	Mode         string       `json:"mode"`
	Model        string       `json:"model"`
	Outcome      string       `json:"outcome"`
	Error        string       `json:"error"`
	TokensBefore int          `json:"tokens_before"`
	TokensAfter  int          `json:"tokens_after"`
	StartSeq     int64        `json:"start_seq"`
	EndSeq       int64        `json:"end_seq"`
	Cost         float64      `json:"cost"`
	DurationMS   int64        `json:"duration_ms"`
	RequestedBy  string       `json:"requested_by,omitempty"`
	Requester    string       `json:"requested_by_nick,omitempty"`
	UndoneAt     time.Time    `json:"undone_at,omitzero"`
	CreatedAt    time.Time    `json:"created_at"`
}

func viewCompaction(r pages.CompactionRow) compactionJSON {
	return compactionJSON{
		ID: r.ID, Key: r.Key, Trigger: r.Trigger, Policy: r.Policy, Mode: r.Mode, Model: r.Model, Outcome: r.Outcome, Error: r.Error,
		TokensBefore: r.TokensBefore, TokensAfter: r.TokensAfter, StartSeq: r.StartSeq, EndSeq: r.EndSeq, Cost: r.Cost,
		DurationMS: r.Duration.Milliseconds(), RequestedBy: r.RequestedBy, Requester: r.RequesterNick, UndoneAt: r.Undone, CreatedAt: r.CreatedAt,
	}
}

type memoryJSON struct {
	ID           int64           `json:"id"`
	Scope        memory.Scope    `json:"scope"`
	ScopeID      string          `json:"scope_id"`
	Kind         memory.Kind     `json:"kind"`
	Content      string          `json:"content"`
	Subject      sessions.UserID `json:"subject_id,omitempty"`
	SaidBy       sessions.UserID `json:"said_by,omitempty"`
	Session      sessions.Key    `json:"source_session"`
	StartSeq     int64           `json:"start_seq"`
	EndSeq       int64           `json:"end_seq"`
	SupersededBy int64           `json:"superseded_by,omitempty"`
	ExpiresAt    time.Time       `json:"expires_at,omitzero"`
	CreatedAt    time.Time       `json:"created_at"`
	Withheld     []withheldJSON  `json:"withheld,omitempty"`
}

func viewMemory(m memory.Memory) memoryJSON {
	return memoryJSON{
		ID: m.ID, Scope: m.Scope, ScopeID: m.ScopeID, Kind: m.Kind, Content: m.Content, Subject: m.SubjectID, SaidBy: m.SaidBy,
		Session: m.SourceSession, StartSeq: m.StartSeq, EndSeq: m.EndSeq, SupersededBy: m.SupersededBy, ExpiresAt: m.ExpiresAt, CreatedAt: m.CreatedAt,
		Withheld: viewWithheld(m.Withheld),
	}
}

type restartJSON struct {
	Replica   sessions.ReplicaID      `json:"replica"`
	StartedAt time.Time               `json:"started_at"`
	StoppedAt time.Time               `json:"stopped_at,omitzero"`
	Ending    sessions.Ending         `json:"ending"`
	Figures   sessions.RestartFigures `json:"figures"`
}

func viewRestart(r sessions.Restart) restartJSON {
	return restartJSON{r.Replica, r.StartedAt, r.StoppedAt, r.Ending, r.Figures}
}

type costJSON struct {
	Key        sessions.Key    `json:"session_key,omitempty"`
	Title      string          `json:"title,omitempty"`
	Day        string          `json:"day,omitempty"`
	Model      string          `json:"model,omitempty"`
	Person     sessions.UserID `json:"person_id,omitempty"`
	Nick       string          `json:"person_nick,omitempty"`
	Kind       string          `json:"kind"`
	Turns      int             `json:"turns"`
	Prompt     int             `json:"prompt_tokens"`
	Cached     int             `json:"cached_tokens"`
	Completion int             `json:"completion_tokens"`
	Cost       float64         `json:"cost"`
}

func viewCost(c pages.Cost) costJSON {
	return viewUsage(pages.Usage{Key: c.Key, Day: c.Day, Turns: c.Turns, Spending: c.Spending})
}

func viewUsage(u pages.Usage) costJSON {
	return costJSON{
		Key: u.Key, Title: u.Title, Day: u.Day, Model: u.Model, Person: u.Person, Nick: u.Nick, Kind: string(u.Kind),
		Turns: u.Turns, Prompt: u.Usage.Prompt, Cached: u.Usage.Cached, Completion: u.Usage.Completion, Cost: u.Cost,
	}
}
