package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// answersApart is how far the answers of the bot must be apart, for the time of one to tell which it is.
const answersApart = 5 * time.Second

// An answer is sent within answerTime of its commit. DingTalk's clock may be behind the server's by answerSkew.
const (
	answerTime = 30 * time.Second
	answerSkew = 2 * time.Second
)

// Quoted implements sessions.Store.
func (s *Store) Quoted(ctx context.Context, key sessions.Key, q sessions.Quote) (sessions.Event, error) {
	e, err := s.quoted(ctx, key, q)
	if err != nil {
		return e, fmt.Errorf("looking for a quoted message of session %s: %w", key, found(err))
	}
	return e, nil
}

func (s *Store) quoted(ctx context.Context, key sessions.Key, q sessions.Quote) (sessions.Event, error) {
	if !q.FromBot {
		row, err := s.q.QuotedMessage(ctx, s.pool, &dbsqlc.QuotedMessageParams{SessionKey: key, MsgID: clean(string(q.ID))})
		if err != nil {
			return sessions.Event{}, err
		}
		return toEvent(&dbsqlc.Event{
			SessionKey: key, Role: row.Role, Content: row.Content, SenderID: row.SenderID, SenderNick: row.SenderNick, Message: row.Message,
		})
	}
	if q.SentAt.IsZero() {
		return sessions.Event{}, sessions.ErrNotFound
	}
	rows, err := s.q.QuotedAnswer(ctx, s.pool, &dbsqlc.QuotedAnswerParams{SessionKey: key,
		Earliest: q.SentAt.Add(-answerTime), Latest: q.SentAt.Add(answerSkew),
	})
	if err == nil && (len(rows) == 0 || len(rows) > 1 && rows[0].CreatedAt.Sub(rows[1].CreatedAt) < answersApart) {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return sessions.Event{}, err
	}
	return sessions.Event{Key: key, Role: sessions.RoleAssistant, Content: rows[0].Content}, nil
}

// Requote implements sessions.Store.
func (s *Store) Requote(ctx context.Context, l sessions.Lease, event int64, content string, q sessions.Quote) error {
	quote, err := cleanJSON(q)
	if err == nil {
		var n int64
		n, err = s.q.Requote(ctx, s.pool, &dbsqlc.RequoteParams{
			SessionKey: l.Key, ID: event, Content: clean(content), Quote: json.RawMessage(quote), Owner: string(l.Owner), Term: l.Term,
		})
		if err == nil && n == 0 {
			err = sessions.ErrLeaseLost
		}
	}
	if err != nil {
		return fmt.Errorf("storing what message %d of session %s quotes: %w", event, l.Key, refused(err))
	}
	return nil
}
