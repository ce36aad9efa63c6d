package admin

import (
	"context"
	"fmt"
	"time"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Store lists rows for administrators.
type Store struct{ db *pg.DB }

// New returns the lists of a database.
func New(db *pg.DB) *Store { return &Store{db} }

// Sessions lists sessions, the last active first.
func (s *Store) Sessions(ctx context.Context, limit int) ([]sessions.Session, error) {
	rows, err := s.db.Q.SessionsList(ctx, s.db.Pool, pg.Clamp(limit))
	if err != nil {
		return nil, fmt.Errorf("listing sessions: %w", err)
	}
	list := make([]sessions.Session, 0, len(rows))
	for i := range rows {
		list = append(list, convert.Session(&rows[i].Session, rows[i].SpentToday))
	}
	return list, nil
}

// Session returns one session, or sessions.ErrNotFound.
func (s *Store) Session(ctx context.Context, key sessions.Key) (sessions.Session, error) {
	row, err := s.db.Q.SessionFind(ctx, s.db.Pool, key)
	if err != nil {
		return sessions.Session{}, fmt.Errorf("reading a session: %w", pg.AsNotFound(err))
	}
	return convert.Session(&row.Session, row.SpentToday), nil
}

// Events lists a session's log in order of arrival, with pending and dead messages and summaries, from IDs above
// after.
func (s *Store) Events(ctx context.Context, key sessions.Key, after int64, limit int) ([]sessions.Event, error) {
	rows, err := s.db.Q.EventsList(ctx, s.db.Pool, &dbsqlc.EventsListParams{
		SessionKey: key, AfterID: after, MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing events: %w", err)
	}
	return convert.Events(rows)
}

// Compactions implements sessions.Store.
func (s *Store) Compactions(ctx context.Context, key sessions.Key, limit int) ([]sessions.LogEntry, error) {
	rows, err := s.db.Q.CompactionsList(ctx, s.db.Pool, &dbsqlc.CompactionsListParams{
		SessionKey: string(key), MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing compactions: %w", err)
	}
	list := make([]sessions.LogEntry, 0, len(rows))
	for i := range rows {
		list = append(list, convert.LogEntry(&rows[i]))
	}
	return list, nil
}

// Compaction returns one attempt, or sessions.ErrNotFound.
func (s *Store) Compaction(ctx context.Context, id int64) (sessions.LogEntry, error) {
	row, err := s.db.Q.CompactionFind(ctx, s.db.Pool, id)
	if err != nil {
		return sessions.LogEntry{}, fmt.Errorf("reading compaction %d: %w", id, pg.AsNotFound(err))
	}
	return convert.LogEntry(&row), nil
}

// CompactionEnd is the remaining state of a compaction attempt.
type CompactionEnd struct {
	SummaryID int64 // newest one; 0 for none
	Erased    bool  // an erasure, not an undo, removed it
}

// CompactionEnds returns the remaining state of attempts by id.
func (s *Store) CompactionEnds(ctx context.Context, ids []int64) (map[int64]CompactionEnd, error) {
	rows, err := s.db.Q.CompactionsEnds(ctx, s.db.Pool, ids)
	if err != nil {
		return nil, fmt.Errorf("reading the ends of %d compactions: %w", len(ids), err)
	}
	ends := make(map[int64]CompactionEnd, len(rows))
	for _, r := range rows {
		ends[r.ID] = CompactionEnd{SummaryID: r.SummaryID, Erased: r.Erased}
	}
	return ends, nil
}

// Summary returns one summary of a session, whatever its state, or sessions.ErrNotFound.
func (s *Store) Summary(ctx context.Context, key sessions.Key, id int64) (sessions.Summary, error) {
	r, err := s.db.Q.SummaryFind(ctx, s.db.Pool, &dbsqlc.SummaryFindParams{SessionKey: key, ID: id})
	if err != nil {
		return sessions.Summary{}, fmt.Errorf("reading summary %d: %w", id, pg.AsNotFound(err))
	}
	return sessions.Summary{
		ID: r.ID, Key: r.SessionKey, StartSeq: r.StartSeq, EndSeq: r.EndSeq, StartMsgID: r.StartMsgID, EndMsgID: r.EndMsgID,
		MsgCount: r.MsgCount, Text: r.Summary, Tokens: r.Tokens, Level: r.Level, Status: r.Status, CreatedAt: r.CreatedAt,
	}, nil
}

// Debt is an owed flush of a session's log: the events (From, Through].
type Debt struct {
	Key       sessions.Key
	From      int64
	Through   int64
	Failures  int
	Reason    string
	CreatedAt time.Time
}

// Debts lists owed flushes of sessions, nil for all, the oldest first.
func (s *Store) Debts(ctx context.Context, only []sessions.Key, limit int) ([]Debt, error) {
	rows, err := s.db.Q.DebtsList(ctx, s.db.Pool, &dbsqlc.DebtsListParams{OnlyKeys: pg.Texts(only), MaxRows: pg.Clamp(limit)})
	if err != nil {
		return nil, fmt.Errorf("listing flush debts: %w", err)
	}
	debts := make([]Debt, 0, len(rows))
	for _, r := range rows {
		debts = append(debts, Debt{
			Key: r.SessionKey, From: r.FromSeq, Through: r.ThroughSeq, Failures: r.Failures, Reason: r.Reason,
			CreatedAt: r.CreatedAt,
		})
	}
	return debts, nil
}
