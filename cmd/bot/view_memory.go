package main

import (
	"fmt"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// memoryView is a memory as --json shows it.
type memoryView struct {
	ID            int64           `json:"id"`
	Scope         memory.Scope    `json:"scope"`
	ScopeID       string          `json:"scope_id"`
	Kind          memory.Kind     `json:"kind"`
	Content       string          `json:"content"`
	Key           string          `json:"fact_key,omitzero"`
	SubjectID     sessions.UserID `json:"subject_id,omitzero"`
	SaidBy        sessions.UserID `json:"said_by,omitzero"`
	SaidAt        time.Time       `json:"said_at,omitzero"`
	SourceGroup   string          `json:"source_group,omitzero"`
	SourceSession sessions.Key    `json:"source_session"`
	StartSeq      int64           `json:"start_seq"`
	EndSeq        int64           `json:"end_seq"`
	SupersededBy  int64           `json:"superseded_by,omitzero"`
	SupersededAt  time.Time       `json:"superseded_at,omitzero"`
	ExpiresAt     time.Time       `json:"expires_at,omitzero"`
	LastSeenAt    time.Time       `json:"last_seen_at"`
	Seen          int             `json:"seen"`
	PromotedBy    sessions.UserID `json:"promoted_by,omitzero"`
	CreatedAt     time.Time       `json:"created_at"`
	SaidByNick    string          `json:"said_by_nick,omitzero"` // last seen where it was said
	SubjectNick   string          `json:"subject_nick,omitzero"`
}

func viewMemory(m memory.Memory) memoryView { return memoryView(m) }

// said is when a memory was said, as far as that is known.
func (m memoryView) said() time.Time {
	if m.SaidAt.IsZero() {
		return m.CreatedAt
	}
	return m.SaidAt
}

// state says whether a memory is read, and what stands in its place.
func (m memoryView) state(now time.Time) string {
	switch {
	case m.SupersededBy != 0:
		return fmt.Sprintf("superseded by %d", m.SupersededBy)
	case !m.ExpiresAt.IsZero() && !m.ExpiresAt.After(now):
		return "expired"
	}
	return "in force"
}
