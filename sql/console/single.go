package console

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/facts"
	"ebb/sql/pg"
	"ebb/sql/spend"
)

// Attempt implements pages.Lists.
func (s *Store) Attempt(ctx context.Context, key sessions.Key, id int64) (pages.Attempt, error) {
	entry, err := s.from.Compactions.Compaction(ctx, id)
	if err == nil && entry.Key != key {
		err = fmt.Errorf("reading compaction %d: %w", id, sessions.ErrNotFound)
	}
	if err != nil {
		return pages.Attempt{}, err
	}
	a := pages.Attempt{CompactionRow: pages.CompactionRow{LogEntry: entry}}
	session, err := s.from.Sessions.Session(ctx, key)
	if err != nil && !errors.Is(err, sessions.ErrNotFound) {
		return pages.Attempt{}, err
	}
	a.Title, a.Private = session.Title, session.ConversationType != sessions.Group
	ends, err := s.from.Compactions.CompactionEnds(ctx, []int64{id})
	if err != nil {
		return pages.Attempt{}, err
	}
	a.SummaryID, a.Erased = ends[id].SummaryID, ends[id].Erased
	if a.SummaryID > 0 {
		summary, err := s.from.Compactions.Summary(ctx, key, a.SummaryID)
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return pages.Attempt{}, err
		}
		a.Summary = summary.Text
	}
	named := []pages.CompactionRow{a.CompactionRow}
	if err := nameRequesters(ctx, s.names, named); err != nil {
		return pages.Attempt{}, err
	}
	a.CompactionRow = named[0]
	receipts, err := s.from.Flushes.CompactionFlushes(ctx, key, id)
	if err != nil {
		return pages.Attempt{}, err
	}
	a.Receipts, err = s.receipts(ctx, receipts)
	return a, err
}

// Flushes implements pages.Lists.
func (s *Store) Flushes(ctx context.Context, key sessions.Key, limit int) ([]pages.Flush, error) {
	rows, err := s.db.Q.PageFlushes(ctx, s.db.Pool, &dbsqlc.PageFlushesParams{SessionKey: key, MaxRows: pg.Clamp(limit)})
	if err != nil {
		return nil, fmt.Errorf("listing flushes: %w", err)
	}
	list := make([]pages.Flush, len(rows))
	for i, r := range rows {
		list[len(rows)-1-i] = pages.Flush{Through: r.ThroughSeq, Saved: int(r.Saved), At: r.CreatedAt}
	}
	return list, nil
}

// Reached implements pages.Lists.
func (s *Store) Reached(ctx context.Context, key sessions.Key, times []time.Time) ([]int64, error) {
	seqs, err := s.db.Q.PageReached(ctx, s.db.Pool, &dbsqlc.PageReachedParams{SessionKey: key, Times: times})
	if err != nil {
		return nil, fmt.Errorf("reading the events at %d times: %w", len(times), err)
	}
	return seqs, nil
}

func (s *Store) receipts(ctx context.Context, list []facts.FlushReceipt) ([]pages.Receipt, error) {
	var ids []int64
	for _, r := range list {
		ids = slices.Concat(ids, r.Receipt.Saved, r.Receipt.Duplicate, r.Receipt.Superseded)
	}
	rows, err := s.db.Q.PageSaved(ctx, s.db.Pool, ids)
	if err != nil {
		return nil, fmt.Errorf("reading %d memories of receipts: %w", len(ids), err)
	}
	known := make(map[int64]pages.Fact, len(rows))
	for _, r := range rows {
		known[r.ID] = pages.Fact{ID: r.ID, Content: r.Content, Source: r.SourceSession, Private: r.SourceGroup == ""}
	}
	saved := func(ids []int64) []pages.Fact {
		out := make([]pages.Fact, len(ids))
		for i, id := range ids {
			out[i] = known[id]
			out[i].ID = id
		}
		return out
	}
	out := make([]pages.Receipt, len(list))
	for i, r := range list {
		out[i] = pages.Receipt{
			Trigger: r.Trigger, From: r.From, Through: r.Through, At: r.Created,
			Saved: saved(r.Receipt.Saved), Known: saved(r.Receipt.Duplicate), Corrected: saved(r.Receipt.Superseded),
		}
	}
	return out, nil
}

// Memories implements pages.Lists.
func (s *Store) Memories(ctx context.Context, f pages.MemoryFilter, p pages.Page) ([]memory.Memory, string, error) {
	place, err := pages.ParseCursor(pages.ListMemories, p.Cursor, newest)
	if err != nil {
		return nil, "", err
	}
	rows, err := s.db.Q.PageMemories(ctx, s.db.Pool, &dbsqlc.PageMemoriesParams{
		BeforeID: place.ID, Scope: pg.Clean(f.Scope), Person: pg.Clean(string(f.Person)), Source: pg.Clean(string(f.Session)),
		Words: texts(f.Words), Every: f.Every, OnlyKeys: pg.Texts(f.Only), MaxRows: pg.Clamp(p.Limit) + 1,
	})
	if err != nil {
		return nil, "", fmt.Errorf("listing memories: %w", err)
	}
	rows, next := cut(pages.ListMemories, rows, p.Limit, func(r dbsqlc.PageMemoriesRow) pages.Place { return pages.Place{ID: r.ID} })
	list := make([]memory.Memory, len(rows))
	for i := range rows {
		list[i] = convert.Memory((*dbsqlc.MemoriesReadableRow)(&rows[i]))
	}
	if err := s.names.Name(ctx, list, func(m memory.Memory) sessions.Key { return m.SourceSession }); err != nil {
		return nil, "", fmt.Errorf("reading the names of %d memories: %w", len(list), err)
	}
	return list, next, nil
}

// Memory implements pages.Lists.
func (s *Store) Memory(ctx context.Context, id int64) (memory.Memory, []memory.Memory, error) {
	return s.from.Facts.MemoryByID(ctx, id)
}

// Session implements pages.Lists.
func (s *Store) Session(ctx context.Context, key sessions.Key) (sessions.Session, error) {
	return s.from.Sessions.Session(ctx, key)
}

// Work implements pages.Lists.
func (s *Store) Work(ctx context.Context, key sessions.Key) (pages.Work, error) {
	r, err := s.db.Q.PageWork(ctx, s.db.Pool, key)
	if errors.Is(err, pgx.ErrNoRows) {
		return pages.Work{}, fmt.Errorf("work: %w", sessions.ErrNotFound)
	}
	if err != nil {
		return pages.Work{}, fmt.Errorf("reading the work: %w", err)
	}
	silent, err := s.db.Q.ReplicaSilent(ctx, s.db.Pool, r.Owner)
	if err != nil {
		return pages.Work{}, fmt.Errorf("reading the work: %w", err)
	}
	w := pages.Work{
		Owner: sessions.ReplicaID(r.Owner), Silent: time.Duration(silent * float64(time.Second)), Waiting: int(r.Waiting), Answering: int(r.Answered),
		Upkeep: r.Upkeep, LastSeq: r.LastSeq, Compactions: r.CompactionCount, Gen: r.Gen,
	}
	if w.Waiting > 0 {
		w.WaitingSince = r.WaitingSince
	}
	if w.Answering > 0 {
		w.AnsweringSince = r.AnsweredSince
	}
	if r.Upkeep {
		w.UpkeepUntil = *r.UpkeepUntil
	}
	if r.JobSince != nil {
		w.Compaction = pages.CompactionJob{From: r.JobFrom, Through: r.JobThrough, Attempts: r.JobAttempts, Since: *r.JobSince}
	}
	return w, nil
}

// Costs implements pages.Lists.
func (s *Store) Costs(ctx context.Context, only []sessions.Key, since time.Time, bySession bool) ([]pages.Usage, error) {
	rows, err := s.from.Ledger.Costs(ctx, only, since, spend.CostsBy{Session: bySession, Day: !bySession})
	if err != nil {
		return nil, err
	}
	list := make([]pages.Usage, len(rows))
	for i, r := range rows {
		list[i] = pages.Usage{Key: r.Key, Day: r.Period, Turns: r.Turns, Spending: r.Spending}
	}
	return list, nil
}

// Debts implements pages.Lists.
func (s *Store) Debts(ctx context.Context, only []sessions.Key, limit int) ([]pages.Debt, error) {
	rows, err := s.from.Lists.Debts(ctx, only, limit)
	if err != nil {
		return nil, err
	}
	list := make([]pages.Debt, len(rows))
	for i, r := range rows {
		list[i] = pages.Debt{Key: r.Key, From: r.From, Through: r.Through, Failures: r.Failures, Reason: r.Reason, Since: r.CreatedAt}
	}
	return list, nil
}

// DeadLetters implements pages.Lists.
func (s *Store) DeadLetters(ctx context.Context, only []sessions.Key, limit int) ([]sessions.Event, error) {
	return s.from.Lists.DeadLetters(ctx, only, limit)
}

// Restarts implements pages.Lists.
func (s *Store) Restarts(ctx context.Context, p pages.Page) ([]sessions.Restart, string, error) {
	place, err := pages.ParseCursor(pages.ListRestarts, p.Cursor, newest)
	if err != nil {
		return nil, "", err
	}
	rows, err := s.db.Q.PageRestarts(ctx, s.db.Pool, &dbsqlc.PageRestartsParams{BeforeAt: place.At, BeforeReplica: pg.Clean(place.Key), MaxRows: pg.Clamp(p.Limit) + 1})
	if err != nil {
		return nil, "", fmt.Errorf("listing restarts: %w", err)
	}
	rows, next := cut(pages.ListRestarts, rows, p.Limit, func(r dbsqlc.Restart) pages.Place { return pages.Place{At: r.StartedAt, Key: r.Replica} })
	return convert.Restarts(rows), next, nil
}
