package memory

import (
	"context"
	"ebb/sessions"
)

// DefaultMaxPerScope is how many memories one scope holds before they are consolidated, where nothing else is said.
const DefaultMaxPerScope = 500

// Crowded is a scope that holds more memories in force than it should.
type Crowded struct {
	Scope   Scope
	ScopeID string
	Held    int
}

// Pile is what may be consolidated of a crowded scope: memories of one source, said by one person, and about one person or
// about no person in particular. The same people may read them, and a new memory says who said it.
type Pile struct {
	Scope   Scope
	ScopeID string
	Session sessions.Key
	Group   string
	Subject sessions.UserID
	Speaker sessions.UserID
	Held    int
}

// Crowd is what a [Consolidator] needs of the storage.
type Crowd interface {
	// Overfull lists scopes with more than limit memories in force, the fullest first, those behind after; its zero value
	// is the beginning, and an empty list the end.
	Overfull(ctx context.Context, limit int, after Crowded) ([]Crowded, error)
	// Piles lists what a scope's memories that may be told as fewer fall into, the highest first: those of two or more.
	Piles(ctx context.Context, c Crowded) ([]Pile, error)
	// Oldest lists the oldest memories in force of a pile, at most limit.
	Oldest(ctx context.Context, p Pile, limit int) ([]Memory, error)
	// Consolidate stores the drafts in the place of old: all or nothing. It fails with [sessions.ErrConflict] where one of
	// old is no longer in force.
	Consolidate(ctx context.Context, old []Memory, drafts []Draft) (Receipt, error)
}
