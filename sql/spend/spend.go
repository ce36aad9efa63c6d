package spend

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Store sums the costs of model calls.
type Store struct{ *pg.DB }

// New returns the costs of a database.
func New(db *pg.DB) *Store { return &Store{db} }

// Add adds a spending to the session's usage and to the day's. It does nothing for a session that does not exist.
func Add(ctx context.Context, tx pgx.Tx, key sessions.Key, one sessions.Spending) error {
	p := &dbsqlc.SpendAddParams{
		SessionKey: key, Kind: one.Kind, Model: pg.Clean(one.Model), PromptTokens: int64(pg.Clamp(one.Usage.Prompt)), CachedTokens: int64(pg.Clamp(one.Usage.Cached)),
		CompletionTokens: int64(pg.Clamp(one.Usage.Completion)), Cost: pg.Finite(one.Cost),
		Day: pgtype.Date{Time: time.Now().UTC(), Valid: true},
	}
	if p.PromptTokens+p.CachedTokens+p.CompletionTokens == 0 && p.Cost == 0 {
		return nil
	}
	if sessions.IsUpkeep(one.Kind) {
		p.Upkeep = p.PromptTokens + p.CompletionTokens
	}
	return dbsqlc.New().SpendAdd(ctx, tx, p)
}

// Charge implements sessions.Store.
func (s *Store) Charge(ctx context.Context, key sessions.Key, one sessions.Spending) error {
	if err := s.InTx(ctx, func(tx pgx.Tx) error { return Add(ctx, tx, key, one) }); err != nil {
		return fmt.Errorf("charging a %s: %w", one.Kind, pg.AsRefused(err))
	}
	return nil
}

// Spent implements sessions.Store.
func (s *Store) Spent(ctx context.Context, key sessions.Key, since time.Time) ([]sessions.Spending, error) {
	costs, err := s.Costs(ctx, []sessions.Key{key}, since, CostsBy{})
	if err != nil {
		return nil, fmt.Errorf("reading what a session spent: %w", err)
	}
	list := make([]sessions.Spending, 0, len(costs))
	for _, c := range costs {
		list = append(list, c.Spending)
	}
	return list, nil
}

// Cost is a sum of spendings of answers, flushes, summaries, digests and consolidations, failed ones included.
type Cost struct {
	Key    sessions.Key // empty for all sessions together
	Turns  int
	Period string // a day as 2006-01-02 or a month as 2006-01, of UTC; empty for all days together
	sessions.Spending
}

// CostsBy groups costs further than by kind; the zero value sums up everything.
type CostsBy struct {
	Session    bool
	Day, Month bool // one of them at most
}

// Costs sums the spendings of the given sessions, nil for all, from a day on, the newest first. Compactions and
// Flushes have the cost of each attempt.
func (s *Store) Costs(ctx context.Context, only []sessions.Key, since time.Time, by CostsBy) ([]Cost, error) {
	day := since.UTC()
	p := &dbsqlc.SpendSumsParams{OnlyKeys: pg.Texts(only), Since: pgtype.Date{Time: day, Valid: true}, BySession: by.Session}
	switch {
	case by.Day:
		p.PeriodForm = "YYYY-MM-DD"
	case by.Month:
		p.PeriodForm = "YYYY-MM"
	}
	rows, err := s.Q.SpendSums(ctx, s.Pool, p)
	if err != nil {
		return nil, fmt.Errorf("adding up costs since %s: %w", day.Format(time.DateOnly), err)
	}
	costs := make([]Cost, 0, len(rows))
	for _, r := range rows {
		costs = append(costs, Cost{
			Key: sessions.Key(r.Session), Period: r.Period, Turns: int(r.Turns),
			Spending: sessions.Spending{
				Kind: r.Kind, Cost: r.Cost,
				Usage: sessions.Usage{Prompt: int(r.PromptTokens), Cached: int(r.CachedTokens), Completion: int(r.CompletionTokens)},
			},
		})
	}
	return costs, nil
}
