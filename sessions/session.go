package sessions

import (
	"context"
	"time"
)

// Session is the state of one session, a row of dingtalk_sessions.
type Session struct {
	Key               Key
	RobotCode         RobotCode
	ConversationID    ConversationID
	ConversationType  ConversationType
	Title             string
	TotalTokens       int // size of the next request
	CompactionCount   int
	Files             int // kept ones
	FlushCount        int
	LastActiveAt      time.Time
	CreatedAt         time.Time
	LastSeq           int64     // newest event in the view; 0 for none
	Gen               int       // grows with /new: work of an older generation never commits
	BaseSeq           int64     // events up to here belong to older generations
	ViewVersion       int       // grows with every compaction, undo, erasure and generation, not with turns
	Lease             Lease     // as stored; Owner is empty if free
	CompactedSeq      int64     // events up to here are summarized
	FlushedSeq        int64     // events up to here are flushed
	FlushEpoch        int       // CompactionCount at the last flush; -1 before the first
	FlushFailures     int       // consecutive, in this cycle
	CompactFailures   int       // consecutive
	CompactedAt       time.Time // last committed compaction; zero before the first
	CompactError      string    // reason of the last failed attempt, or undone; empty after a success
	CompactRetryAt    time.Time
	RearmTokens       int     // soft compaction pauses up to this context size; 0: no pause
	ObservedTokens    int     // the provider's count of the last chat prompt; 0 for none
	ObservedSeq       int64   // newest event in ObservedTokens
	CalibrationFactor float64 // provider's count over our estimate, smoothed; initially 1
	Pinned            string  // memory at the head of the view, read by each compaction
	PinnedDue         bool    // the next turn reads Pinned: new session, or a removed memory
	Candidates        int     // messages after FlushedSeq that may hold facts
	Usage             Usage   // all model calls
	Settings          string  // the conversation's own settings: a JSON object of agent.compaction keys
	SpentToday        int     // tokens of flushes and compactions since midnight UTC, input and output
	Suspicion         *Suspicion
}

// CompactUndone is the CompactError after an undo.
const CompactUndone = "undone"

// States keeps the state of sessions.
type States interface {
	// Session returns the state of a session without its log, at any owner, or ErrNotFound.
	Session(ctx context.Context, key Key) (Session, error)

	// Renew begins a new generation with an empty view. The log, pinned memory, waiting messages and unflushed events
	// stay.
	Renew(ctx context.Context, l Lease) error

	// Configure replaces the session's own settings: a checked JSON object, or empty for none.
	Configure(ctx context.Context, l Lease, settings string) error
}

// Leases grants the right to run a session's turns. A lease is valid while its owner's heartbeat is younger than the
// store's time to live.
type Leases interface {
	// Beat stores owner's heartbeat and returns the storage's clock.
	Beat(ctx context.Context, owner ReplicaID) (time.Time, error)
	// Acquire takes the session's lease, or returns the one that owner holds. ErrLeaseHeld if another living replica
	// has it, ErrNotFound without such a session.
	Acquire(ctx context.Context, key Key, owner ReplicaID) (Lease, error)
	// Release gives up a lease, or returns ErrLeaseLost if it is not the current one. If messages wait, other replicas are
	// woken.
	Release(ctx context.Context, l Lease) error
	// Rest releases owner's leases of those keys whose sessions are idle. It returns these keys, and those of sessions that
	// owner has not leased, deleted ones too. Idle means no
	// message for the given time, no pending message, unsent reply or running compaction, and everything flushed or
	// owed. Without a message for the time unflushed, the flush does not matter.
	Rest(ctx context.Context, owner ReplicaID, keys []Key, rest, unflushed time.Duration) ([]Key, error)
	// Resign gives up all leases of owner, wakes other replicas where work waits, and removes its heartbeat. It
	// returns the number of leases.
	Resign(ctx context.Context, owner ReplicaID) (int, error)
}

// Summary replaces an inclusive range of the log in the view. The ranges of active summaries are contiguous.
type Summary struct {
	ID         int64
	Key        Key
	StartSeq   int64
	EndSeq     int64
	StartMsgID int64 // ids of the range's first and last event
	EndMsgID   int64
	MsgCount   int
	Text       string
	Tokens     int
	Level      int // 0: made from events
	Status     SummaryStatus
	CreatedAt  time.Time
	Withheld   Withheld
}

// Emptied reports whether an erasure emptied the summary, or the model of the view refuses it: its range must be summarized again.
func (s Summary) Emptied() bool { return s.Text == ErasedText || s.Text == WithheldText }

// SummaryStatus is the place of a summary in the view.
type SummaryStatus string

// The states of a summary.
const (
	Active     SummaryStatus = "active"
	Superseded SummaryStatus = "superseded" // replaced by a newer summary; kept for undo
	Undone     SummaryStatus = "undone"     // its compaction was undone
	Closed     SummaryStatus = "closed"     // summary of an older generation
)

// SuspectFrom is the number of counted attempts that makes a message a suspect.
const SuspectFrom = 2

// Joined is the width of a suspect that should run alone, and has others next to it: a death is not counted.
const Joined = -1

// Alone is a message that a turn takes by itself.
type Alone struct {
	Event int64 // 0: the oldest
	// Width bounds the suspects that the process has in progress meanwhile, this one included, or is [Joined]; 0:
	// unchanged.
	Width int
}

// View is the input of a session's context: active summaries, oldest first, later events in view order, and pending
// messages by send time.
type View struct {
	Session   Session
	Summaries []Summary
	Tail      []Event
	Pending   []Event
	Runs      []ToolRun // calls of earlier attempts at the pending messages, also at others with them
	HasRuns   bool      // calls are recorded, also of messages that do not wait any more
	// Gap is the note for events left out between summaries and tail.
	Gap string
	// Suspect counts the failed attempts of the oldest pending message if it is a suspect, see [Turns.Begin]. Width is its
	// width; 0: it has none yet.
	Suspect, Width int
	More           bool // more messages wait besides Pending
	// Reads is the model whose requests the view is for, which leave out what it refuses. Empty: nothing is left out.
	Reads ModelID
}
