package compactions

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
	"ebb/sql/spend"
)

// Rewrite implements sessions.Compactor.
func (s *Store) Rewrite(ctx context.Context, l sessions.Lease, w sessions.Rewritten) error {
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) error {
		n, err := s.db.Q.SummaryRewrite(ctx, tx, &dbsqlc.SummaryRewriteParams{
			SessionKey: l.Key, ID: w.ID, Summary: pg.Clean(w.Text), Tokens: pg.Clamp(w.Tokens), Model: pg.Clean(w.Log.Model),
			Erased: sessions.ErasedText,
		})
		if err := pg.Require(n, err, sessions.ErrConflict); err != nil {
			return err
		}
		if err := s.db.Q.SessionRewritten(ctx, tx, &dbsqlc.SessionRewrittenParams{
			SessionKey: l.Key, Growth: min(max(w.Growth, -math.MaxInt32), math.MaxInt32),
		}); err != nil {
			return err
		}
		entry := w.Log
		entry.Key, entry.Outcome = l.Key, "committed"
		if _, err := s.logAttempt(ctx, tx, entry, attempt{gen: row.Gen, summary: &w.ID, cycle: &row.CompactionCount}); err != nil {
			return err
		}
		return spend.Add(ctx, tx, s.db, l.Key, sessions.Spending{Kind: sessions.SpentSummary, Usage: w.Log.Usage, Cost: w.Log.Cost, Model: w.Log.Model})
	})
	if err != nil {
		return fmt.Errorf("rewriting summary %d: %w", w.ID, pg.AsRefused(err))
	}
	return nil
}
