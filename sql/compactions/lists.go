package compactions

import (
	"context"
	"fmt"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Compactions implements sessions.Compactor.
func (s *Store) Compactions(ctx context.Context, key sessions.Key, limit int) ([]sessions.LogEntry, error) {
	rows, err := s.db.Q.CompactionsList(ctx, s.db.Pool, &dbsqlc.CompactionsListParams{
		SessionKey: string(key), MaxRows: pg.Clamp(limit),
	})
	if err != nil {
		return nil, fmt.Errorf("listing compactions: %w", err)
	}
	list := make([]sessions.LogEntry, 0, len(rows))
	for i := range rows {
		list = append(list, convert.LogEntry(&rows[i]))
	}
	return list, nil
}

// Compaction returns one attempt, or sessions.ErrNotFound.
func (s *Store) Compaction(ctx context.Context, id int64) (sessions.LogEntry, error) {
	row, err := s.db.Q.CompactionFind(ctx, s.db.Pool, id)
	if err != nil {
		return sessions.LogEntry{}, fmt.Errorf("reading compaction %d: %w", id, pg.AsNotFound(err))
	}
	return convert.LogEntry(&row), nil
}

// End is the remaining state of a compaction attempt.
type End struct {
	SummaryID int64 // newest one; 0 for none
	Erased    bool  // an erasure, not an undo, removed it
}

// CompactionEnds returns the remaining state of attempts by id.
func (s *Store) CompactionEnds(ctx context.Context, ids []int64) (map[int64]End, error) {
	rows, err := s.db.Q.CompactionsEnds(ctx, s.db.Pool, ids)
	if err != nil {
		return nil, fmt.Errorf("reading the ends of %d compactions: %w", len(ids), err)
	}
	ends := make(map[int64]End, len(rows))
	for _, r := range rows {
		ends[r.ID] = End{SummaryID: r.SummaryID, Erased: r.Erased}
	}
	return ends, nil
}

// Summary returns one summary of a session, whatever its state, or sessions.ErrNotFound.
func (s *Store) Summary(ctx context.Context, key sessions.Key, id int64) (sessions.Summary, error) {
	r, err := s.db.Q.SummaryFind(ctx, s.db.Pool, &dbsqlc.SummaryFindParams{SessionKey: key, ID: id})
	if err != nil {
		return sessions.Summary{}, fmt.Errorf("reading summary %d: %w", id, pg.AsNotFound(err))
	}
	return sessions.Summary{
		ID: r.ID, Key: r.SessionKey, StartSeq: r.StartSeq, EndSeq: r.EndSeq, StartMsgID: r.StartMsgID, EndMsgID: r.EndMsgID,
		MsgCount: r.MsgCount, Text: r.Summary, Tokens: r.Tokens, Level: r.Level, Status: r.Status, CreatedAt: r.CreatedAt,
	}, nil
}
