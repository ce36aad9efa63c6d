package admin

import (
	"context"
	"fmt"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// DeadLetters lists messages that were set aside, the newest first, at most limit.
func (s *Store) DeadLetters(ctx context.Context, limit int) ([]sessions.Event, error) {
	rows, err := s.Q.DeadLettersList(ctx, s.Pool, &dbsqlc.DeadLettersListParams{Erased: sessions.ErasedText, MaxRows: pg.Clamp(limit)})
	if err != nil {
		return nil, fmt.Errorf("listing dead letters: %w", err)
	}
	return convert.Events(rows)
}

// RetryDeadLetter makes a message that was set aside wait for an answer again, as if it came now, and returns its session:
// sessions.ErrNotFound where no such message is set aside. It is taken alone, since nothing says that it does no harm again.
func (s *Store) RetryDeadLetter(ctx context.Context, id int64) (sessions.Key, error) {
	row, err := s.Q.DeadLetterRetry(ctx, s.Pool, &dbsqlc.DeadLetterRetryParams{ID: id, Erased: sessions.ErasedText})
	if err != nil {
		return "", fmt.Errorf("retrying dead letter %d: %w", id, pg.AsNotFound(err))
	}
	return row.SessionKey, nil
}
