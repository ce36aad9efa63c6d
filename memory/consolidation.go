package memory

import (
	"context"
	"ebb/sessions"
)

// DefaultMaxPerScope is how many memories one scope holds before they are consolidated, where nothing else is said.
const DefaultMaxPerScope = 500

// OverfullScope is a scope that holds more memories in force than it should.
type OverfullScope struct {
	Scope   Scope
	ScopeID string
	Held    int
}

// FactGroup is what may be consolidated of a crowded scope: memories of one source, said by one person, and about one person or
// about no person in particular. The same people may read them, and a new memory says who said it.
type FactGroup struct {
	Scope   Scope
	ScopeID string
	Session sessions.Key
	Group   string
	Subject sessions.UserID
	Speaker sessions.UserID
	Held    int
}

// ConsolidationStore is what a [Consolidator] needs of the storage.
type ConsolidationStore interface {
	// OverfullScopes lists scopes with more than limit memories in force, the fullest first, those behind after; its zero value
	// is the beginning, and an empty list the end.
	OverfullScopes(ctx context.Context, limit int, after OverfullScope) ([]OverfullScope, error)
	// FactGroups lists what a scope's memories that may be told as fewer fall into, the highest first: those of two or more.
	FactGroups(ctx context.Context, c OverfullScope) ([]FactGroup, error)
	// Oldest lists the oldest memories in force of a pile, at most limit.
	Oldest(ctx context.Context, p FactGroup, limit int) ([]Memory, error)
	// Consolidate stores the drafts in the place of old: all or nothing. It fails with [sessions.ErrConflict] where one of
	// old is no longer in force.
	Consolidate(ctx context.Context, old []Memory, drafts []Draft) (Receipt, error)
}
