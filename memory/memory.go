package memory

import (
	"slices"
	"time"

	"ebb/sessions"
)

// Scope is the kind of readers of a memory. A scope id names one: a person, a conversation, a session.
type Scope string

// The scopes.
const (
	ScopeUser    Scope = "user"    // about one person: read where that person speaks
	ScopeGroup   Scope = "group"   // read by all members of one conversation
	ScopeTeam    Scope = "team"    // read by the whole organisation
	ScopeSession Scope = "session" // one session's temporary state of work
)

// Kind is the topic of a fact; with the subject and the kind of chat it decides the scope.
type Kind string

// The kinds of facts that a model may save.
const (
	KindFact       Kind = "fact"       // anything else
	KindProfile    Kind = "profile"    // a person's role and description
	KindPreference Kind = "preference" // a person's wishes
	KindDecision   Kind = "decision"   // a decision, a rule
	KindTask       Kind = "task"       // state of work, a promise, a deadline
)

// MaxContent is the bound of one memory, in characters. Longer facts are split, not cut.
const MaxContent = 400

// Memory is one row of memories.
type Memory struct {
	ID      int64
	Scope   Scope
	ScopeID string
	Kind    Kind
	Content string
	// Key is the attribute whose value the fact is, as in "release date"; empty for none. Only the newest of a key,
	// subject and scope is in force.
	Key       string
	SubjectID sessions.UserID // empty for no person in particular
	SaidBy    sessions.UserID // empty if it is in no person's own words
	SaidAt    time.Time       // zero if unknown
	// SourceGroup is its conversation's [GroupID], empty for a private chat, whose facts no group reads.
	SourceGroup   string
	SourceSession sessions.Key
	StartSeq      int64 // source events; 0 if it was saved before its turn committed
	EndSeq        int64
	SupersededBy  int64 // 0: in force
	SupersededAt  time.Time
	ExpiresAt     time.Time // end of its readability; zero: none
	LastSeenAt    time.Time // the last repetition
	Seen          int       // times it was said
	PromotedBy    sessions.UserID
	CreatedAt     time.Time
	// SaidByNick and SubjectNick come from the log for display and are never stored; empty if unknown.
	SaidByNick  string
	SubjectNick string
	Withheld    sessions.Withheld // models that refuse it
}

// Private reports whether the memory was said in a private chat.
func (m Memory) Private() bool { return m.SourceGroup == "" }

// PrivateSource returns the session of the first private value of a fact; ok is false if all were said in groups.
func PrivateSource(values []Memory) (key sessions.Key, ok bool) {
	i := slices.IndexFunc(values, Memory.Private)
	if i < 0 {
		return "", false
	}
	return values[i].SourceSession, true
}

// Draft is a fact before it is stored.
type Draft struct {
	Scope     Scope
	ScopeID   string
	Kind      Kind
	Content   string
	Key       string // see [Memory]
	Replaces  int64  // id of the memory in the same scope that it corrects; 0: unknown
	SubjectID sessions.UserID
	// SubjectIsValue says that the person is the value of Key, such as the owner of a thing.
	SubjectIsValue bool
	SaidBy         sessions.UserID
	SaidAt         time.Time
	SourceGroup    string
	StartSeq       int64 // source events; 0: those of the whole flush
	EndSeq         int64
	ExpiresAt      time.Time
}

// Receipt lists the rows that now hold the facts, new or known before, and the corrected ones.
type Receipt struct {
	Saved      []int64
	Duplicate  []int64
	Superseded []int64
	New        []Draft // the drafts of Saved, in its order
	// Unknown are ids that drafts were to replace and their scopes do not hold. Those drafts were not stored; the
	// model gets an error.
	Unknown []int64
}

// Rows is the number of rows that prove a flush: new facts, and those that memory held before.
func (r Receipt) Rows() int { return len(r.Saved) + len(r.Duplicate) }

// Source narrows a search.
type Source string

// The sources of finds.
const (
	FromAll      Source = ""
	FromMemories Source = "memories"
	FromEvents   Source = "events"
	FromFiles    Source = "files" // pages of kept files
)

// Query is a search.
type Query struct {
	Text  string
	Limit int
	From  Source
	Now   time.Time // the reference of "yesterday"; zero: now
	Chars int       // characters of one event in a hit; 0: the store's own bound
}

// Hit is one find, of memories or the event log.
type Hit struct {
	Path     string // virtual path, for memory_get
	MemoryID int64  // id of a memory; else 0
	Seq      int64  // place of an event; else 0
	File     int64  // id of the kept file whose page it is; else 0
	Page     sessions.PageID
	Content  string
	Who      string // speaker; of a memory also the subject: see [Memory.Source]; of a page its citation
	At       time.Time
	Score    float64
	// Why has the matches in short words for a model: terms, a person, a date.
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
	Subject string `json:"subject,omitempty"` // name or id
	Key     string `json:"key,omitempty"`     // attribute whose value it is
	// Replaces is the id of the known memory that it corrects; 0: none.
	Replaces int64  `json:"replaces,omitempty"`
	By       string `json:"by,omitempty"` // the speaker's name or id
}

// HeadOf shortens a model's text for an answer to the model.
func HeadOf(s string) string {
	if rs := []rune(s); len(rs) > 80 {
		return string(rs[:80]) + "…"
	}
	return s
}
