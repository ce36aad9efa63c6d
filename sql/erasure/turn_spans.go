package erasure

import (
	"context"
	"slices"
	"sort"
	"time"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
)

type turnSpan struct {
	first    int64
	asked    int64 // last message of a person; first-1 without one
	last     int64
	answered time.Time // time of the commit; zero when the turn has only messages
}

// Messages that were answered together are one turn.
func (s *Store) turns(ctx context.Context, db dbsqlc.DBTX, key sessions.Key) ([]turnSpan, error) {
	rows, err := s.Q.TurnTimes(ctx, db, key)
	if err != nil {
		return nil, err
	}
	var turns []turnSpan
	for i, r := range rows {
		if i == 0 || r.Asked && !rows[i-1].Asked {
			turns = append(turns, turnSpan{first: r.Seq, asked: r.Seq - 1})
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

// turnAt is the first turn committed after an instant, or false.
func turnAt(turns []turnSpan, at time.Time) (turnSpan, bool) {
	i := sort.Search(len(turns), func(i int) bool { return turns[i].answered.IsZero() || !turns[i].answered.Before(at) })
	if i == len(turns) {
		return turnSpan{}, false
	}
	return turns[i], true
}

// Events are in order. A memory is from an event when a flush found it in a range with one of them, or when the event's
// turn saved it.
func (s *Store) memoriesOf(ctx context.Context, db dbsqlc.DBTX, key sessions.Key, seqs []int64) (ids []int64, err error) {
	rows, err := s.Q.MemoriesDrawn(ctx, db, &dbsqlc.MemoriesDrawnParams{SessionKey: key, People: []string{}})
	if err != nil {
		return nil, err
	}
	var turns []turnSpan
	if slices.ContainsFunc(rows, func(r dbsqlc.MemoriesDrawnRow) bool { return r.EndSeq == 0 }) {
		if turns, err = s.turns(ctx, db, key); err != nil {
			return nil, err
		}
	}
	for _, r := range rows {
		first, last := r.StartSeq, r.EndSeq
		if last == 0 {
			t, found := turnAt(turns, r.CreatedAt)
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
