package admin

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// DeadLetters lists dead letters of sessions, nil for all, the newest first.
func (s *Store) DeadLetters(ctx context.Context, only []sessions.Key, limit int) ([]sessions.Event, error) {
	rows, err := s.db.Q.DeadLettersList(ctx, s.db.Pool, &dbsqlc.DeadLettersListParams{Erased: sessions.ErasedText, OnlyKeys: pg.Texts(only), MaxRows: pg.Clamp(limit)})
	if err != nil {
		return nil, fmt.Errorf("listing dead letters: %w", err)
	}
	return convert.Events(rows)
}

// RetryDeadLetter queues a dead letter for another answer, as if it came now, and returns its session. It returns
// sessions.ErrNotFound when the message is no dead letter. A turn takes it alone, since it may fail again.
func (s *Store) RetryDeadLetter(ctx context.Context, id int64) (sessions.Key, error) {
	var key sessions.Key
	err := s.db.InTx(ctx, func(tx pgx.Tx) (err error) {
		if key, err = s.db.Q.DeadLetterRetry(ctx, tx, &dbsqlc.DeadLetterRetryParams{ID: id, Erased: sessions.ErasedText}); err != nil {
			return err
		}
		return s.db.Q.Notify(ctx, tx, "|"+string(key))
	})
	if err != nil {
		return "", fmt.Errorf("retrying dead letter %d: %w", id, pg.AsNotFound(err))
	}
	return key, nil
}
