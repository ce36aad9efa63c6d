package view

import (
	"cmp"
	"context"
	"errors"

	"ebb/sessions"
)

const (
	unknownSpeaker = "某人 someone"
	unknownWords   = "（原文不在消息中 words not given）"
)

// Quotes fills in speaker, text and time of the messages that waiting messages reply to. The log has precedence over the
// frame, which often lacks one of the two, and an erased message must not return as a quote. It runs under the turn's
// lease, which an erasure takes, so that a quote is stored only if no erasure came between.
func (b *Builder) Quotes(ctx context.Context, l sessions.Lease, v *sessions.View) error {
	for i := range v.Pending {
		e := &v.Pending[i]
		if e.Message == nil || e.Message.Quote == nil || e.Message.Quote.Shown != "" || e.Message.Quote.Text == sessions.ErasedText {
			continue
		}
		if err := b.quote(ctx, l, e, v.Session); err != nil {
			return err
		}
	}
	return nil
}

func (b *Builder) quote(ctx context.Context, l sessions.Lease, e *sessions.Event, s sessions.Session) error {
	one, stop := context.WithTimeout(ctx, b.shared.CommitTimeout)
	defer stop()
	q, own := *e.Message.Quote, b.OwnWords(*e)
	original, err := b.quotes.Quoted(one, l.Key, q)
	said := q.SentAt
	switch {
	case err == nil:
		q = b.quoteOf(q, original, s)
		if !original.CreatedAt.IsZero() {
			said = original.CreatedAt
		}
	case errors.Is(err, sessions.ErrNotFound):
		q.Who, q.Shown = cmp.Or(sessions.Nick(q.Nick), unknownSpeaker), cmp.Or(sessions.QuoteTextOf(q.Kind, q.Text), unknownWords)
		if q.FromBot {
			q.Who = b.nameOf(s.RobotCode)
		}
	default:
		return err
	}
	if q.Shown != "" && !said.IsZero() {
		q.Shown += said.In(b.shared.Location).Format(" (2006-01-02 15:04)")
	}
	m := *e.Message
	m.Quote = &q
	content := q.Lead(b.nameOf(s.RobotCode)) + own
	if err := b.quotes.Requote(one, l, e.ID, content, q); err != nil {
		return err
	}
	m.Text, e.Content, e.Message = content, content, &m
	return nil
}

// quoteOf keeps the frame's text, by which an erasure finds the quote.
func (b *Builder) quoteOf(q sessions.Quote, original sessions.Event, s sessions.Session) sessions.Quote {
	said, kind := b.OwnWords(original), q.Kind
	if original.Content == sessions.ErasedText {
		return sessions.Quote{Text: sessions.ErasedText}
	}
	if original.Role == sessions.RoleAssistant {
		q.Who, q.FromBot = b.nameOf(s.RobotCode), true
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
	if original.Withheld.From(b.Reads(s), sessions.WithheldBody) {
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
