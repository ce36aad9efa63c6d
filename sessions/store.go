package sessions

import (
	"context"
	"errors"
	"time"
)

// Errors of a [Store] that callers act upon. Anything else is trouble with the storage.
var (
	// ErrLeaseLost says that the lease named in a write is not the current one; nothing was written.
	ErrLeaseLost = errors.New("session lease lost")
	// ErrLeaseHeld says that a living replica holds the session.
	ErrLeaseHeld = errors.New("session lease held by another replica")
	// ErrConflict says that the log moved under a compare-and-swap; nothing was written.
	ErrConflict = errors.New("session changed meanwhile")
	// ErrNotFound says that there is no such session, summary or row.
	ErrNotFound = errors.New("not found")
	// ErrRefused says that the data break a rule of the storage: nothing was written, and trying again can't help.
	ErrRefused = errors.New("the storage refused the data")
)

// Store keeps sessions. All methods may be called at once from many goroutines; each is one transaction, and none
// holds anything when it returns. Times are the storage's own.
type Store interface {
	Inbox
	Leaser
	Outbox

	// Session returns the state of a session, whoever holds its lease, and nothing of its log: ErrNotFound where there
	// is no such session.
	Session(ctx context.Context, key Key) (Session, error)

	// Begin opens a turn: it counts an attempt on up to limit of the oldest pending messages and returns the view
	// with them. Where the oldest was in a turn before that did not commit, it is taken alone: what breaks a turn is
	// found out that way, and breaks it for nobody else. With limit 0 Begin counts nothing and returns no pending
	// messages (maintenance, status).
	Begin(ctx context.Context, l Lease, limit int) (View, error)

	// Commit ends a turn: the taken messages and what it made get their places in the view, in the order given; the
	// session's counters and the outbox row are written with them. All or nothing.
	Commit(ctx context.Context, l Lease, t Turn) (Committed, error)

	// RecordRun stores a tool call before it runs, and again with its result.
	RecordRun(ctx context.Context, l Lease, r ToolRun) error

	// Compact stores a summary of (c.From, c.Through] and moves the cursor there, if it still stands at c.From and
	// the session's generation is c.Gen: else ErrConflict.
	Compact(ctx context.Context, l Lease, c Compaction) error

	// Log stores a row of the compaction log that belongs to no committed compaction, and its Failures, RetryAt and
	// Rearm in the session.
	Log(ctx context.Context, l Lease, e LogEntry) error
}

// Inbox is where messages become durable.
type Inbox interface {
	// Accept stores a message as a pending event of the session key, making the session if need be, and takes the
	// session's lease for owner where it is free. A message that is there already changes nothing.
	// When Accept returns nil the message survives any crash.
	Accept(ctx context.Context, owner ReplicaID, key Key, m Message) (Accepted, error)

	// Waiting lists sessions that have pending messages or unsent replies and whose lease is free, stale or owner's. It
	// is the sweep that makes up for every lost wake-up. Those that nobody alive holds come before owner's own, so that
	// many busy sessions of owner's can't hide one that is left alone; within each kind the longest waiting comes first.
	Waiting(ctx context.Context, owner ReplicaID, limit int) ([]Key, error)

	// Listen calls wake with the key of a session of owner's when another replica accepted a message for it, and with
	// the empty key when leases were given up; it returns when ctx ends or the notifications break off. Calls of wake
	// come one at a time and must not block.
	Listen(ctx context.Context, owner ReplicaID, wake func(Key)) error
}

// Accepted is the outcome of [Inbox.Accept].
type Accepted struct {
	New     bool // false: the message had been stored before
	EventID int64
	Lease   Lease // as it stands now: of owner, or of another living replica
}

// Leaser hands out the right to run a session's turns. A lease stands while its owner's heartbeat is younger than the
// time to live that the store was opened with.
type Leaser interface {
	// Beat says that owner is alive.
	Beat(ctx context.Context, owner ReplicaID) error
	// Acquire takes the session's lease, or returns the one that owner holds: ErrLeaseHeld where another living
	// replica has it, ErrNotFound where there is no such session.
	Acquire(ctx context.Context, key Key, owner ReplicaID) (Lease, error)
	// Release gives up one lease, where it is the current one. Where messages wait, other replicas are woken with the
	// session's key.
	Release(ctx context.Context, l Lease) error
	// Resign gives up all leases of owner at once, wakes other replicas where work waits, and removes its heartbeat.
	// It returns the number of leases.
	Resign(ctx context.Context, owner ReplicaID) (int, error)
}

// Turn is what a turn made, for [Store.Commit].
type Turn struct {
	Taken []int64 // ids of the pending messages that it answers, in the order of the view
	// TakenTokens are the counts of the taken messages, in the same order.
	TakenTokens []int
	Events      []Event // assistant and tool events, in order; Role, Content, tool fields, Tokens
	Dead        []int64 // ids of pending messages to set aside: they get no place in the view
	Returned    []int64 // ids of pending messages whose attempt is not counted after all: they stay pending
	Reply       *Reply  // nil: nothing to send

	// TotalTokens is the size of the context as it would be sent next, if CompactedSeq still stands where the turn saw
	// it; a compaction that committed meanwhile has made the context smaller, and Appended is added to that instead.
	TotalTokens    int
	Appended       int
	CompactedSeq   int64
	ObservedTokens int // prompt tokens of the last call as the provider counted them; 0: it did not say
	Calibration    float64
	Usage          Usage // of all model calls of the turn
	Model          string
}

// Committed is the outcome of [Store.Commit].
type Committed struct {
	LastSeq int64
	Replies []Outgoing // the row of Turn.Reply, if there was one
}

// Compaction is a new summary and what it replaces, for [Store.Compact].
type Compaction struct {
	Gen     int
	From    int64 // the cursor as planned: CompactedSeq
	Through int64 // the last event that the summary tells
	Summary string
	Tokens  int // of the summary
	// Supersede are ids of active summaries whose ranges the new one tells too.
	Supersede []int64
	// Freed is taken from the session's TotalTokens, to which a turn may have added since the plan.
	Freed       int
	RearmTokens int
	Pinned      string
	Log         LogEntry
}

// LogEntry is one row of compaction_log: one attempt at a compaction.
type LogEntry struct {
	ID           int64
	Key          Key
	Trigger      string // threshold, overflow, manual, shutdown
	Policy       string
	Mode         string
	Model        string
	TokensBefore int
	TokensAfter  int
	StartSeq     int64
	EndSeq       int64
	FlushOutcome string
	Audit        string // JSON
	Duration     time.Duration
	Cost         float64
	Usage        Usage
	Outcome      string // committed, rejected, failed, nothing
	Error        string
	Focus        string
	CreatedAt    time.Time

	// Failures and RetryAt go to the session with a failed attempt: how many in a row, and when the next may run.
	Failures int
	RetryAt  time.Time
	Rearm    int
}

// Reply is what a turn tells the conversation, for the outbox.
type Reply struct {
	Target Target
	Text   string // Markdown
	// Nonce is the key by which DingTalk recognises a reply that is sent again.
	Nonce string
}

// Outgoing is a row of the outbox.
type Outgoing struct {
	ID       int64
	Key      Key
	Reply    Reply
	Attempts int  // sends tried
	Part     int  // parts of a split reply that are known to have arrived
	Resumed  bool // a process died while it was being sent: it may have arrived
	Created  time.Time
	NextAt   time.Time
}

// Outbox holds replies between the commit of their turn and DingTalk's word that they arrived.
type Outbox interface {
	// Unsent lists the unsent replies of a session that the lease covers, oldest first.
	Unsent(ctx context.Context, l Lease) ([]Outgoing, error)
	// Settle records what came of a try to send.
	Settle(ctx context.Context, s Settled) error
}

// Settled is the outcome of a try to send one reply.
type Settled struct {
	Key    Key
	ID     int64
	Sent   bool
	Failed bool // given up for good
	Part   int
	Via    string // webhook or openapi
	Error  string
	NextAt time.Time // of the next try, where neither Sent nor Failed
}
