// Package pages has the rows of the console's lists and the ports that read them. Lists begin at the newest row, that of
// reminders at the active one whose time comes next. A cursor names the place after a row, so that new rows move nothing.
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

// ErrCursor refuses a cursor that no list made.
var ErrCursor = errors.New("the cursor is not one of this list")

// Page asks for at most Limit rows after Cursor; empty is the start.
type Page struct {
	Limit  int
	Cursor string
	// Fixed asks for an order that no change of a row moves, so that all pages together have each row that stays.
	Fixed bool
}

// Names of the lists, so that no list takes the cursor of another one.
const (
	ListSessions       = "sessions"
	ListSessionsByKey  = "sessions.key"
	ListCompactions    = "compactions"
	ListSchedules      = "schedules"
	ListSchedulesByKey = "schedules.key"
	ListFiles          = "files"
	ListApprovals      = "approvals"
	ListTalk           = "talk"
	ListMemories       = "memories"
	ListActions        = "actions"
	ListRestarts       = "restarts"
	ListExpiring       = "expiring"
	ListUsage          = "usage"
	ListCosts          = "costs"
	ListPeople         = "people"
	ListPeopleByNick   = "people.nick"
)

// Place is a row's position in the fields of its list's order.
type Place struct {
	List string    `json:"l"` // set by Cursor
	At   time.Time `json:"t,omitzero"`
	Key  string    `json:"k,omitempty"`
	ID   int64     `json:"i,omitempty"`
	// Ended is for reminders: the place is among ended ones, which follow active ones.
	Ended bool `json:"e,omitempty"`
}

// Cursor encodes a position in a list.
func (p Place) Cursor(list string) string {
	p.List = list
	b, err := json.Marshal(p)
	if err != nil {
		return "" // no field can fail
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

const maxCursor = 8 << 10 // bytes

// ParseCursor decodes a cursor of a list. The empty one is first.
func ParseCursor(list, cursor string, first Place) (Place, error) {
	if cursor == "" {
		return first, nil
	}
	if len(cursor) > maxCursor {
		return Place{}, ErrCursor
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return Place{}, ErrCursor
	}
	var p Place
	if err := json.Unmarshal(b, &p); err != nil || p.List != list || p == (Place{List: list}) {
		return Place{}, ErrCursor
	}
	return p, nil
}

// SessionFilter narrows a list of sessions. Empty fields match all.
type SessionFilter struct {
	Words  []string // parts of a group's title or of the key
	Groups []string // parts of a group's title or conversation id
	State  string   // one of the states below
	Model  string
	Only   []sessions.Key // nil: all
}

// The states in a filter.
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
	Words   []string // as in [SessionFilter]
	Outcome string
	Policy  string
	Trigger string
	Since   time.Time
	Only    []sessions.Key // nil: all
}

// CompactionRow is an attempt in a list.
type CompactionRow struct {
	sessions.LogEntry
	RequesterNick string // last nick in the conversation; empty if unknown
	Title         string
	Private       bool
}

// Freed is the reduction of the context in tokens.
func (r CompactionRow) Freed() int { return r.TokensBefore - r.TokensAfter }

// ScheduleFilter narrows a list of schedules. Empty fields match all.
type ScheduleFilter struct {
	Session sessions.Key
	Words   []string       // as in [SessionFilter]
	State   string         // a [sessions.ScheduleState]
	Kind    string         // a [sessions.ScheduleKind]
	Only    []sessions.Key // nil: all sessions
}

// ScheduleRow is a schedule in a list.
type ScheduleRow struct {
	sessions.Schedule
	Title   string // title of the conversation
	Private bool   // also for a conversation of an unknown kind
}

// FileFilter narrows a list of kept files. Empty fields match all.
type FileFilter struct {
	Session sessions.Key
	Words   []string       // as in [SessionFilter]
	Only    []sessions.Key // nil: all sessions
}

// FileRow is a kept file in a list.
type FileRow struct {
	sessions.KeptFile
	Title   string // title of the conversation
	Private bool   // also for a conversation of an unknown kind
}

// ApprovalFilter narrows a list of calls that need an approval. Empty fields match all.
type ApprovalFilter struct {
	Session sessions.Key
	Words   []string       // as in [SessionFilter], and parts of the tool
	State   string         // a [sessions.ApprovalState]
	Only    []sessions.Key // nil: all sessions
}

// ApprovalRow is a call that needs an approval in a list.
type ApprovalRow struct {
	sessions.FoundApproval
	Title   string // title of the conversation
	Private bool   // also for a conversation of an unknown kind
}

// MemoryFilter narrows a list of memories. Empty fields match all.
type MemoryFilter struct {
	Scope   string
	Person  sessions.UserID // subject or author
	Session sessions.Key    // session of the source
	Words   []string        // parts of the content; they match no memory from a private chat
	Every   bool            // superseded and expired ones too
	Only    []sessions.Key  // sessions of the source; nil: all
}

// Attempt is one attempt at a compaction.
type Attempt struct {
	CompactionRow
	SummaryID int64  // the newest summary; 0: none
	Summary   string // empty if it is gone
	Erased    bool   // by an erasure, not an undo
	Receipts  []Receipt
}

// Receipt is a flush, or a part of one: the events (From, Through] and their facts.
type Receipt struct {
	Trigger                 memory.FlushTrigger
	From, Through           int64
	Saved, Known, Corrected []Fact
	At                      time.Time
}

// Flush is a flush of a session's events up to Through.
type Flush struct {
	Through int64
	Saved   int // memories
	At      time.Time
}

// Fact is a memory in a receipt. The content of a deleted one is empty.
type Fact struct {
	ID      int64
	Content string
	Source  sessions.Key // session of the source
	Private bool         // said in a private chat
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

// Counts is the open work of all sessions.
type Counts struct {
	Sessions, Waiting, Dead, Debts int
	Withheld                       int // events that a model refuses
	WithheldSummaries              int // summaries of views
	WithheldFacts                  int // in force
	Compacted, Failed              int // attempts of the last 24 hours
}

// Work is the running and waiting work of a session.
type Work struct {
	Owner  sessions.ReplicaID // empty: no replica has the lease
	Silent time.Duration      // since the owner's last heartbeat
	// Waiting messages are before their turn, Answering ones in it. The times are those of the oldest.
	Waiting, Answering           int
	WaitingSince, AnsweringSince time.Time
	// Upkeep reports a running flush, compaction, rewriting or digest, which ends by UpkeepUntil.
	Upkeep      bool
	UpkeepUntil time.Time
	// Compaction has begun and not ended. A failed one is repeated.
	Compaction CompactionJob
	// LastSeq, Compactions and Gen change with the conversation.
	LastSeq          int64
	Compactions, Gen int
}

// CompactionJob is the range that a compaction replaces, and its attempts; 0 for none.
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
	Key     sessions.Key // empty for no one session
	Detail  string
	Person  sessions.UserID // whom the action concerned; empty for none, and after an erasure of the person
	Outcome string          // "done" or the failure's reason; empty while the action runs
}

// Login is an authenticated user of the console.
type Login struct {
	Role   string
	Actor  string // staff id of a person
	Nick   string
	Groups []sessions.ConversationID // groups of a RoleGroupAdmin; not stored
}

// The roles of the console. All but the third are stored with logins.
const (
	RoleAdmin      = "admin"
	RoleViewer     = "viewer"      // reads all, private chats masked
	RoleGroupAdmin = "group_admin" // reads and acts in some groups only
	RolePerson     = "person"      // logged in by DingTalk: each request decides on one of the other roles
)

// Lists reads pages. The parameter only names the sessions whose rows are listed; nil: all. next is the following
// page's cursor, empty at the end. A wrong cursor is [ErrCursor]. Attempt, Memory, Session and Work return
// [sessions.ErrNotFound] for an unknown key or id.
type Lists interface {
	// Sessions lists sessions, the last active first, or by key in the fixed order.
	Sessions(ctx context.Context, f SessionFilter, p Page) (rows []SessionRow, next string, err error)
	Compactions(ctx context.Context, f CompactionFilter, p Page) (rows []CompactionRow, next string, err error)
	// Schedules lists active schedules by their next time, then ended ones, the last ended first. The fixed order is that of key
	// and number.
	Schedules(ctx context.Context, f ScheduleFilter, p Page) (rows []ScheduleRow, next string, err error)
	// Files lists kept files by key and id.
	Files(ctx context.Context, f FileFilter, p Page) (rows []FileRow, next string, err error)
	// Approvals lists calls of tools that need an approval, the newest first.
	Approvals(ctx context.Context, f ApprovalFilter, p Page) (rows []ApprovalRow, next string, err error)
	// Talk lists the events of a view before the cursor, in order; next leads to older ones.
	Talk(ctx context.Context, key sessions.Key, p Page) (events []sessions.Event, next string, err error)
	// Open lists waiting messages and dead letters, at most limit.
	Open(ctx context.Context, key sessions.Key, limit int) ([]sessions.Event, error)
	// Cuts lists the newest committed compactions that end in a range of events, and their undos, the oldest of them first.
	Cuts(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.LogEntry, error)
	// Flushes lists a session's newest flushes, the oldest of them first.
	Flushes(ctx context.Context, key sessions.Key, limit int) ([]Flush, error)
	// Reached returns the last event of the view at each time; 0: none.
	Reached(ctx context.Context, key sessions.Key, times []time.Time) ([]int64, error)
	// Undoable returns the compaction that an undo takes back; 0: none.
	Undoable(ctx context.Context, key sessions.Key) (int64, error)
	Attempt(ctx context.Context, key sessions.Key, id int64) (Attempt, error)
	Memories(ctx context.Context, f MemoryFilter, p Page) (rows []memory.Memory, next string, err error)
	// Memory returns a memory with all values of its fact, the oldest first.
	Memory(ctx context.Context, id int64) (m memory.Memory, values []memory.Memory, err error)
	Session(ctx context.Context, key sessions.Key) (sessions.Session, error)
	Work(ctx context.Context, key sessions.Key) (Work, error)
	// Costs sums usage from a day on by kind and day, or by kind and session.
	Costs(ctx context.Context, only []sessions.Key, since time.Time, bySession bool) ([]Usage, error)
	Debts(ctx context.Context, only []sessions.Key, limit int) ([]Debt, error)
	DeadLetters(ctx context.Context, only []sessions.Key, limit int) ([]sessions.Event, error)
	Restarts(ctx context.Context, p Page) (rows []sessions.Restart, next string, err error)
	Replicas(ctx context.Context) ([]Replica, error)
	Counts(ctx context.Context, only []sessions.Key) (Counts, error)
	Actions(ctx context.Context, only []sessions.Key, p Page) (rows []Action, next string, err error)
	// GroupSessions lists the sessions of groups, never nil. It omits private chats, whatever their ids.
	GroupSessions(ctx context.Context, groups []sessions.ConversationID) ([]sessions.Key, error)
}

// Logins keeps the console's logins by the hash of their token, for all replicas.
type Logins interface {
	Login(ctx context.Context, hash []byte, l Login, ttl time.Duration) error
	// Authenticate returns [sessions.ErrNotFound] for an unknown or expired login.
	Authenticate(ctx context.Context, hash []byte) (Login, error)
	Logout(ctx context.Context, hash []byte) error
	// UseState uses up the state of a login that another site continued, and keeps it for its life, with the path that it leads to. A
	// used one is [sessions.ErrNotFound].
	UseState(ctx context.Context, hash []byte, next string, ttl time.Duration) error
}

// Audit records actions. A row is stored before its action begins.
type Audit interface {
	Begin(ctx context.Context, a Action) (id int64, err error)
	End(ctx context.Context, a Action, outcome string) error
}
