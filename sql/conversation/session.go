package conversation

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Sessions keeps the state of sessions.
type Sessions struct{ db *pg.DB }

// NewSessions returns the sessions of a database.
func NewSessions(db *pg.DB) *Sessions { return &Sessions{db} }

// Session returns one session, or sessions.ErrNotFound.
func (s *Sessions) Session(ctx context.Context, key sessions.Key) (sessions.Session, error) {
	row, err := s.db.Q.SessionFind(ctx, s.db.Pool, key)
	if err != nil {
		return sessions.Session{}, fmt.Errorf("reading a session: %w", pg.AsNotFound(err))
	}
	return convert.Session(&row.Session, row.SpentToday), nil
}

// Renew implements sessions.States.
func (s *Sessions) Renew(ctx context.Context, l sessions.Lease) error {
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) error {
		if err := s.db.Q.SummariesClose(ctx, tx, l.Key); err != nil {
			return err
		}
		if err := s.db.Q.EventsArchive(ctx, tx, &dbsqlc.EventsArchiveParams{
			SessionKey: l.Key, StartSeq: row.CompactedSeq + 1, EndSeq: row.LastSeq,
		}); err != nil {
			return err
		}
		if err := s.db.Q.SessionRenewed(ctx, tx, l.Key); err != nil {
			return err
		}
		if _, err := s.db.Q.BlobsSweep(ctx, tx, &dbsqlc.BlobsSweepParams{SessionKey: l.Key, AfterSeq: row.LastSeq}); err != nil {
			return err
		}
		return s.db.Q.JobDelete(ctx, tx, l.Key)
	})
	if err != nil {
		return fmt.Errorf("renewing a session: %w", pg.AsRefused(err))
	}
	return nil
}

// Configure implements sessions.States.
func (s *Sessions) Configure(ctx context.Context, l sessions.Lease, settings string) error {
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		return s.db.Q.SessionConfigured(ctx, tx, &dbsqlc.SessionConfiguredParams{SessionKey: l.Key, Settings: settings})
	})
	if err != nil {
		return fmt.Errorf("configuring a session: %w", pg.AsRefused(err))
	}
	return nil
}
