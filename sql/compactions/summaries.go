package compactions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

type viewSummary struct {
	start, end  int64
	level       int
	id          int64
	first, last int64 // ids of the events at the range's ends
	count       int
	text        string
	tokens      int
	replaces    []*viewSummary
}

// summarise replaces the summaries within the ranges of new ones. It returns the id of the newest, nil without any, and
// records the former view in before.
func (s *Store) summarise(
	ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, c sessions.Compaction, before *ViewBefore,
) (*int64, error) {
	rows, err := s.db.Q.SummariesActive(ctx, tx, row.SessionKey)
	if err != nil {
		return nil, err
	}
	active := make([]*viewSummary, 0, len(rows))
	before.Summaries = make([]int64, 0, len(rows))
	for _, r := range rows {
		before.Summaries = append(before.Summaries, r.ID)
		active = append(active, &viewSummary{start: r.StartSeq, end: r.EndSeq, id: r.ID, first: r.StartMsgID, last: r.EndMsgID, count: r.MsgCount})
	}
	fresh, err := findReplaced(active, c.Summaries, row.BaseSeq, c.Through)
	if err != nil {
		return nil, err
	}
	var newest *int64
	for _, n := range fresh {
		if err := s.replace(ctx, tx, row, n, pg.Clean(c.Log.Model)); err != nil {
			return nil, err
		}
		newest = &n.id
	}
	if newest == nil {
		return nil, nil
	}
	last := fresh[len(fresh)-1]
	return newest, s.db.Q.EventSummaryInsert(ctx, tx, &dbsqlc.EventSummaryInsertParams{
		SessionKey: row.SessionKey, Content: last.text, Tokens: last.tokens,
	})
}

// findReplaced finds the summaries that each new one replaces: the active ones within its range, and new ones before it. The
// summaries in the view must then cover base to through without a gap.
func findReplaced(active []*viewSummary, summaries []sessions.NewSummary, base, through int64) ([]*viewSummary, error) {
	active = slices.Clone(active)
	fresh := make([]*viewSummary, 0, len(summaries))
	for _, n := range summaries {
		t := &viewSummary{start: n.StartSeq, end: n.EndSeq, level: pg.Clamp(n.Level), text: pg.Clean(n.Text), tokens: pg.Clamp(n.Tokens)}
		active = slices.DeleteFunc(active, func(a *viewSummary) bool {
			within := a.start >= t.start && a.end <= t.end
			if within {
				t.replaces = append(t.replaces, a)
			}
			return within
		})
		active, fresh = append(active, t), append(fresh, t)
	}
	slices.SortFunc(active, func(a, b *viewSummary) int { return cmp.Compare(a.start, b.start) })
	for _, a := range active {
		if a.start != base+1 || a.end < a.start {
			return nil, fmt.Errorf("summaries would not lie end to end at event %d: %w", base+1, sessions.ErrConflict)
		}
		base = a.end
	}
	if base != through {
		return nil, fmt.Errorf("summaries would end at event %d: %w", base, sessions.ErrConflict)
	}
	return fresh, nil
}

func (s *Store) replace(ctx context.Context, tx pgx.Tx, row *dbsqlc.Session, t *viewSummary, model string) error {
	p := &dbsqlc.SummaryInsertParams{
		SessionKey: row.SessionKey, Gen: row.Gen, Level: t.level, StartSeq: t.start, EndSeq: t.end, FreshSeq: t.start,
		Summary: t.text, Tokens: t.tokens, Model: model,
	}
	slices.SortFunc(t.replaces, func(a, b *viewSummary) int { return cmp.Compare(a.start, b.start) })
	ids := make([]int64, 0, len(t.replaces))
	for i, a := range t.replaces {
		if i == 0 {
			p.StartMsgID = a.first
		}
		if p.FreshSeq = a.end + 1; a.end == t.end {
			p.EndMsgID = a.last
		}
		p.ToldCount += a.count
		ids = append(ids, a.id)
	}
	stored, err := s.db.Q.SummaryInsert(ctx, tx, p)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("the log has a gap: %w", sessions.ErrConflict)
	}
	if err != nil {
		return err
	}
	t.id, t.first, t.last, t.count = stored.ID, stored.StartMsgID, stored.EndMsgID, stored.MsgCount
	if len(ids) > 0 {
		if err := s.db.Q.SummariesSupersede(ctx, tx, &dbsqlc.SummariesSupersedeParams{
			SessionKey: row.SessionKey, By: &t.id, Ids: ids,
		}); err != nil {
			return err
		}
	}
	return s.db.Q.SummaryActivate(ctx, tx, &dbsqlc.SummaryActivateParams{SessionKey: row.SessionKey, ID: t.id})
}
