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
	ID      int64
	Scope   Scope
	ScopeID string
	Kind    Kind
	Content string
	// Key is what the fact is the value of, as in "release date"; empty for none. In one scope the newest fact of a key
	// about a subject is in force, and supersedes those before it.
	Key       string
	SubjectID sessions.UserID // whom it is about; empty for nobody in particular
	SaidBy    sessions.UserID // empty where nobody is known to have said it in their own words
	SaidAt    time.Time       // zero where that is not known
	// SourceGroup is the [GroupID] of the conversation that it was said in, and empty for a private chat: what was said
	// there is never read in a group.
	SourceGroup   string
	SourceSession sessions.Key
	StartSeq      int64 // events that it was drawn from; 0 where it was saved before its turn committed
	EndSeq        int64
	SupersededBy  int64 // 0: in force
	SupersededAt  time.Time
	ExpiresAt     time.Time // nobody reads it from then on; zero: it stays
	LastSeenAt    time.Time // when it was last said again
	Seen          int       // how often it was said
	PromotedBy    sessions.UserID
	CreatedAt     time.Time
	// SaidByNick and SubjectNick are the nicks of these people where the memory is shown, empty where none is known. They
	// are read from the log and never stored.
	SaidByNick  string
	SubjectNick string
}

// Draft is a fact on its way in: scope decided, source known.
type Draft struct {
	Scope     Scope
	ScopeID   string
	Kind      Kind
	Content   string
	Key       string // see [Memory]
	Replaces  int64  // id of the memory in the same scope that it corrects; 0 for none known
	SubjectID sessions.UserID
	// SubjectIsValue says that the person is what the fact tells of its key, as who owns something: who comes after is
	// another value of the same.
	SubjectIsValue bool
	SaidBy         sessions.UserID
	SaidAt         time.Time
	SourceGroup    string
	StartSeq       int64 // the events that say it, where they are known; 0: those of the whole flush
	EndSeq         int64
	ExpiresAt      time.Time
}

// Receipt proves what a save did: the rows that now hold the facts, new ones and duplicates that were there, and those
// that new ones corrected.
type Receipt struct {
	Saved      []int64
	Duplicate  []int64
	Superseded []int64
	// Unknown are the ids that drafts of a turn were to replace and that their scopes do not hold. Those drafts were not
	// stored: the model is told, and can do better.
	Unknown []int64
}

// Rows is the number of rows that hold what was to be saved.
func (r Receipt) Rows() int { return len(r.Saved) + len(r.Duplicate) }

// Source narrows a search.
type Source string

// The sources of finds.
const (
	FromAll      Source = ""
	FromMemories Source = "memories"
	FromEvents   Source = "events"
)

// Query is what a search looks for.
type Query struct {
	Text  string
	Limit int
	From  Source
	Now   time.Time // what "yesterday" is told from; zero: now
	Chars int       // of one event that a hit shows; 0: the store's own bound
}

// Hit is one find of a search, over memories and the event log.
type Hit struct {
	Path     string // virtual path, for memory_get
	MemoryID int64  // of a memory; else 0
	Seq      int64  // of an event; else 0
	Content  string
	Who      string // who said it; of a memory also whom it is about: see [Memory.Source]
	At       time.Time
	Score    float64
	// Why it matched, in short words for a model: terms, a person, a date.
	Why []string
	// Outdated says that a memory drawn from this event was corrected later.
	Outdated bool
}

// GroupID is the scope id of a conversation: two robots in one group do not share memory.
func GroupID(robot sessions.RobotCode, conversation sessions.ConversationID) string {
	return string(sessions.NewKey(robot, conversation, ""))
}

// Fact is one item of a memory_save call, as the model wrote it.
type Fact struct {
	Content string `json:"content"`
	Kind    Kind   `json:"kind"`
	Subject string `json:"subject,omitempty"` // name or id of the person it is about
	Key     string `json:"key,omitempty"`     // what it is the value of
	// Replaces is the id of the known memory that it corrects; 0 for none.
	Replaces int64  `json:"replaces,omitempty"`
	By       string `json:"by,omitempty"` // name or id of the person who said it
}

// HeadOf shortens what a model wrote before it is said back.
func HeadOf(s string) string {
	if rs := []rune(s); len(rs) > 80 {
		return string(rs[:80]) + "…"
	}
	return s
}
