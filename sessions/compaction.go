package sessions

import (
	"context"
	"time"
)

// Trigger is the cause of an attempt at a compaction: a constant of package compaction, manual, undo, rewrite, or the format of an import.
type Trigger string

// CompactionOutcome is the outcome of an attempt at a compaction. The zero value: it did not begin.
type CompactionOutcome string

// The outcomes of attempts.
const (
	CompactionCommitted CompactionOutcome = "committed"
	CompactionRejected  CompactionOutcome = "rejected" // the gain would have been too small
	CompactionFailed    CompactionOutcome = "failed"
	CompactionNothing   CompactionOutcome = "nothing"
)

// FlushOutcome is the outcome of the flush before a cut: off, done before, owed, later, or what the flush saved, in words.
type FlushOutcome string

// LogEntry is one row of compaction_log: one attempt at a compaction.
type LogEntry struct {
	ID           int64
	Key          Key
	Trigger      Trigger
	Policy       string
	Mode         string
	Model        string
	TokensBefore int
	TokensAfter  int
	StartSeq     int64
	EndSeq       int64
	FlushOutcome FlushOutcome
	Audit        string // JSON
	Duration     time.Duration
	Cost         float64
	Usage        Usage
	Outcome      CompactionOutcome
	Error        string
	Focus        string
	RequestedBy  string    // id of a person, or an operator's name; empty: automatic
	Undone       time.Time // zero for never
	CreatedAt    time.Time

	// Failures, of consecutive attempts, and RetryAt, the earliest next attempt, are stored in the session with a
	// failed one.
	Failures int
	RetryAt  time.Time
	Rearm    int
}

// CompactionRequest is a compaction that an administrator asked for outside of a turn.
type CompactionRequest struct {
	Key         Key
	Settings    string // JSON of the session's settings with the request's; empty: none
	Focus       string
	RequestedBy string // id of a person, or an operator's name as the audit has it
	Attempts    int
	Requested   time.Time
	Started     time.Time // zero: it waits
}

// CompactionRequests are stored until their compaction ended, so that a replica that dies leaves them to the next one.
type CompactionRequests interface {
	// CompactionRequests lists at most limit requests whose sessions owner has or may take, the oldest first.
	CompactionRequests(ctx context.Context, owner ReplicaID, limit int) ([]CompactionRequest, error)
	// StartRequest counts an attempt under the current lease and returns its number, from 1. [ErrNotFound] for a
	// request that is gone, [ErrLeaseLost] for a lease that is not the current one.
	StartRequest(ctx context.Context, l Lease) (attempt int, err error)
	// ReturnRequest takes back an attempt that did not begin: the request waits again. EndRequest deletes a request.
	// Neither changes a request of another owner or attempt; the owner's term may have ended.
	ReturnRequest(ctx context.Context, l Lease, attempt int) error
	EndRequest(ctx context.Context, l Lease, attempt int) error
}
