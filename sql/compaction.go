package sql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// Compact implements sessions.Store.
func (s *Store) Compact(ctx context.Context, l sessions.Lease, c sessions.Compaction) error {
	err := s.fenced(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) error {
		if row.Gen != c.Gen || row.CompactedSeq != c.From || c.Through <= c.From || c.Through > row.LastSeq {
			return sessions.ErrConflict
		}
		return s.compact(ctx, tx, l.Key, c)
	})
	if err != nil {
		return fmt.Errorf("compacting events %d to %d of session %s at term %d: %w",
			c.From+1, c.Through, l.Key, l.Term, refused(err))
	}
	return nil
}

func (s *Store) compact(ctx context.Context, tx pgx.Tx, key sessions.Key, c sessions.Compaction) error {
	insert, err := s.summaryParams(ctx, tx, key, c)
	if err != nil {
		return err
	}
	id, err := s.q.SummaryInsert(ctx, tx, insert)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("the log has a gap: %w", sessions.ErrConflict)
	}
	if err != nil {
		return err
	}
	if _, err := s.q.SummariesSupersede(ctx, tx, &dbsqlc.SummariesSupersedeParams{
		SessionKey: key, By: &id, Ids: append([]int64{}, c.Supersede...),
	}); err != nil {
		return err
	}
	if err := s.q.SummaryActivate(ctx, tx, &dbsqlc.SummaryActivateParams{SessionKey: key, ID: id}); err != nil {
		return err
	}
	if err := s.q.EventsArchive(ctx, tx, &dbsqlc.EventsArchiveParams{
		SessionKey: key, StartSeq: c.From + 1, EndSeq: c.Through,
	}); err != nil {
		return err
	}
	if err := s.q.EventSummaryInsert(ctx, tx, &dbsqlc.EventSummaryInsertParams{
		SessionKey: key, Content: clean(c.Summary), Tokens: count(c.Tokens),
	}); err != nil {
		return err
	}
	entry := c.Log
	entry.Key, entry.StartSeq, entry.EndSeq, entry.Outcome = key, insert.StartSeq, c.Through, "committed"
	if err := s.logAttempt(ctx, tx, entry, &id); err != nil {
		return err
	}
	return s.q.SessionCompacted(ctx, tx, &dbsqlc.SessionCompactedParams{
		SessionKey: key, ThroughSeq: c.Through, Freed: min(max(c.Freed, -math.MaxInt32), math.MaxInt32), RearmTokens: count(c.RearmTokens), Pinned: clean(c.Pinned),
		PromptTokens: int64(count(c.Log.Usage.Prompt)), CachedTokens: int64(count(c.Log.Usage.Cached)),
		CompletionTokens: int64(count(c.Log.Usage.Completion)),
	})
}

// summaryParams is the row of a new summary. Where it replaces others, it begins where they begin: they must be the
// newest ones in the view, without a gap, or summaries would no longer lie end to end.
func (s *Store) summaryParams(
	ctx context.Context, tx pgx.Tx, key sessions.Key, c sessions.Compaction,
) (*dbsqlc.SummaryInsertParams, error) {
	p := &dbsqlc.SummaryInsertParams{
		SessionKey: key, Gen: c.Gen, StartSeq: c.From + 1, FreshSeq: c.From + 1, EndSeq: c.Through,
		Summary: clean(c.Summary), Tokens: count(c.Tokens), Model: clean(c.Log.Model),
	}
	if len(c.Supersede) == 0 {
		return p, nil
	}
	active, err := s.q.SummariesActive(ctx, tx, key)
	if err != nil {
		return nil, err
	}
	replaced := make(map[int64]bool, len(c.Supersede))
	for _, id := range c.Supersede {
		replaced[id] = true
	}
	if len(active) < len(replaced) {
		return nil, sessions.ErrConflict
	}
	for _, a := range active[len(active)-len(replaced):] {
		if !replaced[a.ID] {
			return nil, sessions.ErrConflict
		}
		p.ToldCount += a.MsgCount
		p.Level = max(p.Level, a.Level+1)
	}
	first := active[len(active)-len(replaced)]
	p.StartSeq, p.StartMsgID = first.StartSeq, first.StartMsgID
	return p, nil
}

// Log implements sessions.Store.
func (s *Store) Log(ctx context.Context, l sessions.Lease, e sessions.LogEntry) error {
	e.Key = l.Key
	err := s.fenced(ctx, l, func(tx pgx.Tx, _ *dbsqlc.Session) error {
		if err := s.logAttempt(ctx, tx, e, nil); err != nil {
			return err
		}
		return s.q.SessionCompactFailed(ctx, tx, &dbsqlc.SessionCompactFailedParams{
			SessionKey: l.Key, CompactFailures: count(e.Failures), CompactRetryAt: orNil(e.RetryAt), RearmTokens: count(e.Rearm),
			PromptTokens: int64(count(e.Usage.Prompt)), CachedTokens: int64(count(e.Usage.Cached)),
			CompletionTokens: int64(count(e.Usage.Completion)),
		})
	})
	if err != nil {
		return fmt.Errorf("logging a compaction attempt of session %s at term %d: %w", l.Key, l.Term, refused(err))
	}
	return nil
}

func (s *Store) logAttempt(ctx context.Context, tx pgx.Tx, e sessions.LogEntry, summary *int64) error {
	p := &dbsqlc.CompactionInsertParams{
		SessionKey: e.Key, Trigger: e.Trigger, Policy: e.Policy, Mode: e.Mode, Model: clean(e.Model), Focus: clean(e.Focus),
		TokensBefore: count(e.TokensBefore), TokensAfter: count(e.TokensAfter), StartSeq: e.StartSeq, EndSeq: e.EndSeq,
		SummaryID: summary, FlushOutcome: e.FlushOutcome, DurationMs: e.Duration.Milliseconds(), Cost: finite(e.Cost),
		PromptTokens: count(e.Usage.Prompt), CachedTokens: count(e.Usage.Cached), CompletionTokens: count(e.Usage.Completion),
		Outcome: e.Outcome, Error: clean(e.Error),
	}
	if e.Audit != "" {
		audit, err := cleanJSON(json.RawMessage(e.Audit))
		if err != nil {
			return fmt.Errorf("the audit is no JSON: %w: %w", sessions.ErrRefused, err)
		}
		p.Audit = audit
	}
	return s.q.CompactionInsert(ctx, tx, p)
}
