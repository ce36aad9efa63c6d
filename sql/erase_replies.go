package sql

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// minQuote is how many characters of a message or a fact a reply must repeat to quote it: fewer are many people's.
const minQuote = 4

// replies takes the words of the erased messages, and what must not be said any more, out of the session's replies that are
// still to be sent. The rest of a reply is sent. It counts the replies that changed.
func (e *erasure) replies(ctx context.Context) (int, error) {
	open, err := e.q.OutboxOpen(ctx, e.tx, &dbsqlc.OutboxOpenParams{SessionKey: e.row.SessionKey, Erased: sessions.ErasedText})
	if err != nil || len(open) == 0 {
		return 0, err
	}
	said, err := e.q.EventsErased(ctx, e.tx, &dbsqlc.EventsErasedParams{SessionKey: e.row.SessionKey, Seqs: e.seqs, Erased: sessions.ErasedText})
	if err != nil {
		return 0, err
	}
	words := append([]string{}, e.facts...)
	for _, r := range said {
		if r.Role == sessions.RoleUser {
			words = append(words, r.Content)
		}
	}
	n := 0
	for _, o := range open {
		body := unquoted(o.Body, words)
		if e.repeats != nil && e.repeats(body) {
			body = without(body, e.repeats)
		}
		if body == o.Body {
			continue
		}
		n++
		if err := e.q.OutboxTrim(ctx, e.tx, &dbsqlc.OutboxTrimParams{
			SessionKey: o.SessionKey, ID: o.ID, Body: body, Erased: sessions.ErasedText,
		}); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// repliesWithout takes facts out of all replies that are still to be sent.
func (s *Store) repliesWithout(ctx context.Context, tx pgx.Tx, facts []string) error {
	quoting, err := s.q.OutboxQuoting(ctx, tx, facts)
	if err != nil {
		return err
	}
	for _, o := range quoting {
		body := unquoted(o.Body, facts)
		if body == o.Body {
			continue
		}
		if err := s.q.OutboxTrim(ctx, tx, &dbsqlc.OutboxTrimParams{
			SessionKey: o.SessionKey, ID: o.ID, Body: body, Erased: sessions.ErasedText,
		}); err != nil {
			return err
		}
	}
	return nil
}

// unquoted is a text with nothing in place of some words, those of many people aside.
func unquoted(text string, words []string) string {
	for _, w := range words {
		if w = strings.TrimSpace(w); utf8.RuneCountInString(w) >= minQuote {
			text = strings.ReplaceAll(text, w, sessions.ErasedText)
		}
	}
	return text
}
