package erasure

import (
	"context"
	"ebb/memory/text"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"ebb/memory/classify"
	"ebb/sql/dbsqlc"
)

// retells reports whether a memory tells another one that was consolidated into it and others: nearly all of it, or more
// of it than any of these. Which of them tells which, the model did not say.
func retells(content, old string, others []string) bool {
	if sameStatement(old, content) {
		return true
	}
	bare := classify.TrimLead(datesIn.ReplaceAllString(old, ""))
	folded := text.Fold(content)
	if slices.ContainsFunc(numbersIn(text.Fold(bare)), func(n string) bool { return !strings.Contains(folded, n) }) {
		return false
	}
	grams := gramsOf(bare)
	told := share(grams, gramsOf(content))
	return told >= saidShare || told >= aboutShare && !slices.ContainsFunc(others, func(o string) bool {
		return share(grams, gramsOf(o)) > told
	})
}

// retold adds to memories those that tell them on: what they were consolidated into, with all that came of it together,
// and the team's copies.
func (s *Store) retold(ctx context.Context, db dbsqlc.DBTX, ids []int64) ([]int64, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return s.Q.MemoriesRetold(ctx, db, ids)
}

// deleteFacts deletes memories. What else was consolidated into one of them is in force again, or superseded by what
// corrected that.
func (s *Store) deleteFacts(ctx context.Context, tx pgx.Tx, ids []int64) ([]dbsqlc.MemoriesForgetRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	under, err := s.Q.MemoriesUnder(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	rows, err := s.Q.MemoriesForget(ctx, tx, ids)
	if err != nil || len(under) == 0 {
		return rows, err
	}
	p := &dbsqlc.MemoriesRestoreParams{}
	best := 0.0
	for _, u := range under { // each with all that may tell it: what tells most of it does
		told := share(gramsOf(u.Content), gramsOf(u.Told))
		if last := len(p.Ids) - 1; last < 0 || p.Ids[last] != u.ID {
			p.Ids, p.Bys, best = append(p.Ids, u.ID), append(p.Bys, u.By), told
		} else if told > best {
			p.Bys[last], best = u.By, told
		}
	}
	return rows, s.Q.MemoriesRestore(ctx, tx, p)
}
