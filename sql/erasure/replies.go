package erasure

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// replies takes the words of the erased messages, and what must not be said any more, out of the session's replies that are
// still to be sent. The rest of a reply is sent. It counts the replies that changed.
func (e *erasure) replies(ctx context.Context) (int, error) {
	open, err := e.Q.OutboxOpen(ctx, e.tx, &dbsqlc.OutboxOpenParams{SessionKey: e.row.SessionKey, Erased: sessions.ErasedText})
	if err != nil || len(open) == 0 {
		return 0, err
	}
	said, err := e.ownOnly(ctx, open)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, o := range open {
		words, later := slices.Clone(e.facts), !e.own
		for _, m := range said {
			if !o.CreatedAt.Before(m.CreatedAt) {
				words, later = append(words, m.Content), true
			}
		}
		body := unquoted(o.Body, words)
		if later && e.repeats != nil && e.repeats(body) {
			body = without(body, e.repeats)
		}
		if body == o.Body {
			continue
		}
		n++
		if err := e.Q.OutboxTrim(ctx, e.tx, &dbsqlc.OutboxTrimParams{
			SessionKey: o.SessionKey, ID: o.ID, Body: body, Erased: sessions.ErasedText,
		}); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// ownOnly lists the erased messages whose words are taken out of replies that were committed later: those that are
// distinctive and that no other person said too. A sentence that many people write must not take answers from others.
func (e *erasure) ownOnly(ctx context.Context, open []dbsqlc.OutboxOpenRow) ([]dbsqlc.EventsErasedRow, error) {
	said, err := e.Q.EventsErased(ctx, e.tx, &dbsqlc.EventsErasedParams{SessionKey: e.row.SessionKey, Seqs: e.seqs, Erased: sessions.ErasedText})
	if err != nil {
		return nil, err
	}
	p := &dbsqlc.TextsSharedParams{SessionKey: e.row.SessionKey, AfterSeq: e.row.LastSeq - stayingEvents}
	said = slices.DeleteFunc(said, func(m dbsqlc.EventsErasedRow) bool {
		text := strings.TrimSpace(m.Content)
		repeated := e.own || slices.ContainsFunc(open, func(o dbsqlc.OutboxOpenRow) bool { return strings.Contains(o.Body, text) })
		if m.Role != sessions.RoleUser || !isDistinctive(text) || !repeated {
			return true
		}
		p.Texts, p.People = append(p.Texts, text), append(p.People, string(m.SenderID))
		return false
	})
	if len(said) == 0 {
		return nil, nil
	}
	shared, err := e.Q.TextsShared(ctx, e.tx, p)
	return slices.DeleteFunc(said, func(m dbsqlc.EventsErasedRow) bool {
		return slices.Contains(shared, strings.TrimSpace(m.Content))
	}), err
}

// repliesWithout takes facts out of all replies that are still to be sent.
func (s *Store) repliesWithout(ctx context.Context, tx pgx.Tx, facts []string) error {
	quoting, err := s.Q.OutboxQuoting(ctx, tx, facts)
	if err != nil {
		return err
	}
	for _, o := range quoting {
		body := unquoted(o.Body, facts)
		if body == o.Body {
			continue
		}
		if err := s.Q.OutboxTrim(ctx, tx, &dbsqlc.OutboxTrimParams{
			SessionKey: o.SessionKey, ID: o.ID, Body: body, Erased: sessions.ErasedText,
		}); err != nil {
			return err
		}
	}
	return nil
}

// unquoted is a text with nothing in place of some others, those that are not distinctive aside.
func unquoted(text string, others []string) string {
	for _, o := range others {
		if o = strings.TrimSpace(o); isDistinctive(o) {
			text = strings.ReplaceAll(text, o, sessions.ErasedText)
		}
	}
	return text
}

// isDistinctive reports whether a text repeats another by having it: it is as long as a sentence, or has an identifier. A
// shorter one is a word of many people.
func isDistinctive(text string) bool {
	marks := map[string]bool{}
	marksOf(text, marks)
	return len(marks) > 0 || utf8.RuneCountInString(strings.TrimSpace(text)) >= leastSaid(text)
}
