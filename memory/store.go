package memory

import (
	"context"
	"time"

	"ebb/sessions"
)

// Reader is on whose behalf memory is read; it decides the scopes: those of the session, of the conversation, and of
// Users. What one person told the bot in private is never read out to others.
type Reader struct {
	Key          sessions.Key
	Robot        sessions.RobotCode
	Conversation sessions.ConversationID
	Private      bool
	// Users are people whose own memories may be read: in a private chat the person, in a group nobody.
	Users []sessions.UserID
}

// Store keeps memories. Every method is one transaction; writes fail with [sessions.ErrLeaseLost] as the session's do.
type Store interface {
	ReadStore
	FlushQueue
	Digests

	// Save stores drafts from a running turn. What a memory of the same scope says already, in the same words after
	// normalising or in nearly the same, is not stored again: its row is the receipt. What a draft corrects leaves force and
	// stays as history; see [Ledger]. A draft that is to replace what its scope does not hold is not stored, and named in
	// the receipt.
	Save(ctx context.Context, l sessions.Lease, drafts []Draft) (Receipt, error)

	// Flush stores the drafts drawn from the events (f.From, f.Through], moves the session's flush cursor to
	// f.Through, counts the flush with its last part and settles what was owed up to there: all or nothing. It fails with
	// [sessions.ErrConflict] when the cursor no longer stands at f.From.
	Flush(ctx context.Context, l sessions.Lease, f Flush) (Receipt, error)

	// Owe records that the events after the flush cursor are not flushed yet. One debt a session: a later one replaces
	// it.
	Owe(ctx context.Context, l sessions.Lease, d Debt) error

	// Unflushed lists the sessions whose lease owner holds and that have events after their flush cursor, the most
	// unsaved first.
	Unflushed(ctx context.Context, owner sessions.ReplicaID) ([]UnflushedSession, error)

	// OweUnflushed records as owed what is not flushed of any session whose lease owner holds, or of the one with a key where
	// that is not empty, without counting a failure, and says in how many sessions.
	OweUnflushed(ctx context.Context, owner sessions.ReplicaID, key sessions.Key) (int, error)
}

// ReadStore is what can be read of memory and of the log.
type ReadStore interface {
	// Range returns the session's events with from < Seq <= through in order, at most limit of them, archived ones
	// too; the flush and query_history read it.
	Range(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.Event, error)

	// Search finds memories and events that the reader may see, best first.
	Search(ctx context.Context, r Reader, q Query) ([]Hit, error)

	// Pinned lists the memories in force in the reader's scopes, newest first, at most limit.
	Pinned(ctx context.Context, r Reader, limit int) ([]Memory, error)

	// Values lists the values of the fact that a memory is one of, oldest first, former ones too, as far as the reader
	// may see them; nothing where there is no such memory, or the reader may not see it.
	Values(ctx context.Context, r Reader, id int64) ([]Memory, error)

	// History finds events of the session, newest first.
	History(ctx context.Context, key sessions.Key, q LogQuery) (LogMatches, error)
}

// UnflushedSession is what one session holds after its flush cursor.
type UnflushedSession struct {
	Key    sessions.Key
	Tokens int
}

// Debt is a flush that did not come through.
type Debt struct {
	Through  int64 // the last event that it should have read
	Failures int   // in a row
	Reason   string
	Usage    sessions.Usage // of calls that nothing was stored from
	Cost     float64        // of those calls
}

// Flush is the outcome of an extraction, for [Store.Flush]. A flush of many events is stored part by part.
type Flush struct {
	From    int64
	Through int64
	Gen     int    // the session's generation when the flush was due: no cycle of another one is marked as flushed
	Epoch   int    // the session's compaction count when the flush was due
	Trigger string // what asked for it, for the receipt
	Last    bool   // this is the last part: with it, and only with it, the flush counts in the session's flush count
	Drafts  []Draft
	Usage   sessions.Usage
	Cost    float64
	Model   string
}

// LogQuery is a question to a session's log.
type LogQuery struct {
	Words   string // half of them must occur; empty: every event
	From    int64  // first number; 0: no bound
	Through int64  // last number; 0: no bound
	Since   time.Time
	Until   time.Time // exclusive
	Limit   int       // events
	Chars   int       // of one event's content; of a longer one, the piece around the first word is read
}

// LogMatches are events of a log, newest first.
type LogMatches struct {
	Events []LogMatch
	// From is the oldest number that was compared word by word: a long log is read in parts. 0: the whole range was.
	// Older finds come from the search index.
	From int64
}

// LogMatch is an event of a log.
type LogMatch struct {
	sessions.Event
	Cut bool // Content is a piece of the event's content
}
