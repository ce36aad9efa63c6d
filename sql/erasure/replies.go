package erasure

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory/similarity"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// The rest of a reply is sent. The number of changed replies is returned.
func (e *eventErasure) trimReplies(ctx context.Context) (int, error) {
	open, err := e.store.db.Q.OutboxOpen(ctx, e.tx, &dbsqlc.OutboxOpenParams{SessionKey: e.row.SessionKey, Erased: sessions.ErasedText})
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
		body := withoutQuotes(o.Body, words)
		if later && e.repeats != nil && e.repeats(body) {
			body = withoutRepeats(body, e.repeats)
		}
		if body == o.Body {
			continue
		}
		n++
		if err := e.store.db.Q.OutboxTrim(ctx, e.tx, &dbsqlc.OutboxTrimParams{
			SessionKey: o.SessionKey, ID: o.ID, Body: body, Erased: sessions.ErasedText, Nonce: nextNonce(o.Nonce, body), At: time.Now(),
		}); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// A common sentence must not remove answers to others.
func (e *eventErasure) ownOnly(ctx context.Context, open []dbsqlc.OutboxOpenRow) ([]dbsqlc.EventsErasedRow, error) {
	said, err := e.store.db.Q.EventsErased(ctx, e.tx, &dbsqlc.EventsErasedParams{SessionKey: e.row.SessionKey, Seqs: e.seqs, Erased: sessions.ErasedText})
	if err != nil {
		return nil, err
	}
	p := &dbsqlc.TextsSharedParams{SessionKey: e.row.SessionKey, AfterSeq: e.row.LastSeq - stayingEvents}
	said = slices.DeleteFunc(said, func(m dbsqlc.EventsErasedRow) bool {
		text := strings.TrimSpace(m.Content)
		repeated := e.own || slices.ContainsFunc(open, func(o dbsqlc.OutboxOpenRow) bool { return strings.Contains(o.Body, text) })
		if m.Role != sessions.RoleUser || !similarity.Distinctive(text) || !repeated {
			return true
		}
		p.Texts, p.People = append(p.Texts, text), append(p.People, string(m.SenderID))
		return false
	})
	if len(said) == 0 {
		return nil, nil
	}
	shared, err := e.store.db.Q.TextsShared(ctx, e.tx, p)
	return slices.DeleteFunc(said, func(m dbsqlc.EventsErasedRow) bool {
		return slices.Contains(shared, strings.TrimSpace(m.Content))
	}), err
}

// A reply in another session repeats something else.
func (s *Store) repliesWithout(ctx context.Context, tx pgx.Tx, readers, facts []string) error {
	facts = distinctiveTexts(facts)
	if len(facts) == 0 {
		return nil
	}
	if len(readers) == 0 {
		return nil
	}
	asked := make([]*dbsqlc.OutboxQuotingParams, len(readers))
	for i, key := range readers {
		asked[i] = &dbsqlc.OutboxQuotingParams{SessionKey: sessions.Key(key), Facts: facts}
	}
	var quoting []dbsqlc.OutboxQuotingRow
	if err := pg.Done(func(take func(int, error)) {
		s.db.Q.OutboxQuoting(ctx, tx, asked).Query(func(i int, rows []dbsqlc.OutboxQuotingRow, err error) {
			take(i, err)
			quoting = append(quoting, rows...)
		})
	}); err != nil {
		return err
	}
	for _, o := range quoting {
		if err := s.awaitSend(ctx, tx, o.SessionKey); err != nil {
			return err
		}
		body := withoutQuotes(o.Body, facts)
		if err := s.db.Q.OutboxTrim(ctx, tx, &dbsqlc.OutboxTrimParams{
			SessionKey: o.SessionKey, ID: o.ID, Body: body, Erased: sessions.ErasedText, Nonce: nextNonce(o.Nonce, body), At: time.Now(),
		}); err != nil {
			return err
		}
	}
	return nil
}

// nextNonce is the key of another text of the same reply: it differs after the last dash.
func nextNonce(nonce, body string) string {
	sum := sha256.Sum256([]byte(nonce + body))
	return nonce[:strings.LastIndexByte(nonce, '-')+1] + hex.EncodeToString(sum[:])[:24]
}

func withoutQuotes(text string, others []string) string {
	for _, o := range distinctiveTexts(others) {
		text = strings.ReplaceAll(text, o, sessions.ErasedText)
	}
	return text
}

func distinctiveTexts(texts []string) []string {
	var kept []string
	for _, t := range texts {
		if t = strings.TrimSpace(t); similarity.Distinctive(t) {
			kept = append(kept, t)
		}
	}
	return kept
}
