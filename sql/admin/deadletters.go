package admin

import (
	"context"
	"fmt"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// DeadLetters lists dead letters of sessions, nil for all, the newest first.
func (s *Store) DeadLetters(ctx context.Context, only []sessions.Key, limit int) ([]sessions.Event, error) {
	rows, err := s.Q.DeadLettersList(ctx, s.Pool, &dbsqlc.DeadLettersListParams{Erased: sessions.ErasedText, OnlyKeys: pg.Texts(only), MaxRows: pg.Clamp(limit)})
	if err != nil {
		return nil, fmt.Errorf("listing dead letters: %w", err)
	}
	return convert.Events(rows)
}

// RetryDeadLetter queues a dead letter for another answer, as if it came now, and returns its session. It returns
// sessions.ErrNotFound when the message is no dead letter. A turn takes it alone, since it may fail again.
func (s *Store) RetryDeadLetter(ctx context.Context, id int64) (sessions.Key, error) {
	row, err := s.Q.DeadLetterRetry(ctx, s.Pool, &dbsqlc.DeadLetterRetryParams{ID: id, Erased: sessions.ErasedText})
	if err != nil {
		return "", fmt.Errorf("retrying dead letter %d: %w", id, pg.AsNotFound(err))
	}
	return row.SessionKey, nil
}
