package memory

import (
	"context"
	"time"

	"ebb/sessions"
)

// Reader reads the scopes of its session, its conversation and Users. Others never read a person's private statements.
type Reader struct {
	Key          sessions.Key
	Robot        sessions.RobotCode
	Conversation sessions.ConversationID
	Private      bool
	// Users are in a private chat the person, in a group none.
	Users []sessions.UserID
	// Reads is the model that gets the results: rows that it refuses are left out. Empty: no row is left out.
	Reads sessions.ModelID
}

// Stores are the stores of memory, by aggregate; all are required. A package that uses some of them declares the methods that it calls,
// beside its use. Every method is one transaction; writes fail with [sessions.ErrLeaseLost] as the session's do.
type Stores struct {
	Facts   Facts
	Search  Searcher
	Flushes Flushes
	Digests Digests
}

// Facts keeps memories.
type Facts interface {
	// Save stores drafts from a running turn. For one that repeats a memory of its scope, in nearly the same words,
	// that row is the receipt. A corrected memory stays as history; see reconcile.Ledger. A draft that replaces an id
	// unknown to its scope is not stored, and named in the receipt.
	Save(ctx context.Context, l sessions.Lease, drafts []Draft) (Receipt, error)

	// Pass gives facts that the running turn saved from people's words to the turn after its commit with stops: that one answers them.
	Pass(ctx context.Context, l sessions.Lease, people []sessions.UserID) error

	// Pinned lists the memories in force in the reader's scopes, newest first.
	Pinned(ctx context.Context, r Reader, limit int) ([]Memory, error)

	// Values lists all values of a memory's fact that the reader may see, former ones too, oldest first. An unknown or
	// hidden memory has none.
	Values(ctx context.Context, r Reader, id int64) ([]Memory, error)
}

// Searcher finds memories, and events of the log.
type Searcher interface {
	// Range returns the session's events with from < Seq <= through in order, archived ones too.
	Range(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.Event, error)

	// Search finds memories and events that the reader may see, best first.
	Search(ctx context.Context, r Reader, q Query) ([]Hit, error)

	// History finds events of the session, newest first.
	History(ctx context.Context, key sessions.Key, q LogQuery) (LogMatches, error)
}

// Flushes stores flushes and owed ones.
type Flushes interface {
	FlushQueue

	// Flush stores the drafts from the events (f.From, f.Through], moves the flush cursor and settles the owed flush
	// up to there. It fails with [sessions.ErrConflict] if the cursor is not at f.From.
	Flush(ctx context.Context, l sessions.Lease, f Flush) (Receipt, error)

	// Owe owes the flush of the events after the flush cursor, in place of an earlier debt.
	Owe(ctx context.Context, l sessions.Lease, d Debt) error

	// Unflushed lists the unflushed sessions with owner's lease, the most tokens first. It also lists recent ones without
	// a living owner, a debt or a waiting message.
	Unflushed(ctx context.Context, owner sessions.ReplicaID) ([]UnflushedSession, error)

	// OweUnflushed owes the unflushed events of all sessions in Unflushed, or of key alone if owner has its lease. It
	// counts no failure, and returns the number of sessions.
	OweUnflushed(ctx context.Context, owner sessions.ReplicaID, key sessions.Key) (int, error)
}

// UnflushedSession is the size of a session's events after its flush cursor.
type UnflushedSession struct {
	Key    sessions.Key
	Tokens int
}

// Debt is an owed flush.
type Debt struct {
	Through  int64 // the last event that it should have read
	Failures int   // consecutive
	Reason   string
	Usage    sessions.Usage // usage of calls without a stored result
	Cost     float64        // cost of those calls
	Model    string         // model of the last of them
}

// FlushTrigger is the cause of a flush, in its receipt: threshold, compaction, overflow, manual, new, idle, shutdown, debt, candidates, every_turn.
type FlushTrigger string

// Flush is the outcome of an extraction, or of one part of it, for [Flushes].
type Flush struct {
	From    int64
	Through int64
	Gen     int // the session's generation when the flush was due: no cycle of another one is marked as flushed
	Epoch   int // the session's compaction count when the flush was due
	Trigger FlushTrigger
	Last    bool // only the last part counts in the session's flush count
	Drafts  []Draft
	Usage   sessions.Usage
	Cost    float64
	Model   string
}

// LogQuery is a search in a session's log.
type LogQuery struct {
	Words   string // half of them must occur; empty: every event
	From    int64  // first number; 0: no bound
	Through int64  // last number; 0: no bound
	Since   time.Time
	Until   time.Time        // exclusive
	Limit   int              // events
	Chars   int              // characters of one event's content; a longer one is cut around the first word
	Reads   sessions.ModelID // as in [Reader]
}

// LogMatches are events of a log, newest first.
type LogMatches struct {
	Events []LogMatch
	// From is the oldest number that was compared word by word; 0: all were. Older finds come from the search index.
	From int64
}

// LogMatch is an event of a log.
type LogMatch struct {
	sessions.Event
	Cut bool // Content is a piece of the event's content
}
