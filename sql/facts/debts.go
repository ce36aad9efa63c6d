package facts

import (
	"context"
	"fmt"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// A quiet session is flushed without a new message until its last one is idleOldest old.
const (
	debtRest   = time.Minute
	debtMost   = time.Hour
	idleOldest = 7 * 24 * time.Hour
)

// Owed implements memory.Flushes.
func (s *Flushes) Owed(ctx context.Context, key sessions.Key) (memory.Debt, error) {
	row, err := s.db.Q.DebtFind(ctx, s.db.Pool, key)
	if err != nil {
		return memory.Debt{}, fmt.Errorf("reading what a session owes: %w", pg.AsNotFound(err))
	}
	return memory.Debt{Through: row.ThroughSeq, Failures: row.Failures, Reason: row.Reason}, nil
}

// DebtsDue implements memory.Flushes.
func (s *Flushes) DebtsDue(
	ctx context.Context, owner sessions.ReplicaID, after memory.FlushCandidate, limit int,
) ([]memory.OwedFlush, error) {
	rows, err := s.db.Q.DebtsDue(ctx, s.db.Pool, &dbsqlc.DebtsDueParams{
		Owner: string(owner), TtlSeconds: s.db.TTL.Seconds(), RestSeconds: debtRest.Seconds(), MostSeconds: debtMost.Seconds(),
		AfterAt: after.Since, AfterKey: string(after.Key), MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing owed flushes for replica %s: %w", owner, err)
	}
	owed := make([]memory.OwedFlush, 0, len(rows))
	for _, r := range rows {
		owed = append(owed, memory.OwedFlush{
			FlushCandidate: memory.FlushCandidate{Key: r.SessionKey, Since: r.CreatedAt, Conversation: r.ConversationID, SpentToday: int(r.SpentToday)},
			Debt:           memory.Debt{Through: r.ThroughSeq, Failures: r.Failures, Reason: r.Reason},
		})
	}
	return owed, nil
}

const cutOff = "the process stopped"

// OweUnflushed implements memory.Flushes.
func (s *Flushes) OweUnflushed(ctx context.Context, owner sessions.ReplicaID, key sessions.Key) (int, error) {
	n, err := s.db.Q.DebtsOwe(ctx, s.db.Pool, &dbsqlc.DebtsOweParams{
		Owner: string(owner), SessionKey: string(key), Reason: cutOff, RecentSeconds: unownedRecent.Seconds(), TtlSeconds: s.db.TTL.Seconds(),
	})
	if err != nil {
		return 0, fmt.Errorf("storing the owed flushes of replica %s: %w", owner, err)
	}
	return int(n), nil
}

// Idle implements memory.Flushes.
func (s *Flushes) Idle(
	ctx context.Context, owner sessions.ReplicaID, rest time.Duration, after memory.FlushCandidate, limit int,
) ([]memory.FlushCandidate, error) {
	rows, err := s.db.Q.SessionsIdle(ctx, s.db.Pool, &dbsqlc.SessionsIdleParams{
		Owner: string(owner), TtlSeconds: s.db.TTL.Seconds(), IdleSeconds: rest.Seconds(), OldestSeconds: idleOldest.Seconds(),
		Least: memory.IdleEvents, AfterAt: after.Since, AfterKey: string(after.Key), MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing idle sessions for replica %s: %w", owner, err)
	}
	idle := make([]memory.FlushCandidate, 0, len(rows))
	for _, r := range rows {
		idle = append(idle, memory.FlushCandidate{
			Key: r.SessionKey, Since: r.LastActiveAt, Conversation: r.ConversationID, SpentToday: int(r.SpentToday),
		})
	}
	return idle, nil
}

// RetryDebt ends the pause of an owed flush: the background repeats it at its next check. It returns
// [sessions.ErrNotFound] for a session that owes none.
func (s *Flushes) RetryDebt(ctx context.Context, key sessions.Key) error {
	n, err := s.db.Q.DebtRetry(ctx, s.db.Pool, key)
	if err := pg.Require(n, err, sessions.ErrNotFound); err != nil {
		return fmt.Errorf("retrying the owed flush: %w", err)
	}
	return nil
}
