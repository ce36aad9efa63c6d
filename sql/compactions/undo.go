package compactions

import (
	"cmp"
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
)

// Undo implements sessions.Compactor.
func (s *Store) Undo(ctx context.Context, l sessions.Lease, event int64, rest int) (entry sessions.LogEntry, err error) {
	err = s.db.WithLease(ctx, l, func(tx pgx.Tx, row *dbsqlc.Session) (err error) {
		entry, err = s.undo(ctx, tx, row, 0, asker{event: event}, rest)
		return err
	})
	if err != nil {
		return sessions.LogEntry{}, fmt.Errorf("undoing a compaction: %w", pg.AsRefused(err))
	}
	return entry, nil
}

// UndoCompaction is [Store.Undo] for administrators, without a lease. A compaction in progress then fails, since its
// cursor has moved. A turn in progress appends to the restored view. The id 0 stands for the newest;
// [sessions.ErrConflict] says that another one is the newest. by is the operator or person who asks.
func (s *Store) UndoCompaction(ctx context.Context, key sessions.Key, id int64, by string, rest int) (entry sessions.LogEntry, err error) {
	err = s.db.InTx(ctx, func(tx pgx.Tx) error {
		row, err := s.db.Q.SessionLock(ctx, tx, key)
		if err != nil {
			return pg.AsNotFound(err)
		}
		entry, err = s.undo(ctx, tx, &row, id, asker{name: by}, rest)
		return err
	})
	if err != nil {
		return sessions.LogEntry{}, fmt.Errorf("undoing a compaction: %w", pg.AsRefused(err))
	}
	return entry, nil
}

type asker struct {
	event int64
	name  string
}

// undo expects a locked session. It returns the earlier undo when the same message asked for it before.
func (s *Store) undo(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, id int64, by asker, rest int) (sessions.LogEntry, error) {
	key := row.SessionKey
	again, err := s.undoneBy(ctx, tx, key, by.event)
	if !errors.Is(err, pgx.ErrNoRows) {
		return again, err
	}
	done, err := s.db.Q.CompactionUndoable(ctx, tx, &dbsqlc.CompactionUndoableParams{SessionKey: key, Gen: row.Gen})
	if errors.Is(err, pgx.ErrNoRows) {
		gone, err := s.db.Q.UndoExpired(ctx, tx, &dbsqlc.UndoExpiredParams{SessionKey: key, Gen: row.Gen})
		if err == nil && gone {
			err = sessions.ErrUndoExpired
		}
		return again, cmp.Or(err, sessions.ErrNotFound)
	}
	if err != nil {
		return again, err
	}
	if id != 0 && done.ID != id {
		return again, fmt.Errorf("compaction %d is not the newest: %w", id, sessions.ErrConflict)
	}
	var before ViewBefore
	if err := json.Unmarshal(done.ViewBefore, &before); err != nil {
		return again, fmt.Errorf("reading the view before compaction %d: %w", done.ID, err)
	}
	grown, err := s.restore(ctx, tx, row, before)
	if err != nil {
		return again, err
	}
	freed := int64(done.TokensBefore - done.TokensAfter)
	if before.Freed != nil {
		freed -= int64(math.Round(row.Calibration * float64(*before.Freed-grown)))
	}
	if err := s.db.Q.CompactionUndone(ctx, tx, &dbsqlc.CompactionUndoneParams{SessionKey: key, ID: done.ID}); err != nil {
		return again, err
	}
	size, err := s.db.Q.SessionUndone(ctx, tx, &dbsqlc.SessionUndoneParams{
		SessionKey: key, CompactedSeq: before.Cursor, Freed: freed, Rest: pg.Clamp(rest), Pinned: before.Pinned,
	})
	if err != nil {
		return again, err
	}
	return s.logAttempt(ctx, tx, sessions.LogEntry{
		Key: key, Trigger: "undo", Policy: done.Policy, Mode: done.Mode, TokensBefore: row.TotalTokens,
		TokensAfter: size, StartSeq: done.StartSeq, EndSeq: done.EndSeq, Outcome: "committed",
		RequestedBy: by.name,
	}, attempt{gen: row.Gen, askedBy: by.event})
}

// undoneBy is the undo of an earlier attempt at the same turn, or pgx.ErrNoRows.
func (s *Store) undoneBy(ctx context.Context, tx pgx.Tx, key sessions.Key, event int64) (sessions.LogEntry, error) {
	if event == 0 {
		return sessions.LogEntry{}, pgx.ErrNoRows
	}
	row, err := s.db.Q.CompactionUndoneBy(ctx, tx, &dbsqlc.CompactionUndoneByParams{SessionKey: key, AskedBy: &event})
	if err != nil {
		return sessions.LogEntry{}, err
	}
	return convert.LogEntry(&row), nil
}

// restore returns the uncalibrated size of the texts that are back. Deleted bodies that the former view refers to are taken from the log
// again.
func (s *Store) restore(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, v ViewBefore) (grown int64, err error) {
	key := row.SessionKey
	size, err := s.db.Q.ViewTokens(ctx, tx, &dbsqlc.ViewTokensParams{SessionKey: key, AfterSeq: row.CompactedSeq})
	if err != nil {
		return 0, err
	}
	if err := s.showBefore(ctx, tx, key, v); err != nil {
		return 0, err
	}
	now, err := s.db.Q.ViewTokens(ctx, tx, &dbsqlc.ViewTokensParams{SessionKey: key, AfterSeq: v.Cursor})
	return now - size, err
}

func (s *Store) showBefore(ctx context.Context, tx pgx.Tx, key sessions.Key, v ViewBefore) error {
	ids := append([]int64{}, v.Summaries...)
	if err := s.db.Q.SummariesUndo(ctx, tx, &dbsqlc.SummariesUndoParams{SessionKey: key, Ids: ids}); err != nil {
		return err
	}
	if err := s.db.Q.SummariesRestore(ctx, tx, &dbsqlc.SummariesRestoreParams{SessionKey: key, Ids: ids}); err != nil {
		return err
	}
	if err := s.db.Q.EventsUnarchive(ctx, tx, &dbsqlc.EventsUnarchiveParams{SessionKey: key, AfterSeq: v.Cursor}); err != nil {
		return err
	}
	if err := s.showAs(ctx, tx, key, v.Shown, v.Cursor); err != nil {
		return err
	}
	if _, err := s.db.Q.BlobsSweep(ctx, tx, &dbsqlc.BlobsSweepParams{SessionKey: key, AfterSeq: v.Cursor}); err != nil {
		return err
	}
	return s.db.Q.JobDelete(ctx, tx, key)
}
