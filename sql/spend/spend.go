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
type Store struct{ db *pg.DB }

// New returns the costs of a database.
func New(db *pg.DB) *Store { return &Store{db} }

// Add adds a spending to the session's usage and to that of the day. It does nothing for a session that does not exist: the
// caller has locked the session.
func Add(ctx context.Context, tx pgx.Tx, db *pg.DB, key sessions.Key, one sessions.Spending) error {
	session, day := usage(db.Clock.Now(), key, one)
	if session == nil {
		return nil
	}
	q := dbsqlc.New()
	if err := pg.Done(q.SpendAdd(ctx, tx, []*dbsqlc.SpendAddParams{session}).Exec); err != nil {
		return err
	}
	db.Tokens.Add(day.PromptTokens + day.CompletionTokens) // too many for a moment if the transaction fails
	_, err := pg.Found(q.UsageAdd(ctx, tx, []*dbsqlc.UsageAddParams{day}).QueryRow)
	return err
}

// KeepGone adds the usage of a session that is about to be deleted to that of deleted sessions, without its people.
func KeepGone(ctx context.Context, tx pgx.Tx, key sessions.Key) error {
	q := dbsqlc.New()
	rows, err := q.UsageOfSession(ctx, tx, key)
	if err != nil {
		return err
	}
	kept := make([]*dbsqlc.UsageKeepParams, len(rows))
	for i, r := range rows {
		kept[i] = &dbsqlc.UsageKeepParams{
			SessionKey: key.Gone(), Day: r.Day, Kind: r.Kind, Model: r.Model, Turns: r.Turns, PromptTokens: r.PromptTokens,
			CachedTokens: r.CachedTokens, CompletionTokens: r.CompletionTokens, Cost: r.Cost,
		}
	}
	return pg.Done(q.UsageKeep(ctx, tx, kept).Exec)
}

// usage is a spending as the two rows take it; nil for nothing.
func usage(now time.Time, key sessions.Key, one sessions.Spending) (*dbsqlc.SpendAddParams, *dbsqlc.UsageAddParams) {
	p := &dbsqlc.SpendAddParams{
		SessionKey: key, PromptTokens: int64(pg.Clamp(one.Usage.Prompt)), CachedTokens: int64(pg.Clamp(one.Usage.Cached)),
		CompletionTokens: int64(pg.Clamp(one.Usage.Completion)), Day: pgtype.Date{Time: now.UTC(), Valid: true},
	}
	cost := pg.Finite(one.Cost)
	if p.PromptTokens+p.CachedTokens+p.CompletionTokens == 0 && cost == 0 {
		return nil, nil
	}
	if one.Kind.IsUpkeep() {
		p.Upkeep = p.PromptTokens + p.CompletionTokens
	}
	return p, &dbsqlc.UsageAddParams{
		SessionKey: key, Day: p.Day, Kind: string(one.Kind), Model: pg.Clean(one.Model), PromptTokens: p.PromptTokens, CachedTokens: p.CachedTokens,
		CompletionTokens: p.CompletionTokens, Cost: cost,
	}
}

// Charge implements sessions.Ledger.
func (s *Store) Charge(ctx context.Context, key sessions.Key, one sessions.Spending) error {
	session, day := usage(s.db.Clock.Now(), key, one)
	if session == nil {
		return nil
	}
	p := s.db.Pool.Pipeline()
	s.db.Q.SpendAdd(ctx, p, []*dbsqlc.SpendAddParams{session})
	added := s.db.Q.UsageAdd(ctx, p, []*dbsqlc.UsageAddParams{day})
	err := p.Send(ctx)
	if err == nil {
		s.db.Tokens.Add(day.PromptTokens + day.CompletionTokens)
		err = s.chargeGone(ctx, key, day, added)
	}
	if err != nil {
		return fmt.Errorf("charging a %s: %w", one.Kind, pg.AsRefused(err))
	}
	return nil
}

// chargeGone counts the usage of a session that was deleted during the call.
func (s *Store) chargeGone(ctx context.Context, key sessions.Key, day *dbsqlc.UsageAddParams, added *dbsqlc.UsageAddBatchResults) error {
	rows, err := pg.Found(added.QueryRow)
	if err != nil || len(rows) > 0 {
		return err
	}
	p := s.db.Pool.Pipeline()
	s.db.Q.UsageKeep(ctx, p, []*dbsqlc.UsageKeepParams{{
		SessionKey: key.Gone(), Day: day.Day, Kind: day.Kind, Model: day.Model, PromptTokens: day.PromptTokens,
		CachedTokens: day.CachedTokens, CompletionTokens: day.CompletionTokens, Cost: day.Cost,
	}})
	return p.Send(ctx)
}

// Spent implements sessions.Ledger.
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
	rows, err := s.db.Q.SpendSums(ctx, s.db.Pool, p)
	if err != nil {
		return nil, fmt.Errorf("adding up costs since %s: %w", day.Format(time.DateOnly), err)
	}
	costs := make([]Cost, 0, len(rows))
	for _, r := range rows {
		costs = append(costs, Cost{
			Key: sessions.Key(r.Session), Period: r.Period, Turns: int(r.Turns),
			Spending: sessions.Spending{
				Kind: sessions.SpentKind(r.Kind), Cost: r.Cost,
				Usage: sessions.Usage{Prompt: int(r.PromptTokens), Cached: int(r.CachedTokens), Completion: int(r.CompletionTokens)},
			},
		})
	}
	return costs, nil
}
