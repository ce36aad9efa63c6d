package compactions

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Requests keeps compactions that operators requested.
type Requests struct{ db *pg.DB }

// NewRequests returns the requests of a database.
func NewRequests(db *pg.DB) *Requests { return &Requests{db} }

// RequestCompaction returns [sessions.ErrConflict] while a request waits or runs.
func (s *Requests) RequestCompaction(ctx context.Context, r sessions.CompactionRequest) error {
	n, err := s.db.Q.CompactionRequest(ctx, s.db.Pool, &dbsqlc.CompactionRequestParams{SessionKey: r.Key, Settings: pg.Clean(r.Settings), Focus: pg.Clean(r.Focus), RequestedBy: pg.Clean(r.RequestedBy)})
	if err := pg.Require(n, err, sessions.ErrConflict); err != nil {
		return fmt.Errorf("requesting a compaction: %w", err)
	}
	return nil
}

// CompactionRequested returns the request of a session that waits or runs.
func (s *Requests) CompactionRequested(ctx context.Context, key sessions.Key) (r sessions.CompactionRequest, ok bool, err error) {
	row, err := s.db.Q.CompactionRequestFind(ctx, s.db.Pool, key)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, false, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("reading the requested compaction: %w", err)
	}
	return requestOf(row), true, nil
}

// CompactionRequests implements sessions.CompactionRequests.
func (s *Requests) CompactionRequests(ctx context.Context, owner sessions.ReplicaID, limit int) ([]sessions.CompactionRequest, error) {
	rows, err := s.db.Q.CompactionRequestsDue(ctx, s.db.Pool, &dbsqlc.CompactionRequestsDueParams{
		Owner: string(owner), TtlSeconds: s.db.TTL.Seconds(), MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing requested compactions for replica %s: %w", owner, err)
	}
	list := make([]sessions.CompactionRequest, len(rows))
	for i, row := range rows {
		list[i] = requestOf(row)
	}
	return list, nil
}

// StartRequest implements sessions.CompactionRequests.
func (s *Requests) StartRequest(ctx context.Context, l sessions.Lease) (int, error) {
	n, err := s.db.Q.CompactionRequestStart(ctx, s.db.Pool, &dbsqlc.CompactionRequestStartParams{SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term})
	if errors.Is(err, pgx.ErrNoRows) {
		if _, err = s.db.Q.CompactionRequestFind(ctx, s.db.Pool, l.Key); err == nil {
			err = sessions.ErrLeaseLost
		}
	}
	if err != nil {
		return 0, fmt.Errorf("starting the requested compaction: %w", pg.AsNotFound(err))
	}
	return n, nil
}

// ReturnRequest implements sessions.CompactionRequests.
func (s *Requests) ReturnRequest(ctx context.Context, l sessions.Lease, attempt int) error {
	if err := s.db.Q.CompactionRequestReturn(ctx, s.db.Pool, &dbsqlc.CompactionRequestReturnParams{
		SessionKey: l.Key, Owner: string(l.Owner), Attempt: pg.Clamp(attempt),
	}); err != nil {
		return fmt.Errorf("returning the requested compaction: %w", err)
	}
	return nil
}

// EndRequest implements sessions.CompactionRequests.
func (s *Requests) EndRequest(ctx context.Context, l sessions.Lease, attempt int) error {
	if err := s.db.Q.CompactionRequestEnd(ctx, s.db.Pool, &dbsqlc.CompactionRequestEndParams{
		SessionKey: l.Key, Owner: string(l.Owner), Attempt: pg.Clamp(attempt),
	}); err != nil {
		return fmt.Errorf("ending the requested compaction: %w", err)
	}
	return nil
}

func requestOf(row dbsqlc.CompactionRequest) sessions.CompactionRequest {
	return sessions.CompactionRequest{
		Key: row.SessionKey, Settings: row.Settings, Focus: row.Focus, RequestedBy: row.RequestedBy, Attempts: row.Attempts,
		Requested: row.RequestedAt, Started: pg.OrZero(row.StartedAt),
	}
}
