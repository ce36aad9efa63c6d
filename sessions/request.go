package sessions

import (
	"context"
	"time"
)

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
