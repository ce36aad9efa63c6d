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
)

// FlushReceipt records a flush, or a part of one: the events that it read and the rows that hold their facts.
type FlushReceipt struct {
	ID      int64
	Key     sessions.Key
	Trigger memory.FlushTrigger
	Gen     int
	Epoch   int   // the session's compaction count then
	From    int64 // exclusive
	Through int64 // inclusive
	Receipt memory.Receipt
	Model   string
	Usage   sessions.Usage
	Cost    float64 // in llm.currency
	Created time.Time
}

// The row is the session before the flush.
func (s *Flushes) receipt(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, f memory.Flush, r memory.Receipt) error {
	return s.db.Q.FlushInsert(ctx, tx, &dbsqlc.FlushInsertParams{
		SessionKey: row.SessionKey, Trigger: pg.Clean(string(f.Trigger)), Gen: f.Gen, Epoch: row.CompactionCount, FromSeq: f.From,
		ThroughSeq: f.Through, Saved: append([]int64{}, r.Saved...), Duplicate: append([]int64{}, r.Duplicate...),
		Superseded: append([]int64{}, r.Superseded...), Model: pg.Clean(f.Model), PromptTokens: int64(pg.Clamp(f.Usage.Prompt)),
		CachedTokens: int64(pg.Clamp(f.Usage.Cached)), CompletionTokens: int64(pg.Clamp(f.Usage.Completion)), Cost: pg.Finite(f.Cost),
	})
}

// CompactionFlushes lists, in order, the receipts of the flushes before a compaction, which hold the facts of the
// summarized events.
func (s *Flushes) CompactionFlushes(ctx context.Context, key sessions.Key, id int64) ([]FlushReceipt, error) {
	rows, err := s.db.Q.CompactionFlushes(ctx, s.db.Pool, &dbsqlc.CompactionFlushesParams{SessionKey: key, ID: id})
	if err != nil {
		return nil, fmt.Errorf("listing flushes before compaction %d: %w", id, err)
	}
	return toReceipts(rows), nil
}

func toReceipts(rows []dbsqlc.MemoryFlush) []FlushReceipt {
	receipts := make([]FlushReceipt, 0, len(rows))
	for _, r := range rows {
		receipts = append(receipts, FlushReceipt{
			ID: r.ID, Key: r.SessionKey, Trigger: memory.FlushTrigger(r.Trigger), Gen: r.Gen, Epoch: r.Epoch, From: r.FromSeq, Through: r.ThroughSeq,
			Receipt: memory.Receipt{Saved: r.Saved, Duplicate: r.Duplicate, Superseded: r.Superseded}, Model: r.Model,
			Usage: sessions.Usage{Prompt: int(r.PromptTokens), Cached: int(r.CachedTokens), Completion: int(r.CompletionTokens)},
			Cost:  r.Cost, Created: r.CreatedAt,
		})
	}
	return receipts
}
