package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// A reply is identified by its time, within this difference of DingTalk's clock and the server's.
const quoteSkew = 2 * time.Second

// replyLife exceeds the day that a reply waits for delivery.
const replyLife = 25 * time.Hour

// Quoted implements sessions.Turns.
func (s *Turns) Quoted(ctx context.Context, key sessions.Key, q sessions.Quote) (sessions.Event, error) {
	e, err := s.findQuoted(ctx, key, q)
	if err != nil {
		return e, fmt.Errorf("looking for a quoted message: %w", pg.AsNotFound(err))
	}
	return e, nil
}

// findQuoted finds the original of a quote: a card and a message of the open API by their key, a person's message by its id. DingTalk gives no
// key of an answer by a webhook, so that is found by its time. Two answers at one time are none.
func (s *Turns) findQuoted(ctx context.Context, key sessions.Key, q sessions.Quote) (sessions.Event, error) {
	if q.Card != "" {
		if e, err := quotedCard(ctx, s, key, q.Card); !errors.Is(err, pgx.ErrNoRows) {
			return e, err
		}
		if e, err := s.quotedReply(ctx, key, q.Card); !errors.Is(err, pgx.ErrNoRows) {
			return e, err
		}
	}
	if !q.FromBot {
		row, err := s.db.Q.QuotedMessage(ctx, s.db.Pool, &dbsqlc.QuotedMessageParams{SessionKey: key, MsgID: pg.Clean(string(q.ID))})
		if err != nil {
			return sessions.Event{}, err
		}
		return convert.Event(sessions.Event{
			ID: row.ID, Key: key, Role: row.Role, Content: row.Content, SenderID: row.SenderID, SenderNick: row.SenderNick, MsgID: pg.OrZero(row.MsgID), CreatedAt: row.CreatedAt,
		}, convert.EventJSON{Message: row.Message, Withheld: row.Withheld})
	}
	if q.SentAt.IsZero() {
		return sessions.Event{}, sessions.ErrNotFound
	}
	rows, err := s.db.Q.QuotedAnswer(ctx, s.db.Pool, &dbsqlc.QuotedAnswerParams{
		SessionKey: key, Oldest: q.SentAt.Add(-replyLife), Earliest: q.SentAt.Add(-quoteSkew), Latest: q.SentAt.Add(quoteSkew), Keyed: q.Card == "",
	})
	if err == nil && (len(rows) != 1 || rows[0] == "") {
		err = sessions.ErrNotFound
	}
	if err != nil {
		return sessions.Event{}, err
	}
	return sessions.Event{Key: key, Role: sessions.RoleAssistant, Content: rows[0]}, nil
}

// quotedReply finds the answers in a message of the open API by its key. A file is named before its answer.
func (s *Turns) quotedReply(ctx context.Context, key sessions.Key, carrier string) (sessions.Event, error) {
	rows, err := s.db.Q.QuotedReply(ctx, s.db.Pool, &dbsqlc.QuotedReplyParams{SessionKey: key, Carrier: pg.Clean(carrier)})
	if err != nil {
		return sessions.Event{}, err
	}
	var said []string
	for _, r := range rows {
		if r.File != "" {
			said = append(said, sessions.FileWords(r.File))
		}
		if r.Content != "" {
			said = append(said, r.Content)
		}
	}
	if len(said) == 0 {
		return sessions.Event{}, pgx.ErrNoRows
	}
	return sessions.Event{Key: key, Role: sessions.RoleAssistant, Content: strings.Join(said, "\n")}, nil
}

// quotedCard finds the answer on a card of the bot by the key of the card's message.
func quotedCard(ctx context.Context, s *Turns, key sessions.Key, carrier string) (sessions.Event, error) {
	asked, err := s.db.Q.QuotedCard(ctx, s.db.Pool, &dbsqlc.QuotedCardParams{SessionKey: key, Carrier: pg.Clean(carrier)})
	if err != nil {
		return sessions.Event{}, err
	}
	answer, err := s.db.Q.TurnAnswer(ctx, s.db.Pool, &dbsqlc.TurnAnswerParams{SessionKey: key, ID: asked})
	if err != nil {
		return sessions.Event{}, err
	}
	return sessions.Event{Key: key, Role: sessions.RoleAssistant, Content: answer}, nil
}

// Requote implements sessions.Turns.
func (s *Turns) Requote(ctx context.Context, l sessions.Lease, event int64, content string, q sessions.Quote) error {
	quote, err := pg.CleanJSON(q)
	if err == nil {
		var n int64
		n, err = s.db.Q.Requote(ctx, s.db.Pool, &dbsqlc.RequoteParams{
			SessionKey: l.Key, ID: event, Content: pg.Clean(content), Quote: json.RawMessage(quote), Owner: string(l.Owner), Term: l.Term,
		})
		err = pg.Require(n, err, sessions.ErrLeaseLost)
	}
	if err != nil {
		return fmt.Errorf("storing what message %d quotes: %w", event, pg.AsRefused(err))
	}
	return nil
}
