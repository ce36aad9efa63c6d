package memory

import (
	"time"

	"ebb/sessions"
)

// Scope is the kind of readers of a memory. A scope id names one reader of the kind: a person, a conversation, a
// session.
type Scope string

// The scopes.
const (
	ScopeUser    Scope = "user"    // about one person: read where that person speaks
	ScopeGroup   Scope = "group"   // one conversation: read by all its members
	ScopeTeam    Scope = "team"    // the whole organisation
	ScopeSession Scope = "session" // one session: state of work, temporary
)

// Kind is the topic of a fact; with the subject and the kind of chat it decides the scope.
type Kind string

// The kinds of facts that a model may save.
const (
	KindFact       Kind = "fact"       // anything else worth keeping
	KindProfile    Kind = "profile"    // a person's role and description
	KindPreference Kind = "preference" // a person's wishes
	KindDecision   Kind = "decision"   // a decision, a rule
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
	// Key is the attribute of which the fact is the value, as in "release date"; empty for none. In one scope the
	// newest fact of a key about a subject is in force, and supersedes those before it.
	Key       string
	SubjectID sessions.UserID // the person that it is about; empty for none in particular
	SaidBy    sessions.UserID // the speaker; empty if it is in no person's own words
	SaidAt    time.Time       // zero if unknown
	// SourceGroup is the [GroupID] of the conversation of origin, and empty for a private chat. Facts of a private chat
	// are never read in a group.
	SourceGroup   string
	SourceSession sessions.Key
	StartSeq      int64 // source events; 0 if it was saved before its turn committed
	EndSeq        int64
	SupersededBy  int64 // 0: in force
	SupersededAt  time.Time
	ExpiresAt     time.Time // no reader sees it from then on; zero: it stays
	LastSeenAt    time.Time // when it was last said again
	Seen          int       // how often it was said
	PromotedBy    sessions.UserID
	CreatedAt     time.Time
	// SaidByNick and SubjectNick are the nicks of these people in a shown memory, empty if unknown. They are read from
	// the log and never stored.
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
	// SubjectIsValue says that the person is the value of the fact's key, such as the owner of a thing. The next person
	// is then another value of the same key.
	SubjectIsValue bool
	SaidBy         sessions.UserID
	SaidAt         time.Time
	SourceGroup    string
	StartSeq       int64 // source events, if they are known; 0: those of the whole flush
	EndSeq         int64
	ExpiresAt      time.Time
}

// Receipt lists the result of a save: the rows that now hold the facts, new ones and existing duplicates, and the rows
// that new ones corrected.
type Receipt struct {
	Saved      []int64
	Duplicate  []int64
	Superseded []int64
	// Unknown are the ids that drafts of a turn were to replace and that their scopes do not hold. Those drafts were
	// not stored. The model gets an error and can correct them.
	Unknown []int64
}

// Rows is the number of rows that hold the saved facts.
func (r Receipt) Rows() int { return len(r.Saved) + len(r.Duplicate) }

// Source narrows a search.
type Source string

// The sources of finds.
const (
	FromAll      Source = ""
	FromMemories Source = "memories"
	FromEvents   Source = "events"
)

// Query is a search.
type Query struct {
	Text  string
	Limit int
	From  Source
	Now   time.Time // the reference of "yesterday"; zero: now
	Chars int       // characters of one event in a hit; 0: the store's own bound
}

// Hit is one find of a search, over memories and the event log.
type Hit struct {
	Path     string // virtual path, for memory_get
	MemoryID int64  // id of a memory; else 0
	Seq      int64  // place of an event; else 0
	Content  string
	Who      string // the speaker; of a memory also the subject: see [Memory.Source]
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
	Key     string `json:"key,omitempty"`     // attribute whose value it is
	// Replaces is the id of the known memory that it corrects; 0 for none.
	Replaces int64  `json:"replaces,omitempty"`
	By       string `json:"by,omitempty"` // name or id of the person who said it
}

// HeadOf shortens a model's text before it is returned to it.
func HeadOf(s string) string {
	if rs := []rune(s); len(rs) > 80 {
		return string(rs[:80]) + "…"
	}
	return s
}
