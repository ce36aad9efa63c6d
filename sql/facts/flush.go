package facts

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
	"ebb/sql/spend"
)

// Flushes stores flushes with their receipts, and those that are owed.
type Flushes struct{ db *pg.DB }

// NewFlushes returns the flushes of a database.
func NewFlushes(db *pg.DB) *Flushes { return &Flushes{db} }

// Flush implements memory.Flushes.
func (s *Flushes) Flush(ctx context.Context, l sessions.Lease, f memory.Flush) (memory.Receipt, error) {
	var receipt memory.Receipt
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) (err error) {
		if row.FlushedSeq != f.From || f.Through < f.From || f.Through > row.LastSeq {
			return sessions.ErrConflict
		}
		k := keeper{db: s.db, tx: tx, source: l.Key, robot: row.RobotCode, start: f.From + 1, end: max(f.From+1, f.Through)}
		if receipt, err = k.keep(ctx, f.Drafts); err != nil {
			return err
		}
		if err := s.receipt(ctx, tx, row, f, receipt); err != nil {
			return err
		}
		if err := s.db.Q.SessionFlushed(ctx, tx, &dbsqlc.SessionFlushedParams{
			SessionKey: l.Key, ThroughSeq: f.Through, FlushEpoch: f.Epoch, Last: f.Last, Gen: f.Gen,
		}); err != nil {
			return err
		}
		if err := spend.Add(ctx, tx, s.db, l.Key, sessions.Spending{Kind: sessions.SpentFlush, Usage: f.Usage, Cost: f.Cost, Model: f.Model}); err != nil {
			return err
		}
		return s.settleDebt(ctx, tx, l.Key, f.Through)
	})
	if err != nil {
		return memory.Receipt{}, fmt.Errorf("flushing events %d to %d: %w", f.From+1, f.Through, pg.AsRefused(err))
	}
	return receipt, nil
}

func (s *Flushes) settleDebt(ctx context.Context, tx pgx.Tx, key sessions.Key, through int64) error {
	err := s.db.Q.DebtDelete(ctx, tx, &dbsqlc.DebtDeleteParams{SessionKey: key, ThroughSeq: through})
	if err != nil {
		return err
	}
	return s.db.Q.DebtShorten(ctx, tx, &dbsqlc.DebtShortenParams{SessionKey: key, ThroughSeq: through})
}

// Owe implements memory.Flushes.
func (s *Flushes) Owe(ctx context.Context, l sessions.Lease, d memory.Debt) error {
	err := s.db.WithLease(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) error {
		if d.Through > row.LastSeq {
			return sessions.ErrConflict
		}
		if err := spend.Add(ctx, tx, s.db, l.Key, sessions.Spending{Kind: sessions.SpentFlush, Usage: d.Usage, Cost: d.Cost, Model: d.Model}); err != nil {
			return err
		}
		if err := s.db.Q.SessionFlushFailed(ctx, tx, &dbsqlc.SessionFlushFailedParams{
			SessionKey: l.Key, FlushFailures: pg.Clamp(d.Failures),
		}); err != nil || d.Through <= row.FlushedSeq {
			return err
		}
		return s.db.Q.DebtUpsert(ctx, tx, &dbsqlc.DebtUpsertParams{
			SessionKey: l.Key, FromSeq: row.FlushedSeq, ThroughSeq: d.Through, Failures: pg.Clamp(d.Failures), Reason: pg.Clean(d.Reason),
		})
	})
	if err != nil {
		return fmt.Errorf("owing a flush up to event %d: %w", d.Through, pg.AsRefused(err))
	}
	return nil
}

// A stop flushes an unowned session whose last message is unownedRecent old at most. An owner keeps the lease of an
// unflushed one for this time, until the idle flush, so that only a dead owner leaves such a session.
const unownedRecent = 35 * time.Minute

// Unflushed implements memory.Flushes.
func (s *Flushes) Unflushed(ctx context.Context, owner sessions.ReplicaID) ([]memory.UnflushedSession, error) {
	rows, err := s.db.Q.SessionsUnflushed(ctx, s.db.Pool, &dbsqlc.SessionsUnflushedParams{
		Owner: string(owner), RecentSeconds: unownedRecent.Seconds(), TtlSeconds: s.db.TTL.Seconds(),
	})
	if err != nil {
		return nil, fmt.Errorf("listing unflushed sessions of replica %s: %w", owner, err)
	}
	unsaved := make([]memory.UnflushedSession, 0, len(rows))
	for _, r := range rows {
		unsaved = append(unsaved, memory.UnflushedSession{Key: r.SessionKey, Tokens: int(r.Tokens)})
	}
	return unsaved, nil
}
