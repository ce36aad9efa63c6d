package conversation

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/identity"
	"ebb/sql/index"
	"ebb/sql/pg"
)

// Store keeps conversations.
type Store struct {
	db         *pg.DB
	identities *identity.Store
	logs       *index.Logs
	settles    pg.Batcher[*sessions.Settled]
	speakers   *speakers
}

// New returns the conversations of a database. The index learns of the turns that are committed.
func New(db *pg.DB, identities *identity.Store, logs *index.Logs) *Store {
	s := &Store{db: db, identities: identities, logs: logs, speakers: newSpeakers()}
	s.settles.Do = s.settleAll
	return s
}

// Renew implements sessions.Store.
func (s *Store) Renew(ctx context.Context, l sessions.Lease) error {
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

// Configure implements sessions.Store.
func (s *Store) Configure(ctx context.Context, l sessions.Lease, settings string) error {
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		return s.db.Q.SessionConfigured(ctx, tx, &dbsqlc.SessionConfiguredParams{SessionKey: l.Key, Settings: settings})
	})
	if err != nil {
		return fmt.Errorf("configuring a session: %w", pg.AsRefused(err))
	}
	return nil
}
