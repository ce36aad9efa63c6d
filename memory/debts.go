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

	// DebtsDue lists owed flushes behind after, the oldest first, at most limit. Their leases are free, stale or
	// owner's. Their pause since the last failure is over: a minute, doubled with each failure, at most an hour.
	DebtsDue(ctx context.Context, owner sessions.ReplicaID, after FlushCandidate, limit int) ([]OwedFlush, error)

	// Idle lists sessions that were silent for rest and less than a week, and have to flush a marked message or
	// [IdleEvents] events. The longest idle come first, those behind after, at most limit. Sessions of other living
	// replicas and those with an owed flush are left out.
	Idle(ctx context.Context, owner sessions.ReplicaID, rest time.Duration, after FlushCandidate, limit int) ([]FlushCandidate, error)
}

// IdleEvents is five messages with their answers, which an idle session flushes though none is marked. To the patterns
// that mark, plain facts ("the staging database is in Shanghai") look like small talk.
const IdleEvents = 10

// FlushCandidate is a session for a flush in the background, and all that the decision needs. It is also a position in
// a list, with the zero value as the beginning.
type FlushCandidate struct {
	Key          sessions.Key
	Since        time.Time // time of the first failure or of the last word
	Conversation sessions.ConversationID
	SpentToday   int // as in [sessions.Session]
}

// OwedFlush is a session with its owed flush.
type OwedFlush struct {
	FlushCandidate
	Debt
}

// MaintenanceStore is the storage of memory's periodic jobs.
type MaintenanceStore interface {
	ConsolidationStore
	// IsLeader reports whether a replica is the first of the living ones, which alone does costly work. During a
	// takeover two replicas may get true.
	IsLeader(ctx context.Context, replica sessions.ReplicaID) (bool, error)
	// DeleteExpired deletes memories that were unreadable for long, and returns their number.
	DeleteExpired(ctx context.Context) (int, error)
	// IndexBacklog indexes up to limit events and as many memories that have no index. A number below limit means that
	// none is left.
	IndexBacklog(ctx context.Context, limit int) (int, error)
}
