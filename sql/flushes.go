package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// FlushReceipt proves what a flush, or a part of one, did: which events it read and the rows that hold what was in them.
type FlushReceipt struct {
	ID      int64
	Key     sessions.Key
	Trigger string
	Gen     int
	Epoch   int   // the session's compaction count then: the cycle that it belongs to
	From    int64 // it read the events after this one,
	Through int64 // up to this one
	Receipt memory.Receipt
	Model   string
	Usage   sessions.Usage // of the calls that it took
	Cost    float64        // of those calls, in the unit of the configured prices
	Created time.Time
}

// receipt stores the receipt of a flush. row is the session as it stood before.
func (s *factStore) receipt(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, f memory.Flush, r memory.Receipt) error {
	return s.q.FlushInsert(ctx, tx, &dbsqlc.FlushInsertParams{
		SessionKey: row.SessionKey, Trigger: clean(f.Trigger), Gen: f.Gen, Epoch: row.CompactionCount, FromSeq: f.From,
		ThroughSeq: f.Through, Saved: append([]int64{}, r.Saved...), Duplicate: append([]int64{}, r.Duplicate...),
		Superseded: append([]int64{}, r.Superseded...), Model: clean(f.Model), PromptTokens: int64(count(f.Usage.Prompt)),
		CachedTokens: int64(count(f.Usage.Cached)), CompletionTokens: int64(count(f.Usage.Completion)), Cost: finite(f.Cost),
	})
}

// Flushes lists receipts of flushes, newest first, at most limit: of one session, or of all where the key is empty.
func (s *factStore) Flushes(ctx context.Context, key sessions.Key, limit int) ([]FlushReceipt, error) {
	rows, err := s.q.FlushesList(ctx, s.pool, &dbsqlc.FlushesListParams{SessionKey: string(key), MaxRows: count(limit)})
	if err != nil {
		return nil, fmt.Errorf("listing flushes of session %s: %w", key, err)
	}
	return toReceipts(rows), nil
}

// CompactionFlushes lists the receipts of the flushes that came before a compaction, in order: what was saved of the
// events that it told, before it told them.
func (s *factStore) CompactionFlushes(ctx context.Context, key sessions.Key, id int64) ([]FlushReceipt, error) {
	rows, err := s.q.CompactionFlushes(ctx, s.pool, &dbsqlc.CompactionFlushesParams{SessionKey: key, ID: id})
	if err != nil {
		return nil, fmt.Errorf("listing flushes before compaction %d of session %s: %w", id, key, err)
	}
	return toReceipts(rows), nil
}

func toReceipts(rows []dbsqlc.MemoryFlush) []FlushReceipt {
	receipts := make([]FlushReceipt, 0, len(rows))
	for _, r := range rows {
		receipts = append(receipts, FlushReceipt{
			ID: r.ID, Key: r.SessionKey, Trigger: r.Trigger, Gen: r.Gen, Epoch: r.Epoch, From: r.FromSeq, Through: r.ThroughSeq,
			Receipt: memory.Receipt{Saved: r.Saved, Duplicate: r.Duplicate, Superseded: r.Superseded}, Model: r.Model,
			Usage: sessions.Usage{Prompt: int(r.PromptTokens), Cached: int(r.CachedTokens), Completion: int(r.CompletionTokens)},
			Cost:  r.Cost, Created: r.CreatedAt,
		})
	}
	return receipts
}
