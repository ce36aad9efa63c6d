package memory

import (
	"context"

	"ebb/sessions"
)

// OverfullScope is a scope with too many memories in force.
type OverfullScope struct {
	Scope   Scope
	ScopeID string
	Held    int
}

// FactGroup is a set of memories that may be consolidated: with one source, speaker and subject, so that the readers
// stay the same.
type FactGroup struct {
	Scope   Scope
	ScopeID string
	Session sessions.Key
	Group   string
	Subject sessions.UserID
	Speaker sessions.UserID
	Held    int
	Reads   sessions.ModelID // as in [Reader]
}

// Upkeep is the storage of memory's periodic jobs.
type Upkeep interface {
	// DeleteExpired deletes memories that were unreadable for long, and counts them.
	DeleteExpired(ctx context.Context) (int, error)
	// OverfullScopes lists scopes with more than limit memories in force behind after, the fullest first; zero is the
	// beginning.
	OverfullScopes(ctx context.Context, limit int, after OverfullScope) ([]OverfullScope, error)
	// FactGroups lists a scope's groups of two or more memories, the largest first.
	FactGroups(ctx context.Context, c OverfullScope) ([]FactGroup, error)
	// Oldest lists the oldest memories in force of a group, at most limit.
	Oldest(ctx context.Context, p FactGroup, limit int) ([]Memory, error)
	// WithholdFacts marks facts that a model refuses.
	WithholdFacts(ctx context.Context, w sessions.Withholding) error
	// Consolidate replaces old by the drafts, atomically, or fails with [sessions.ErrConflict] if one of old is no
	// longer in force.
	Consolidate(ctx context.Context, old []Memory, drafts []Draft) (Receipt, error)
}
