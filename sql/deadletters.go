package sql

import (
	"context"
	"fmt"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// DeadLetters lists messages that were set aside, the newest first, at most limit.
func (s *adminStore) DeadLetters(ctx context.Context, limit int) ([]sessions.Event, error) {
	rows, err := s.q.DeadLettersList(ctx, s.pool, &dbsqlc.DeadLettersListParams{Erased: sessions.ErasedText, MaxRows: count(limit)})
	if err != nil {
		return nil, fmt.Errorf("listing dead letters: %w", err)
	}
	return toEvents(rows)
}

// RetryDeadLetter makes a message that was set aside wait for an answer again, as if it came now, and returns its session:
// sessions.ErrNotFound where no such message is set aside. It is taken alone, since nothing says that it does no harm again.
func (s *adminStore) RetryDeadLetter(ctx context.Context, id int64) (sessions.Key, error) {
	row, err := s.q.DeadLetterRetry(ctx, s.pool, &dbsqlc.DeadLetterRetryParams{ID: id, Erased: sessions.ErasedText})
	if err != nil {
		return "", fmt.Errorf("retrying dead letter %d: %w", id, found(err))
	}
	return row.SessionKey, nil
}
