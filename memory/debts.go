package memory

import (
	"context"
	"time"

	"ebb/sessions"
)

// FlushQueue knows which sessions memory has not read to their end.
type FlushQueue interface {
	// Owed is what a session owes: [sessions.ErrNotFound] where that is nothing.
	Owed(ctx context.Context, key sessions.Key) (Debt, error)

	// DebtsDue lists owed flushes, the oldest first, at most limit, those behind after: those that have rested since they
	// last failed (a minute, doubling with each failure, at most an hour), of sessions whose lease is free, stale or
	// owner's.
	DebtsDue(ctx context.Context, owner sessions.ReplicaID, after FlushCandidate, limit int) ([]OwedFlush, error)

	// Idle lists sessions in which nothing was said for so long as rest, and something worth a flush before that is not
	// flushed: a message that was marked, or [IdleEvents] events, marked or not. The one that rests for longest comes
	// first; at most limit, those behind after. Sessions of other living replicas are left out, and so are those that owe
	// a flush, and those that have been silent for a week.
	Idle(ctx context.Context, owner sessions.ReplicaID, rest time.Duration, after FlushCandidate, limit int) ([]FlushCandidate, error)
}

// IdleEvents is how many events are flushed where a session rests though none of them is marked: five messages with their
// answers. Plain facts ("the staging database is in Shanghai") look like small talk to the patterns that mark.
const IdleEvents = 10

// FlushCandidate is a session that is to be flushed in the background, with what decides whether it may be: who looks through a
// list of them needs neither their leases nor their rows. As a place in such a list it says that what comes behind it is
// wanted; its zero value is the beginning.
type FlushCandidate struct {
	Key          sessions.Key
	Since        time.Time // of the first failure; of the last word
	Conversation sessions.ConversationID
	SpentToday   int // as in [sessions.Session]
}

// OwedFlush is one session's debt.
type OwedFlush struct {
	FlushCandidate
	Debt
}

// MaintenanceStore is what a memory needs done to it from time to time.
type MaintenanceStore interface {
	ConsolidationStore
	// IsLeader reports whether a replica is the first of those that live: what is paid for, or reads whole tables, is done by
	// that one alone. Around a takeover two may think so.
	IsLeader(ctx context.Context, replica sessions.ReplicaID) (bool, error)
	// DeleteExpired deletes what nobody has been able to read for long, and says how many memories that were.
	DeleteExpired(ctx context.Context) (int, error)
	// IndexBacklog makes up to limit events and as many memories findable that were stored without an index, and says how
	// many there were: less than limit means that nothing is left.
	IndexBacklog(ctx context.Context, limit int) (int, error)
}
