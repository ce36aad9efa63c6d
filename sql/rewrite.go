package sql

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// Rewrite implements sessions.Store.
func (s *compactionStore) Rewrite(ctx context.Context, l sessions.Lease, w sessions.Rewritten) error {
	err := s.fenced(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) error {
		_, err := s.q.SummaryRewrite(ctx, tx, &dbsqlc.SummaryRewriteParams{
			SessionKey: l.Key, ID: w.ID, Summary: clean(w.Text), Tokens: count(w.Tokens), Model: clean(w.Log.Model),
			Erased: sessions.ErasedText, Growth: min(max(w.Growth, -math.MaxInt32), math.MaxInt32),
		})
		if errors.Is(err, pgx.ErrNoRows) {
			return sessions.ErrConflict
		}
		if err != nil {
			return err
		}
		entry := w.Log
		entry.Key, entry.Outcome = l.Key, "committed"
		if _, err := s.logAttempt(ctx, tx, entry, attempt{gen: row.Gen, summary: &w.ID}); err != nil {
			return err
		}
		return s.charges.spend(ctx, tx, l.Key, sessions.Spending{Kind: sessions.SpentSummary, Usage: w.Log.Usage, Cost: w.Log.Cost})
	})
	if err != nil {
		return fmt.Errorf("rewriting summary %d of session %s at term %d: %w", w.ID, l.Key, l.Term, refused(err))
	}
	return nil
}
