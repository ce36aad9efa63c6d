// Package pages has the rows of paged lists and the ports that read them. The console and its API show them, and the
// storage implements the ports. A list begins at the newest row; a cursor names the place after a row, so that rows that
// arrive meanwhile move nothing.
package pages

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"ebb/memory"
	"ebb/sessions"
)

// ErrCursor is returned for a cursor that no list made.
var ErrCursor = errors.New("the cursor is not one of this list")

// Page asks for a part of a list: at most Limit rows after the cursor. The empty cursor is the start.
type Page struct {
	Limit  int
	Cursor string
}

// Place is the position of a row in a list, by time, key and id as far as the list is ordered by them.
type Place struct {
	At  time.Time `json:"t,omitzero"`
	Key string    `json:"k,omitempty"`
	ID  int64     `json:"i,omitempty"`
}

// Cursor encodes a position.
func (p Place) Cursor() string {
	b, err := json.Marshal(p)
	if err != nil {
		return "" // no field can fail
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseCursor decodes a cursor. The empty one is first.
func ParseCursor(cursor string, first Place) (Place, error) {
	if cursor == "" {
		return first, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return Place{}, ErrCursor
	}
	var p Place
	if err := json.Unmarshal(b, &p); err != nil || p == (Place{}) {
		return Place{}, ErrCursor
	}
	return p, nil
}

// SessionFilter narrows a list of sessions; all conditions must hold. The zero value matches all.
type SessionFilter struct {
	Words  []string // parts of a group's title or of the key
	Groups []string // parts of a group's title or conversation id
	State  string   // a [State]; empty: any
	Model  string
	Only   []sessions.Key // nil: all sessions
}

// The states of a session in a filter.
const (
	StateBusy   = "busy"   // messages wait
	StateDead   = "dead"   // it has dead letters
	StateOwed   = "owed"   // a flush is owed
	StateFailed = "failed" // the last compaction failed
)

// SessionRow is a session in a list.
type SessionRow struct {
	sessions.Session
	Model   string // model of the last answer
	Waiting int
	Dead    int
	Owed    bool
}

// CompactionFilter narrows a list of attempts. Empty fields match all.
type CompactionFilter struct {
	Session sessions.Key
	Words   []string // parts of a group's title or of the key
	Outcome string
	Policy  string
	Trigger string
	Since   time.Time
	Only    []sessions.Key // nil: all sessions
}

// CompactionRow is an attempt in a list.
type CompactionRow struct {
	sessions.LogEntry
	RequesterNick string // the requester's last nick in the conversation; empty if unknown
	Title         string // title of the conversation
	Private       bool
}

// Freed returns the tokens by which the context became smaller.
func (r CompactionRow) Freed() int { return r.TokensBefore - r.TokensAfter }

// MemoryFilter narrows a list of memories. Empty fields match all.
type MemoryFilter struct {
	Scope   string
	Person  sessions.UserID // its subject or author
	Session sessions.Key    // session of the source
	Words   []string        // parts of the content; they match no memory from a private chat
	Every   bool            // also superseded and expired ones
	Only    []sessions.Key  // sessions of the source; nil: all
}

// Attempt is one attempt at a compaction with all that is known of it.
type Attempt struct {
	CompactionRow
	SummaryID int64  // the newest summary that it made; 0 for none
	Summary   string // its text; empty if it is gone
	Erased    bool   // an erasure, not an undo, removed it
	Receipts  []Receipt
}

// Receipt is a flush, or a part of one: the events (From, Through] and the memories that hold their facts.
type Receipt struct {
	Trigger                 string
	From, Through           int64
	Saved, Known, Corrected []Fact
	At                      time.Time
}

// Flush is a flush of a session's events up to a place.
type Flush struct {
	Through int64
	Saved   int // memories that it stored
	At      time.Time
}

// Fact is a memory in a receipt. The content is empty if the memory is deleted.
type Fact struct {
	ID      int64
	Content string
	Source  sessions.Key // session of the source
	Private bool         // it was said in a private chat
}

// Cost is the usage of one kind of work on a day, of UTC, or in a session.
type Cost struct {
	Key sessions.Key // empty unless it is of a session
	Day string       // 2006-01-02; empty unless it is of a day
	// Turns are those that a model answered. Older releases did not count them.
	Turns int
	sessions.Spending
}

// Debt is an owed flush: the events (From, Through].
type Debt struct {
	Key           sessions.Key
	From, Through int64
	Failures      int
	Reason        string
	Since         time.Time
}

// Replica is a process that serves, or did until its heartbeat ended.
type Replica struct {
	ID                  sessions.ReplicaID
	StartedAt           time.Time
	Silent              time.Duration // since its last heartbeat
	Leases              int
	Draining, Connected bool
}

// Counts are the open work of all sessions.
type Counts struct {
	Sessions, Waiting, Dead, Debts int
	Compacted, Failed              int // compactions of the last 24 hours
}

// Work is the running and the waiting work of a session.
type Work struct {
	Owner  sessions.ReplicaID // holder of the lease; empty: no replica
	Silent time.Duration      // since the owner's last heartbeat
	// Waiting are the messages before their turn, and Answering those in one. The times are those of the oldest.
	Waiting, Answering           int
	WaitingSince, AnsweringSince time.Time
	// Upkeep reports that a flush, a compaction, a rewriting or a digest is running. It ends by UpkeepUntil, whatever happens.
	Upkeep      bool
	UpkeepUntil time.Time
	// Compaction is a compaction that has begun and has not ended. It is repeated after a failure.
	Compaction CompactionJob
	// LastSeq, Compactions and Gen change with the conversation.
	LastSeq          int64
	Compactions, Gen int
}

// CompactionJob is the range of events that a compaction replaces, and its attempts so far; 0 for no compaction.
type CompactionJob struct {
	From, Through int64
	Attempts      int
	Since         time.Time // start of the first attempt
}

// Action is a row of the audit.
type Action struct {
	ID      int64
	At      time.Time
	Actor   string
	Action  string
	Key     sessions.Key // empty: of no one session
	Detail  string
	Outcome string // "done", or the reason of the failure; empty while the action runs
}

// Login is an authenticated user of the console.
type Login struct {
	Role   string
	Actor  string                    // the staff id of a person
	Nick   string                    // a person's
	Groups []sessions.ConversationID // those of a RoleGroupAdmin; not stored
}

// The roles of the console. A login is stored as the first, second or last one.
const (
	RoleAdmin      = "admin"
	RoleViewer     = "viewer"      // reads, changes nothing, and sees private chats masked
	RoleGroupAdmin = "group_admin" // reads and acts in some groups, and sees nothing else
	RolePerson     = "person"      // a login by DingTalk: each request decides which of the other roles it has
)

// Lists reads pages. The parameter only leaves out the rows of other sessions; nil stands for all. next is the cursor of the
// following page, empty at the end. [ErrCursor] is a wrong cursor.
type Lists interface {
	Sessions(ctx context.Context, f SessionFilter, p Page) (rows []SessionRow, next string, err error)
	Compactions(ctx context.Context, f CompactionFilter, p Page) (rows []CompactionRow, next string, err error)
	// Talk lists the events of a session's view before the place of the cursor, in their order; next leads to older ones.
	Talk(ctx context.Context, key sessions.Key, p Page) (events []sessions.Event, next string, err error)
	// Open lists the messages that wait, and dead letters, at most limit.
	Open(ctx context.Context, key sessions.Key, limit int) ([]sessions.Event, error)
	// Cuts lists the committed compactions that end in a range of places: the newest ones up to limit, the oldest of them first.
	Cuts(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.LogEntry, error)
	// Flushes lists the newest flushes of a session up to limit, the oldest of them first.
	Flushes(ctx context.Context, key sessions.Key, limit int) ([]Flush, error)
	// Undoable returns the id of the compaction that an undo takes back; 0 for none.
	Undoable(ctx context.Context, key sessions.Key) (int64, error)
	// Attempt returns [sessions.ErrNotFound] for an unknown attempt.
	Attempt(ctx context.Context, key sessions.Key, id int64) (Attempt, error)
	Memories(ctx context.Context, f MemoryFilter, p Page) (rows []memory.Memory, next string, err error)
	// Memory returns a memory with all values of its fact, the oldest first, or [sessions.ErrNotFound].
	Memory(ctx context.Context, id int64) (m memory.Memory, values []memory.Memory, err error)
	// Session returns [sessions.ErrNotFound] for an unknown key.
	Session(ctx context.Context, key sessions.Key) (sessions.Session, error)
	// Work returns [sessions.ErrNotFound] for an unknown key.
	Work(ctx context.Context, key sessions.Key) (Work, error)
	// Costs sums usage from a day on, by kind and by day or by session.
	Costs(ctx context.Context, only []sessions.Key, since time.Time, bySession bool) ([]Cost, error)
	Debts(ctx context.Context, only []sessions.Key, limit int) ([]Debt, error)
	DeadLetters(ctx context.Context, only []sessions.Key, limit int) ([]sessions.Event, error)
	Restarts(ctx context.Context, limit int) ([]sessions.Restart, error)
	Replicas(ctx context.Context) ([]Replica, error)
	Counts(ctx context.Context, only []sessions.Key) (Counts, error)
	Actions(ctx context.Context, only []sessions.Key, p Page) (rows []Action, next string, err error)
	// GroupSessions lists the sessions of groups, never nil. A private chat is none of them, whatever its id.
	GroupSessions(ctx context.Context, groups []sessions.ConversationID) ([]sessions.Key, error)
}

// Logins keeps the logins of the console by the hash of their token, for all replicas.
type Logins interface {
	Login(ctx context.Context, hash []byte, l Login, ttl time.Duration) error
	// Authenticate returns [sessions.ErrNotFound] for an unknown hash and for a login that is over.
	Authenticate(ctx context.Context, hash []byte) (Login, error)
	Logout(ctx context.Context, hash []byte) error
	// BeginLogin keeps the state of a login that another site continues, and the path that it leads to.
	BeginLogin(ctx context.Context, hash []byte, next string, ttl time.Duration) error
	// ContinueLogin ends a state and returns its path, or [sessions.ErrNotFound] for one that is unknown, over or used.
	ContinueLogin(ctx context.Context, hash []byte) (next string, err error)
}

// Audit records actions. A row is stored before its action begins.
type Audit interface {
	Begin(ctx context.Context, a Action) (id int64, err error)
	End(ctx context.Context, a Action, outcome string) error
}
