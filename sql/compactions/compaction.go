package compactions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
	"ebb/sql/spend"
)

// Store commits compactions, undoes them, and logs every attempt.
type Store struct{ db *pg.DB }

// New returns the compactions of a database.
func New(db *pg.DB) *Store { return &Store{db} }

// ViewBefore is a view before a compaction, as the log keeps it for an undo.
type ViewBefore struct {
	Cursor    int64         `json:"cursor"`
	Summaries []int64       `json:"summaries"`
	Pinned    string        `json:"pinned,omitempty"`
	Shown     []ShownBefore `json:"shown,omitempty"`
	// Freed is the uncalibrated size of the texts that left the view, for an undo after an erasure of some; nil in rows of older releases.
	Freed *int64 `json:"freed,omitempty"`
}

// ShownBefore is the text that a view showed of an event before a change. A nil Text stands for the event's content.
type ShownBefore struct {
	Seq    int64   `json:"seq"`
	Text   *string `json:"text"`
	Tokens int     `json:"tokens"`
	Blob   string  `json:"blob,omitempty"`
}

// Compact implements sessions.Compactor.
func (s *Store) Compact(
	ctx context.Context, l sessions.Lease, c sessions.Compaction,
) (sessions.Compacted, error) {
	var done sessions.Compacted
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) (err error) {
		if err := checkRange(row, c.Gen, c.From, c.Through); err != nil {
			return err
		}
		if err := s.checkUnchanged(ctx, tx, l.Key, c); err != nil {
			return err
		}
		if err := s.lockPinned(ctx, tx, c.Pinned); err != nil {
			return err
		}
		done, err = s.compact(ctx, tx, row, c)
		return err
	})
	if err != nil {
		return sessions.Compacted{}, fmt.Errorf("compacting events %d to %d: %w", c.From+1, c.Through, pg.AsRefused(err))
	}
	return done, nil
}

func checkRange(row *dbsqlc.Session, gen int, from, through int64) error {
	if row.Gen != gen || row.CompactedSeq != from || through < from || through > row.LastSeq {
		return sessions.ErrConflict
	}
	return nil
}

// checkUnchanged fails unless the source events are as they were summarized.
func (s *Store) checkUnchanged(ctx context.Context, tx pgx.Tx, key sessions.Key, c sessions.Compaction) error {
	if c.Source == "" {
		return nil
	}
	rows, err := s.db.Q.EventsRange(ctx, tx, &dbsqlc.EventsRangeParams{
		SessionKey: key, AfterSeq: c.From, ThroughSeq: c.Through, MaxRows: math.MaxInt32,
	})
	if err != nil {
		return err
	}
	events, err := convert.RangeEvents(rows)
	if err != nil {
		return err
	}
	if sessions.HashEvents(events) != c.Source {
		return fmt.Errorf("source events changed since planning: %w", sessions.ErrConflict)
	}
	return nil
}

// lockPinned locks the pinned rows of memory until the transaction ends, so that a later erasure sees the pin. It
// fails when an erasure came first or is in progress. It never waits for an erasure, which may wait for the session's row.
func (s *Store) lockPinned(ctx context.Context, tx pgx.Tx, p *sessions.Pinned) error {
	rows := convert.PinnedRows(p)
	if len(rows) == 0 {
		return nil
	}
	held, err := s.db.Q.MemoriesHold(ctx, tx, rows)
	if err == nil && len(held) != len(rows) {
		err = sessions.ErrLeaseLost
	}
	return err
}

func (s *Store) compact(
	ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, c sessions.Compaction,
) (sessions.Compacted, error) {
	var done sessions.Compacted
	key := row.SessionKey
	entry, before := c.Log, ViewBefore{Cursor: c.From, Pinned: row.Pinned}
	size, err := s.db.Q.ViewTokens(ctx, tx, &dbsqlc.ViewTokensParams{SessionKey: key, AfterSeq: c.From})
	if err != nil {
		return done, err
	}
	newest, err := s.summarise(ctx, tx, row, c, &before)
	if err != nil {
		return done, err
	}
	if err := s.db.Q.EventsArchive(ctx, tx, &dbsqlc.EventsArchiveParams{
		SessionKey: key, StartSeq: c.From + 1, EndSeq: c.Through,
	}); err != nil {
		return done, err
	}
	if before.Shown, err = s.replaceBodies(ctx, tx, key, c); err != nil {
		return done, err
	}
	left, err := s.db.Q.ViewTokens(ctx, tx, &dbsqlc.ViewTokensParams{SessionKey: key, AfterSeq: c.Through})
	if err != nil {
		return done, err
	}
	size -= left
	before.Freed = &size
	deleted, err := s.db.Q.BlobsSweep(ctx, tx, &dbsqlc.BlobsSweepParams{SessionKey: key, AfterSeq: c.Through})
	if err != nil {
		return done, err
	}
	if done.BlobsDeleted = len(deleted); len(deleted) > 0 {
		entry.Audit = sessions.AuditOffloads(entry.Audit, deleted)
	}
	if err := s.db.Q.JobDelete(ctx, tx, key); err != nil {
		return done, err
	}
	entry.Key, entry.Outcome = key, "committed"
	if len(c.Summaries) > 0 {
		entry.StartSeq, entry.EndSeq = c.Range()
	}
	if _, err := s.logAttempt(ctx, tx, entry, attempt{gen: c.Gen, summary: newest, before: &before, cycle: &row.CompactionCount}); err != nil {
		return done, err
	}
	if c.Notice != nil {
		out, err := s.insertNotice(ctx, tx, row, *c.Notice)
		if err != nil {
			return done, err
		}
		done.Replies = []sessions.Outgoing{out}
	}
	if len(c.Summaries) > 0 {
		if err := s.db.Q.SessionSummarized(ctx, tx, key); err != nil {
			return done, err
		}
	}
	return done, s.db.Q.SessionCompacted(ctx, tx, &dbsqlc.SessionCompactedParams{
		SessionKey: key, ThroughSeq: c.Through,
		Freed: min(max(c.Freed, -math.MaxInt32), math.MaxInt32), RearmTokens: pg.Clamp(c.RearmTokens),
		Pin: c.Pinned != nil, Pinned: pg.Clean(pg.OrZero(c.Pinned).Text),
	})
}

// insertNotice stores a reply that is sent once its owner claims the row.
func (s *Store) insertNotice(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, r sessions.Reply) (sessions.Outgoing, error) {
	out := sessions.Outgoing{Key: row.SessionKey, Reply: r}
	target, err := pg.CleanJSON(r.Target)
	if err != nil {
		return out, err
	}
	made, err := s.db.Q.OutboxNotice(ctx, tx, &dbsqlc.OutboxNoticeParams{
		SessionKey: row.SessionKey, Target: target, Body: pg.Clean(r.Text), Nonce: pg.Clean(r.Nonce), Owner: string(pg.OrZero(row.LeaseOwner)),
		HandSeconds: pg.ClaimTime.Seconds(),
	})
	out.ID, out.Created = made.ID, made.CreatedAt
	return out, err
}

// Log implements sessions.Compactor.
func (s *Store) Log(ctx context.Context, l sessions.Lease, e sessions.LogEntry) error {
	e.Key = l.Key
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) error {
		if _, err := s.logAttempt(ctx, tx, e, attempt{gen: row.Gen}); err != nil {
			return err
		}
		if err := spend.Add(ctx, tx, s.db, l.Key, sessions.Spending{Kind: sessions.SpentSummary, Usage: e.Usage, Cost: e.Cost, Model: e.Model}); err != nil {
			return err
		}
		return s.db.Q.SessionCompactFailed(ctx, tx, &dbsqlc.SessionCompactFailedParams{
			SessionKey: l.Key, CompactFailures: pg.Clamp(e.Failures), CompactRetryAt: pg.OrNil(e.RetryAt), RearmTokens: pg.Clamp(e.Rearm),
			Failed: e.Outcome == "failed" || e.Outcome == "rejected", Error: pg.Clean(e.Error),
		})
	})
	if err != nil {
		return fmt.Errorf("logging a compaction attempt: %w", pg.AsRefused(err))
	}
	return nil
}

type attempt struct {
	gen     int
	summary *int64      // newest
	before  *ViewBefore // for an undo
	askedBy int64       // the message that asked for an undo
	cycle   *int        // a committed compaction is linked to the last flush of its cycle
}

func (s *Store) logAttempt(
	ctx context.Context, tx pgx.Tx, e sessions.LogEntry, a attempt,
) (sessions.LogEntry, error) {
	p := &dbsqlc.CompactionInsertParams{
		SessionKey: e.Key, Gen: a.gen, Trigger: string(e.Trigger), Policy: e.Policy, Mode: e.Mode, Model: pg.Clean(e.Model), Focus: pg.Clean(e.Focus),
		TokensBefore: pg.Clamp(e.TokensBefore), TokensAfter: pg.Clamp(e.TokensAfter), StartSeq: e.StartSeq, EndSeq: e.EndSeq,
		SummaryID: a.summary, FlushOutcome: string(e.FlushOutcome), DurationMs: e.Duration.Milliseconds(), Cost: pg.Finite(e.Cost),
		PromptTokens: pg.Clamp(e.Usage.Prompt), CachedTokens: pg.Clamp(e.Usage.Cached), CompletionTokens: pg.Clamp(e.Usage.Completion),
		Outcome: string(e.Outcome), Error: pg.Clean(e.Error), AskedBy: pg.OrNil(a.askedBy), RequestedBy: pg.Clean(e.RequestedBy),
	}
	if e.Audit != "" {
		audit, err := pg.CleanJSON(json.RawMessage(e.Audit))
		if err != nil {
			return e, fmt.Errorf("the audit is no JSON: %w: %w", sessions.ErrRefused, err)
		}
		p.Audit = audit
	}
	if a.before != nil {
		b, err := json.Marshal(a.before)
		if err != nil {
			return e, err
		}
		p.ViewBefore = b
	}
	if err := s.complete(ctx, tx, p, a); err != nil {
		return e, err
	}
	row, err := s.db.Q.CompactionInsert(ctx, tx, p)
	e.ID, e.CreatedAt, e.RequestedBy = row.ID, row.CreatedAt, p.RequestedBy
	return e, err
}

// complete sets the newest flush of the cycle, and the sender of the message that asked for an undo.
func (s *Store) complete(ctx context.Context, tx pgx.Tx, p *dbsqlc.CompactionInsertParams, a attempt) error {
	if a.cycle != nil {
		flush, err := s.db.Q.FlushOfCycle(ctx, tx, &dbsqlc.FlushOfCycleParams{SessionKey: p.SessionKey, Gen: a.gen, Epoch: *a.cycle})
		if err == nil {
			p.FlushID = &flush
		} else if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
	}
	if a.askedBy == 0 || p.RequestedBy != "" {
		return nil
	}
	asker, err := s.db.Q.CompactionAsker(ctx, tx, &dbsqlc.CompactionAskerParams{SessionKey: p.SessionKey, ID: a.askedBy})
	if p.RequestedBy = string(asker); errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// Backlogs implements sessions.Compactor.
func (s *Store) Backlogs(
	ctx context.Context, owner sessions.ReplicaID, tokens int, after sessions.Key, limit int,
) ([]sessions.Session, error) {
	rows, err := s.db.Q.SessionsBacklog(ctx, s.db.Pool, &dbsqlc.SessionsBacklogParams{
		Owner: string(owner), TtlSeconds: s.db.TTL.Seconds(), Least: pg.Clamp(tokens), AfterKey: string(after), MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing backlogs for replica %s: %w", owner, err)
	}
	list := make([]sessions.Session, 0, len(rows))
	for _, r := range rows {
		list = append(list, sessions.Session{
			Key: r.SessionKey, ConversationID: r.ConversationID, TotalTokens: r.TotalTokens, RearmTokens: r.RearmTokens,
			SpentToday: int(r.SpentToday), Suspicion: convert.Suspicion(r.Suspicion),
		})
	}
	return list, nil
}
