package memory

import (
	"context"
	"time"

	"ebb/sessions"
)

// FlushQueue lists the sessions with unflushed events.
type FlushQueue interface {
	// Owed is the owed flush of a session, or [sessions.ErrNotFound].
	Owed(ctx context.Context, key sessions.Key) (Debt, error)

	// DebtsDue lists owed flushes behind after, the oldest first, at most limit. Their pause since the last failure is
	// over: a minute, doubled with each failure, at most an hour. Their lease is free, stale or owner's.
	DebtsDue(ctx context.Context, owner sessions.ReplicaID, after FlushCandidate, limit int) ([]OwedFlush, error)

	// Idle lists sessions that were silent for at least rest and have something to flush: a marked message, or
	// [IdleEvents] events of any kind. The longest idle ones come first, those behind after, at most limit. It omits
	// sessions of other living replicas, sessions with an owed flush, and those that were silent for a week.
	Idle(ctx context.Context, owner sessions.ReplicaID, rest time.Duration, after FlushCandidate, limit int) ([]FlushCandidate, error)
}

// IdleEvents is the number of events that an idle session flushes though none is marked: five messages with their
// answers. Plain facts ("the staging database is in Shanghai") look like small talk to the patterns that mark.
const IdleEvents = 10

// FlushCandidate is a session for a flush in the background, with the data of that decision: the caller needs neither
// its lease nor its row. As a position in a list it asks for what follows; the zero value is the beginning.
type FlushCandidate struct {
	Key          sessions.Key
	Since        time.Time // times of the first failure and of the last word
	Conversation sessions.ConversationID
	SpentToday   int // as in [sessions.Session]
}

// OwedFlush is a session with its owed flush.
type OwedFlush struct {
	FlushCandidate
	Debt
}

// MaintenanceStore is the storage of the periodic jobs of memory.
type MaintenanceStore interface {
	ConsolidationStore
	// IsLeader reports whether a replica is the first of the living ones. It alone does the work that costs money or
	// reads whole tables. During a takeover two replicas may get true.
	IsLeader(ctx context.Context, replica sessions.ReplicaID) (bool, error)
	// DeleteExpired deletes memories that were unreadable for long, and returns their number.
	DeleteExpired(ctx context.Context) (int, error)
	// IndexBacklog indexes up to limit events and as many memories that were stored without an index. It returns their
	// number; less than limit means that none is left.
	IndexBacklog(ctx context.Context, limit int) (int, error)
}
