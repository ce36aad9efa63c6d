package erasure

import (
	"context"
	"errors"
	"slices"

	"ebb/compaction/erase"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

// Shared words are sought in the newest events of a range, and the beginning of each. A missed word removes a line too
// many from a summary, and never one too few.
const (
	stayingEvents = 5000
	stayingChars  = 2000
	stayingPage   = 250
)

// After the last try the changed summaries are emptied, and the background writes them again.
const maxDrafts = 3

var errStale = errors.New("the session changed after the erasure read it")

func retryOn(because error, erase func(final bool) error) error {
	for try := 1; ; try++ {
		if err := erase(try >= maxDrafts); !errors.Is(err, because) || try >= maxDrafts {
			return err
		}
	}
}

func (s *Store) draftSummaries(ctx context.Context, key sessions.Key, seqs []int64, gone goneContent, final bool) (*summaryDraft, error) {
	version, err := s.db.Q.ViewVersion(ctx, s.db.Pool, key) // read first: any later change makes the draft stale
	if err != nil {
		return nil, pg.AsNotFound(err)
	}
	d := &summaryDraft{version: version, facts: slices.Sorted(slices.Values(gone.facts)), left: map[int64]healedSummary{}, final: final}
	rows, err := s.summariesCovering(ctx, s.db.Pool, key, seqs)
	if err != nil || len(rows) == 0 {
		return d, err
	}
	words, err := s.wordsOfRange(ctx, key, rows, seqs, gone.facts)
	if err != nil {
		return nil, err
	}
	also := gone.repeats
	if also == nil {
		also = repeatsNothing
	}
	for _, r := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text, tokens := words.Heal(r.Summary, r.Tokens, r.StartSeq, r.EndSeq, also)
		d.left[r.ID] = healedSummary{seqs: inRange(seqs, r.StartSeq, r.EndSeq), text: text, tokens: tokens}
	}
	return d, nil
}

func (s *Store) summariesCovering(ctx context.Context, db dbsqlc.DBTX, key sessions.Key, seqs []int64) ([]dbsqlc.SummariesCoveringRow, error) {
	return s.db.Q.SummariesCovering(ctx, db, &dbsqlc.SummariesCoveringParams{
		SessionKey: key, Seqs: append([]int64{}, seqs...), Erased: sessions.ErasedText,
	})
}

// seqs are sorted.
func inRange(seqs []int64, first, last int64) []int64 {
	from, _ := slices.BinarySearch(seqs, first)
	to, _ := slices.BinarySearch(seqs, last+1)
	return seqs[from:to]
}

func (d *summaryDraft) healedText(r *dbsqlc.SummariesCoveringRow, e *eventErasure) (text string, tokens int, err error) {
	h, known := d.left[r.ID]
	switch {
	case known && d.version == e.row.ViewVersion && slices.Equal(h.seqs, inRange(e.seqs, r.StartSeq, r.EndSeq)) &&
		slices.Equal(d.facts, slices.Sorted(slices.Values(e.facts))):
		return h.text, h.tokens, nil
	case d.final:
		return sessions.ErasedText, sessions.ErasedTokens, nil
	}
	return "", 0, errStale
}

// A summary that can't be healed is emptied in place until it is written again.
func (e *eventErasure) healSummaries(ctx context.Context) error {
	rows, err := e.store.summariesCovering(ctx, e.tx, e.row.SessionKey, e.seqs)
	if err != nil {
		return err
	}
	for _, r := range rows {
		text, tokens, err := e.draft.healedText(&r, e)
		if err != nil {
			return err
		}
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
		if err := e.store.db.Q.SummaryHeal(ctx, e.tx, &dbsqlc.SummaryHealParams{
			SessionKey: e.row.SessionKey, ID: r.ID, Before: r.Summary, Summary: text, Tokens: pg.Clamp(tokens),
		}); err != nil {
			return err
		}
	}
	return nil
}

// An event after the summaries is in no range.
func (s *Store) wordsOfRange(
	ctx context.Context, key sessions.Key, rows []dbsqlc.SummariesCoveringRow, seqs []int64, facts []string,
) (*erase.Erasure, error) {
	first, last := rows[0].StartSeq, rows[0].EndSeq // rows are in order
	for _, r := range rows {
		last = max(last, r.EndSeq)
	}
	words, here := erase.New(), inRange(seqs, first, last)
	erased, err := s.db.Q.EventsErased(ctx, s.db.Pool, &dbsqlc.EventsErasedParams{SessionKey: key, Seqs: here, Erased: sessions.ErasedText})
	if err != nil {
		return nil, err
	}
	for _, r := range erased {
		if words.AddSeq(r.Seq); r.Role == sessions.RoleUser {
			words.AddStatement(r.Content)
		} else {
			words.AddEcho(r.Content + "\n" + r.Calls)
		}
	}
	for _, f := range facts {
		words.AddStatement(f)
	}
	for left := stayingEvents; left > 0; left -= stayingPage {
		staying, err := s.db.Q.EventsStaying(ctx, s.db.Pool, &dbsqlc.EventsStayingParams{
			SessionKey: key, Seqs: here, StartSeq: first, EndSeq: last, Erased: sessions.ErasedText,
			MaxChars: stayingChars, MaxRows: stayingPage,
		})
		if err != nil {
			return nil, err
		}
		for _, r := range staying {
			words.AddKept(r.Seq, r.Content)
			last = r.Seq - 1
		}
		if len(staying) < stayingPage {
			break
		}
	}
	return words, nil
}
