package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Withheld marks rows that models refuse.
type Withheld struct{ db *pg.DB }

// NewWithheld returns the marks of a database.
func NewWithheld(db *pg.DB) *Withheld { return &Withheld{db} }

// Withhold implements sessions.Withholder.
func (s *Withheld) Withhold(ctx context.Context, l sessions.Lease, w sessions.Withholding) error {
	p := &dbsqlc.WithholdParams{
		SessionKey: l.Key, Owner: string(l.Owner), Term: l.Term, Erased: sessions.ErasedText, Pin: len(w.Facts) > 0,
		Summaries: append([]int64{}, w.Summaries...), Seqs: []int64{}, Marks: []string{},
	}
	var err error
	if p.Suspicion, err = suspicionText(w.Suspicion); err != nil {
		return err
	}
	if w.Settles != nil {
		p.Settles = w.Settles.At.Format(time.RFC3339Nano)
	}
	whole, err := markText(w.Model, w.Mark(sessions.WithheldBody))
	if err != nil {
		return err
	}
	p.Mark = []byte(whole)
	for seq, parts := range w.Events {
		mark, err := markText(w.Model, w.Mark(parts...))
		if err != nil {
			return err
		}
		p.Seqs, p.Marks = append(p.Seqs, seq), append(p.Marks, mark)
	}
	if len(w.Facts) > 0 { // before the fence: a mark holds under any lease
		if err := s.db.Q.MemoriesWithhold(ctx, s.db.Pool, &dbsqlc.MemoriesWithholdParams{Mark: p.Mark, Ids: w.Facts}); err != nil {
			return fmt.Errorf("withholding facts from a model: %w", err)
		}
	}
	_, err = s.db.Q.Withhold(ctx, s.db.Pool, p)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return sessions.ErrLeaseLost
	case err != nil:
		return fmt.Errorf("withholding from a model: %w", pg.AsRefused(err))
	}
	return nil
}

// CountWithheld implements sessions.Withholder.
func (s *Withheld) CountWithheld(ctx context.Context, key sessions.Key, model sessions.ModelID) (sessions.WithheldCount, error) {
	row, err := s.db.Q.EventsWithheld(ctx, s.db.Pool, &dbsqlc.EventsWithheldParams{SessionKey: key, Model: string(model)})
	if err != nil {
		return sessions.WithheldCount{}, fmt.Errorf("counting events that a model refuses: %w", err)
	}
	summaries, err := s.db.Q.SummariesWithheld(ctx, s.db.Pool, &dbsqlc.SummariesWithheldParams{SessionKey: key, Model: string(model)})
	if err != nil {
		return sessions.WithheldCount{}, fmt.Errorf("counting summaries that a model refuses: %w", err)
	}
	facts, err := s.db.Q.MemoriesWithheld(ctx, s.db.Pool, &dbsqlc.MemoriesWithheldParams{SessionKey: string(key), Model: string(model)})
	if err != nil {
		return sessions.WithheldCount{}, fmt.Errorf("counting facts that a model refuses: %w", err)
	}
	c := sessions.WithheldCount{Events: row.Events, Summaries: summaries, Facts: facts}
	if row.Events > 0 {
		c.Newest = sessions.Event{
			Key: key, Seq: row.Seq, Role: sessions.Role(row.Role), SenderID: sessions.UserID(row.SenderID), SenderNick: row.SenderNick, CreatedAt: row.CreatedAt,
		}
	}
	return c, nil
}

func markText(model sessions.ModelID, r sessions.Refusal) (string, error) {
	text, err := pg.CleanJSON(sessions.Withheld{model: r})
	return string(text), err
}

func withheldText(w sessions.Withheld) (string, error) {
	if len(w) == 0 {
		return "", nil
	}
	text, err := pg.CleanJSON(w)
	return string(text), err
}

func suspicionText(s *sessions.Suspicion) (string, error) {
	if s == nil {
		return "", nil
	}
	text, err := json.Marshal(s)
	return string(text), err
}
