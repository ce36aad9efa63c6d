package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// A reply is identified by its time, within this difference of DingTalk's clock and the server's.
const quoteSkew = 2 * time.Second

// replyLife exceeds the day that a reply waits for delivery.
const replyLife = 25 * time.Hour

// Quoted implements sessions.Store.
func (s *Store) Quoted(ctx context.Context, key sessions.Key, q sessions.Quote) (sessions.Event, error) {
	e, err := s.quoted(ctx, key, q)
	if err != nil {
		return e, fmt.Errorf("looking for a quoted message: %w", pg.AsNotFound(err))
	}
	return e, nil
}

func (s *Store) quoted(ctx context.Context, key sessions.Key, q sessions.Quote) (sessions.Event, error) {
	if !q.FromBot {
		row, err := s.Q.QuotedMessage(ctx, s.Pool, &dbsqlc.QuotedMessageParams{SessionKey: key, MsgID: pg.Clean(string(q.ID))})
		if err != nil {
			return sessions.Event{}, err
		}
		return convert.Event(&dbsqlc.Event{
			SessionKey: key, Role: row.Role, Content: row.Content, SenderID: row.SenderID, SenderNick: row.SenderNick, MsgID: row.MsgID, Message: row.Message, Withheld: row.Withheld,
		})
	}
	if q.SentAt.IsZero() {
		return sessions.Event{}, sessions.ErrNotFound
	}
	rows, err := s.Q.QuotedAnswer(ctx, s.Pool, &dbsqlc.QuotedAnswerParams{
		SessionKey: key, Oldest: q.SentAt.Add(-replyLife), Earliest: q.SentAt.Add(-quoteSkew), Latest: q.SentAt.Add(quoteSkew),
	})
	if err == nil && (len(rows) != 1 || rows[0] == "") {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return sessions.Event{}, err
	}
	return sessions.Event{Key: key, Role: sessions.RoleAssistant, Content: rows[0]}, nil
}

// Requote implements sessions.Store.
func (s *Store) Requote(ctx context.Context, l sessions.Lease, event int64, content string, q sessions.Quote) error {
	quote, err := pg.CleanJSON(q)
	if err == nil {
		var n int64
		n, err = s.Q.Requote(ctx, s.Pool, &dbsqlc.RequoteParams{
			SessionKey: l.Key, ID: event, Content: pg.Clean(content), Quote: json.RawMessage(quote), Owner: string(l.Owner), Term: l.Term,
		})
		err = pg.Require(n, err, sessions.ErrLeaseLost)
	}
	if err != nil {
		return fmt.Errorf("storing what message %d quotes: %w", event, pg.AsRefused(err))
	}
	return nil
}
