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

	// DebtsDue lists owed flushes behind after, the oldest first. Leases are free, stale or owner's. The pause since
	// the last failure is over: a minute, doubled with each failure, at most an hour.
	DebtsDue(ctx context.Context, owner sessions.ReplicaID, after FlushCandidate, limit int) ([]OwedFlush, error)

	// Idle lists sessions behind after that were silent for rest and at most a week, the longest first. They have to
	// flush a marked message or [IdleEvents] events. Sessions of other living replicas and with an owed flush are left
	// out.
	Idle(ctx context.Context, owner sessions.ReplicaID, rest time.Duration, after FlushCandidate, limit int) ([]FlushCandidate, error)
}

// IdleEvents are flushed though none is marked: plain facts ("the staging database is in Shanghai") look like small
// talk. They are five messages with answers.
const IdleEvents = 10

// FlushCandidate is a session for a flush in the background, and a position in a list; zero is the beginning.
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
