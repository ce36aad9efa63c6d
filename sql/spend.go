package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// The kinds of work beside the answers that model calls are paid for.
const (
	spentFlush         = "flush"
	spentSummary       = "summary"
	spentDigest        = "digest"
	spentConsolidation = "consolidation"
)

// spending is what one piece of such work took.
type spending struct {
	kind  string
	usage sessions.Usage
	cost  float64
}

// spend adds a spending to the session's usage and to that of the day. Of a session that is no more it counts nothing.
func (s *Store) spend(ctx context.Context, tx pgx.Tx, key sessions.Key, one spending) error {
	p := &dbsqlc.SpendAddParams{
		SessionKey: key, Kind: one.kind, PromptTokens: int64(count(one.usage.Prompt)), CachedTokens: int64(count(one.usage.Cached)),
		CompletionTokens: int64(count(one.usage.Completion)), Cost: finite(one.cost),
	}
	if p.Spent = p.PromptTokens + p.CompletionTokens; p.Spent+p.CachedTokens == 0 && p.Cost == 0 {
		return nil
	}
	return s.q.SpendAdd(ctx, tx, p)
}

// Cost is what work beside the answers took: flushes, summaries, digests and consolidations, also those that failed.
type Cost struct {
	Key    sessions.Key // empty for all sessions together
	Period string       // a day as 2006-01-02 or a month as 2006-01, of UTC; empty for all days together
	Kind   string       // flush, summary, digest, consolidation
	Usage  sessions.Usage
	Cost   float64 // in the unit of the configured prices
}

// CostsBy says how costs are added up besides by kind; the zero value adds up everything.
type CostsBy struct {
	Session    bool
	Day, Month bool // one of them at most
}

// Costs adds up what work beside the answers took from a day on, the newest first: of one session, or of all where the
// key is empty. What a single attempt took is in [Store.Compactions] and [Store.Flushes].
func (s *Store) Costs(ctx context.Context, key sessions.Key, since time.Time, by CostsBy) ([]Cost, error) {
	day := since.UTC()
	p := &dbsqlc.SpendSumsParams{SessionKey: string(key), Since: pgtype.Date{Time: day, Valid: true}, BySession: by.Session}
	switch {
	case by.Day:
		p.PeriodForm = "YYYY-MM-DD"
	case by.Month:
		p.PeriodForm = "YYYY-MM"
	}
	rows, err := s.q.SpendSums(ctx, s.pool, p)
	if err != nil {
		return nil, fmt.Errorf("adding up costs since %s: %w", day.Format(time.DateOnly), err)
	}
	costs := make([]Cost, 0, len(rows))
	for _, r := range rows {
		costs = append(costs, Cost{
			Key: sessions.Key(r.Session), Period: r.Period, Kind: r.Kind, Cost: r.Cost,
			Usage: sessions.Usage{Prompt: int(r.PromptTokens), Cached: int(r.CachedTokens), Completion: int(r.CompletionTokens)},
		})
	}
	return costs, nil
}
