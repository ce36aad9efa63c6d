package facts

import (
	"context"
	"fmt"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// A quiet session is flushed without a new message until its last one is idleOldest old.
const (
	debtRest   = time.Minute
	debtMost   = time.Hour
	idleOldest = 7 * 24 * time.Hour
)

// Owed implements memory.Store.
func (s *Store) Owed(ctx context.Context, key sessions.Key) (memory.Debt, error) {
	row, err := s.db.Q.DebtFind(ctx, s.db.Pool, key)
	if err != nil {
		return memory.Debt{}, fmt.Errorf("reading what a session owes: %w", pg.AsNotFound(err))
	}
	return memory.Debt{Through: row.ThroughSeq, Failures: row.Failures, Reason: row.Reason}, nil
}

// DebtsDue implements memory.Store.
func (s *Store) DebtsDue(
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

// A stop flushes an unowned session whose last message is unownedRecent old at most. An owner keeps the lease of an
// unflushed one for this time, until the idle flush, so that only a dead owner leaves such a session.
const unownedRecent = 35 * time.Minute

// OweUnflushed implements memory.Store.
func (s *Store) OweUnflushed(ctx context.Context, owner sessions.ReplicaID, key sessions.Key) (int, error) {
	n, err := s.db.Q.DebtsOwe(ctx, s.db.Pool, &dbsqlc.DebtsOweParams{
		Owner: string(owner), SessionKey: string(key), Reason: cutOff, RecentSeconds: unownedRecent.Seconds(), TtlSeconds: s.db.TTL.Seconds(),
	})
	if err != nil {
		return 0, fmt.Errorf("storing the owed flushes of replica %s: %w", owner, err)
	}
	return int(n), nil
}

// Idle implements memory.Store.
func (s *Store) Idle(
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

// Values implements memory.Store.
func (s *Store) Values(ctx context.Context, r memory.Reader, id int64) ([]memory.Memory, error) {
	users, err := s.identities.IDs(ctx, s.db.Pool, r.Robot, r.Users...)
	if err != nil {
		return nil, fmt.Errorf("reading the values of memory %d: %w", id, err)
	}
	rows, err := s.db.Q.MemoryValues(ctx, s.db.Pool, &dbsqlc.MemoryValuesParams{
		TeamID: string(r.Robot), GroupID: memory.GroupID(r.Robot, r.Conversation), SessionKey: string(r.Key), UserIds: users,
		Private: r.Private, RobotSessions: pg.SessionPrefix(r.Robot), ID: id, Model: string(r.Reads),
	})
	if err != nil {
		return nil, fmt.Errorf("reading the values of memory %d: %w", id, err)
	}
	values := make([]memory.Memory, 0, len(rows))
	for _, row := range rows {
		if row.CorrectedElsewhere {
			row.SupersededBy, row.SupersededAt = nil, nil
		}
		values = append(values, convert.Memory(&dbsqlc.MemoriesReadableRow{
			ID: row.ID, Scope: row.Scope, ScopeID: row.ScopeID, Kind: row.Kind, Content: row.Content, FactKey: row.FactKey,
			SubjectID: row.SubjectID, SaidBy: row.SaidBy, SaidAt: row.SaidAt, SourceGroup: row.SourceGroup,
			SourceSession: row.SourceSession, StartSeq: row.StartSeq, EndSeq: row.EndSeq, SupersededBy: row.SupersededBy,
			SupersededAt: row.SupersededAt, ExpiresAt: row.ExpiresAt, LastSeenAt: row.LastSeenAt, Seen: row.Seen,
			PromotedBy: row.PromotedBy, CreatedAt: row.CreatedAt,
		}))
	}
	if err := s.identities.NameIn(ctx, r.Key, values); err != nil {
		return nil, fmt.Errorf("reading the nicks of memory %d: %w", id, err)
	}
	return values, nil
}
