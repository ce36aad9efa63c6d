package memory

import (
	"context"
	"time"

	"ebb/sessions"
)

// Debtor knows which sessions memory has not read to their end.
type Debtor interface {
	// Owed is what a session owes: [sessions.ErrNotFound] where that is nothing.
	Owed(ctx context.Context, key sessions.Key) (Debt, error)

	// DebtsDue lists owed flushes, the oldest first, at most limit: those that have rested since they last failed (a minute,
	// doubling with each failure, at most an hour), of sessions whose lease is free, stale or owner's.
	DebtsDue(ctx context.Context, owner sessions.ReplicaID, limit int) ([]Owed, error)

	// Idle lists sessions in which nothing was said for so long as after, and something before that is not flushed, the
	// one that rests for longest first, at most limit. Sessions of other living replicas are left out, and so are those
	// that owe a flush, and those that have been silent for a week.
	Idle(ctx context.Context, owner sessions.ReplicaID, after time.Duration, limit int) ([]sessions.Key, error)
}

// Owed is one session's debt.
type Owed struct {
	Key sessions.Key
	Debt
}

// Keeper is what a memory needs done to it from time to time, by whoever comes first.
type Keeper interface {
	Crowd
	// Expire deletes what nobody has been able to read for long, and says how many memories that were.
	Expire(ctx context.Context) (int, error)
	// IndexBacklog makes up to limit events and as many memories findable that were stored without an index, and says how
	// many there were: less than limit means that nothing is left.
	IndexBacklog(ctx context.Context, limit int) (int, error)
}
