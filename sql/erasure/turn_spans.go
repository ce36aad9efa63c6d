package erasure

import (
	"context"
	"slices"
	"time"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

type turnSpan struct {
	turn     int64 // 0: not known
	first    int64
	asked    int64 // last message of a person; first-1 without one
	last     int64
	answered time.Time // time of the commit; zero when the turn has only messages
}

// Messages that were answered together are one turn.
func (s *Store) turnSpans(ctx context.Context, db dbsqlc.DBTX, key sessions.Key) ([]turnSpan, error) {
	rows, err := s.db.Q.TurnTimes(ctx, db, key)
	if err != nil {
		return nil, err
	}
	var turns []turnSpan
	var edge turnEdge
	for _, r := range rows {
		if edge.beginsTurn(r.Turn, r.Asked) || len(turns) == 0 {
			turns = append(turns, turnSpan{turn: pg.OrZero(r.Turn), first: r.Seq, asked: r.Seq - 1})
		}
		t := &turns[len(turns)-1]
		t.last = r.Seq
		if r.Asked {
			t.asked = r.Seq
		} else if r.CreatedAt.After(t.answered) {
			t.answered = r.CreatedAt
		}
	}
	return turns, nil
}

// turnOf is the turn that saved a memory, or false where it is not in the log. A memory of an older release has no turn: it is of the
// first one that was committed after it.
func turnOf(turns []turnSpan, turn *int64, saved time.Time) (turnSpan, bool) {
	i := slices.IndexFunc(turns, func(t turnSpan) bool {
		if turn != nil {
			return t.turn == *turn
		}
		return !t.answered.IsZero() && !t.answered.Before(saved)
	})
	if i < 0 {
		return turnSpan{}, false
	}
	return turns[i], true
}

// Events are in order. A memory is from an event when a flush found it in a range with one of them, or when the event's
// turn saved it.
func (s *Store) memoriesOf(ctx context.Context, db dbsqlc.DBTX, key sessions.Key, seqs []int64) (ids []int64, err error) {
	rows, err := s.db.Q.MemoriesDrawn(ctx, db, &dbsqlc.MemoriesDrawnParams{SessionKey: key, People: []string{}})
	if err != nil {
		return nil, err
	}
	var turns []turnSpan
	if slices.ContainsFunc(rows, func(r dbsqlc.MemoriesDrawnRow) bool { return r.EndSeq == 0 }) {
		if turns, err = s.turnSpans(ctx, db, key); err != nil {
			return nil, err
		}
	}
	for _, r := range rows {
		first, last := r.StartSeq, r.EndSeq
		if last == 0 {
			t, found := turnOf(turns, r.Turn, r.CreatedAt)
			if !found {
				continue
			}
			first, last = t.first, t.last
		}
		if i, _ := slices.BinarySearch(seqs, first); i < len(seqs) && seqs[i] <= last {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}
