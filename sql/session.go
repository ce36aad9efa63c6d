package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// handTime is how long a reply counts as being in the hand of the process that committed or listed it, before the
// sweep shows it to that same process again.
const handTime = time.Minute

// conversationStore holds messages, leases, turns and replies.
type conversationStore struct {
	*DB
	settles together[*dbsqlc.OutboxSettleParams]
}

func newConversationStore(db *DB) *conversationStore {
	s := &conversationStore{DB: db}
	s.settles.do = s.settleAll
	return s
}

// Renew implements sessions.Store.
func (s *conversationStore) Renew(ctx context.Context, l sessions.Lease) error {
	err := s.fenced(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) error {
		if err := s.q.SummariesClose(ctx, tx, l.Key); err != nil {
			return err
		}
		if err := s.q.EventsArchive(ctx, tx, &dbsqlc.EventsArchiveParams{
			SessionKey: l.Key, StartSeq: row.CompactedSeq + 1, EndSeq: row.LastSeq,
		}); err != nil {
			return err
		}
		if err := s.q.SessionRenewed(ctx, tx, l.Key); err != nil {
			return err
		}
		if _, err := s.q.BlobsSweep(ctx, tx, &dbsqlc.BlobsSweepParams{SessionKey: l.Key, AfterSeq: row.LastSeq}); err != nil {
			return err
		}
		return s.q.JobDelete(ctx, tx, l.Key)
	})
	if err != nil {
		return fmt.Errorf("beginning session %s anew at term %d: %w", l.Key, l.Term, refused(err))
	}
	return nil
}

// Configure implements sessions.Store.
func (s *conversationStore) Configure(ctx context.Context, l sessions.Lease, settings string) error {
	err := s.fenced(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		return s.q.SessionConfigured(ctx, tx, &dbsqlc.SessionConfiguredParams{SessionKey: l.Key, Settings: settings})
	})
	if err != nil {
		return fmt.Errorf("configuring session %s at term %d: %w", l.Key, l.Term, refused(err))
	}
	return nil
}
