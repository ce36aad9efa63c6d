package view

import (
	"cmp"
	"context"
	"errors"

	"ebb/bot/parts"
	"ebb/sessions"
)

const (
	unknownSpeaker = "某人 someone"
	unknownWords   = "（原文不在消息中 words not given）"
)

// Quotes finds quoted messages, and stores what was found. See [sessions.Turns].
type Quotes interface {
	Quoted(ctx context.Context, key sessions.Key, q sessions.Quote) (sessions.Event, error)
	Requote(ctx context.Context, l sessions.Lease, event int64, content string, q sessions.Quote) error
}

// Quoter finds the messages that people reply to.
type Quoter struct {
	shared  *parts.Shared
	choices Choices
	words   Words
	quotes  Quotes
}

// FillQuotes fills in speaker, text and time of the messages that waiting messages reply to. The log has precedence over the
// frame, which often lacks one of the two, and an erased message must not return as a quote. It runs under the turn's
// lease, which an erasure takes, so that a quote is stored only if no erasure came between.
func (qr Quoter) FillQuotes(ctx context.Context, l sessions.Lease, v *sessions.View) error {
	for i := range v.Pending {
		e := &v.Pending[i]
		if e.Message == nil || e.Message.Quote == nil || e.Message.Quote.Shown != "" || e.Message.Quote.Text == sessions.ErasedText {
			continue
		}
		if err := qr.quote(ctx, l, e, v.Session); err != nil {
			return err
		}
	}
	return nil
}

func (qr Quoter) quote(ctx context.Context, l sessions.Lease, e *sessions.Event, s sessions.Session) error {
	one, stop := context.WithTimeout(ctx, qr.shared.CommitTimeout)
	defer stop()
	q, own := *e.Message.Quote, qr.words.OwnWords(*e)
	original, err := qr.quotes.Quoted(one, l.Key, q)
	said := q.SentAt
	switch {
	case err == nil:
		q = qr.quoteOf(q, original, s)
		if !original.CreatedAt.IsZero() {
			said = original.CreatedAt
		}
	case errors.Is(err, sessions.ErrNotFound):
		q.Who, q.Shown = cmp.Or(sessions.Nick(q.Nick), unknownSpeaker), cmp.Or(sessions.QuoteTextOf(q.Kind, q.Text), unknownWords)
		if q.FromBot {
			q.Who = qr.words.nameOf(s.RobotCode)
		}
	default:
		return err
	}
	if q.Shown != "" && !said.IsZero() {
		q.Shown += said.In(qr.shared.Location).Format(" (2006-01-02 15:04)")
	}
	m := *e.Message
	m.Quote = &q
	content := q.Lead(qr.words.nameOf(s.RobotCode)) + own
	if err := qr.quotes.Requote(one, l, e.ID, content, q); err != nil {
		return err
	}
	m.Text, e.Content, e.Message = content, content, &m
	return nil
}

// quoteOf keeps the frame's text, by which an erasure finds the quote.
func (qr Quoter) quoteOf(q sessions.Quote, original sessions.Event, s sessions.Session) sessions.Quote {
	said, kind := qr.words.OwnWords(original), q.Kind
	if original.Content == sessions.ErasedText {
		return sessions.Quote{Text: sessions.ErasedText}
	}
	if original.Role == sessions.RoleAssistant {
		q.Who, q.FromBot = qr.words.nameOf(s.RobotCode), true
	} else {
		q.SenderID, q.Nick = original.SenderID, original.SenderNick
		if original.Message != nil {
			kind = cmp.Or(original.Message.Kind, kind)
			q.Mentioned = original.Message.Mentioned
			if len(original.Message.Attachments) > 0 {
				q.Event = original.ID
			}
		}
		if q.Who = sessions.Speaker(original.SenderNick, original.SenderID); s.ConversationType == sessions.Private {
			q.Who = sessions.Nick(original.SenderNick)
		}
	}
	q.Text = cmp.Or(q.Text, firstRunes(said, sessions.MaxQuote))
	q.Shown = cmp.Or(sessions.QuoteTextOf(kind, said), unknownWords)
	if original.Withheld.From(qr.choices.Reads(s), sessions.WithheldBody) {
		q.Shown = sessions.QuoteText(sessions.WithheldText)
	}
	return q
}

func firstRunes(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}
