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
