package sql

import (
	"context"

	"ebb/compaction"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

// Words that events share with erased ones are looked for in so many events, the newest of a range, and in the beginning of
// each. A word that is missed makes a summary lose a line too many, and never one too few.
const (
	stayingEvents = 5000
	stayingChars  = 2000
)

// summaries heals those that tell one of the events: see [compaction.Erasure]. One that can't be healed is emptied and stays
// where it is, so that the view tells its range once it is written again.
func (e *erasure) summaries(ctx context.Context) error {
	rows, err := e.q.SummariesCovering(ctx, e.tx, &dbsqlc.SummariesCoveringParams{
		SessionKey: e.row.SessionKey, Seqs: e.seqs, Erased: sessions.ErasedText,
	})
	if err != nil || len(rows) == 0 {
		return err
	}
	first, last := rows[0].StartSeq, rows[0].EndSeq
	for _, r := range rows {
		last = max(last, r.EndSeq)
	}
	words, err := e.words(ctx, first, last)
	if err != nil {
		return err
	}
	also := e.repeats
	if also == nil {
		also = func(string) bool { return false }
	}
	for _, r := range rows {
		text, tokens := words.Heal(r.Summary, r.Tokens, r.StartSeq, r.EndSeq, also)
		if text == r.Summary {
			continue
		}
		if r.Status == sessions.Active {
			if text == sessions.ErasedText {
				e.done.Summaries++
			} else {
				e.done.Healed++
			}
		}
		if err := e.q.SummaryHeal(ctx, e.tx, &dbsqlc.SummaryHealParams{
			SessionKey: e.row.SessionKey, ID: r.ID, Before: r.Summary, Summary: text, Tokens: count(tokens),
		}); err != nil {
			return err
		}
	}
	return nil
}

// words reads what the erased events say, and what stays of a range.
func (e *erasure) words(ctx context.Context, first, last int64) (*compaction.Erasure, error) {
	words := compaction.NewErasure()
	erased, err := e.q.EventsErased(ctx, e.tx, &dbsqlc.EventsErasedParams{
		SessionKey: e.row.SessionKey, Seqs: e.seqs, Erased: sessions.ErasedText,
	})
	if err != nil {
		return nil, err
	}
	for _, r := range erased {
		if words.Event(r.Seq); r.Role == sessions.RoleUser {
			words.Said(r.Content)
		} else {
			words.Told(r.Content + "\n" + r.Calls)
		}
	}
	for _, f := range e.facts {
		words.Said(f)
	}
	staying, err := e.q.EventsStaying(ctx, e.tx, &dbsqlc.EventsStayingParams{
		SessionKey: e.row.SessionKey, Seqs: e.seqs, StartSeq: first, EndSeq: last, Erased: sessions.ErasedText,
		MaxChars: stayingChars, MaxRows: stayingEvents,
	})
	if err != nil {
		return nil, err
	}
	for _, r := range staying {
		words.Kept(r.Seq, r.Content)
	}
	return words, nil
}
