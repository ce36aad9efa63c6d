package memory

import (
	"time"

	"ebb/sessions"
)

// Scope says who may read a memory. A scope id names the one of its kind: a person, a conversation, a session.
type Scope string

// The scopes.
const (
	ScopeUser    Scope = "user"    // about one person: read where that person speaks
	ScopeGroup   Scope = "group"   // of one conversation: read by everybody in it
	ScopeTeam    Scope = "team"    // of the whole organisation
	ScopeSession Scope = "session" // of one session: state of work, temporary
)

// Kind is what a fact is about; with the subject and the kind of chat it decides the scope.
type Kind string

// The kinds of facts that a model may save.
const (
	KindFact       Kind = "fact"       // anything else worth keeping
	KindProfile    Kind = "profile"    // who somebody is
	KindPreference Kind = "preference" // how somebody wants things
	KindDecision   Kind = "decision"   // what was decided, a rule
	KindTask       Kind = "task"       // state of work, a promise, a deadline
)

// MaxContent is the longest content of one memory, in characters. Longer facts are split, not cut.
const MaxContent = 400

// Memory is one row of memories.
type Memory struct {
	ID            int64
	Scope         Scope
	ScopeID       string
	Kind          Kind
	Content       string
	SubjectID     sessions.UserID // whom it is about; empty for nobody in particular
	SourceSession sessions.Key
	StartSeq      int64 // events that it was drawn from; 0 where it was saved before its turn committed
	EndSeq        int64
	SupersededBy  int64 // 0: in force
	CreatedAt     time.Time
}

// Draft is a fact on its way in: scope decided, source known.
type Draft struct {
	Scope     Scope
	ScopeID   string
	Kind      Kind
	Content   string
	SubjectID sessions.UserID
}

// Receipt proves what a save did: the rows that now hold the facts, new ones and exact duplicates that were there.
type Receipt struct {
	Saved     []int64
	Duplicate []int64
}

// Rows is the number of rows that hold what was to be saved.
func (r Receipt) Rows() int { return len(r.Saved) + len(r.Duplicate) }

// Hit is one find of a search, over memories and the event log.
type Hit struct {
	Path    string // virtual path, for memory_get
	Content string
	Who     string
	At      time.Time
	Score   float64
}
