package console

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql/admin"
	"ebb/sql/compactions"
	"ebb/sql/conversation"
	"ebb/sql/convert"
	"ebb/sql/dbsqlc"
	"ebb/sql/facts"
	"ebb/sql/identity"
	"ebb/sql/pg"
	"ebb/sql/spend"
)

var (
	_ pages.Lists  = (*Store)(nil)
	_ pages.Logins = (*Store)(nil)
	_ pages.Audit  = (*Store)(nil)
)

// Sources are the stores whose rows the pages show.
type Sources struct {
	Sessions    *conversation.Sessions
	Compactions *compactions.Store
	Flushes     *facts.Flushes
	Facts       *facts.Store
	Rights      *facts.Rights
	Ledger      *spend.Store
	Lists       *admin.Store
}

// Store implements the ports of package pages.
type Store struct {
	db    *pg.DB
	names *identity.Store
	from  Sources
}

// New returns the pages of a database.
func New(db *pg.DB, names *identity.Store, from Sources) *Store { return &Store{db, names, from} }

// newest is the place before the first row of a list.
var newest = pages.Place{At: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), Key: "\U0010FFFF", ID: math.MaxInt64}

// The row that was read beyond a page is dropped. The cursor is that of the last row that stays.
func cut[T any](list string, rows []T, limit int, place func(T) pages.Place) (page []T, next string) {
	if len(rows) <= limit {
		return rows, ""
	}
	return rows[:limit], place(rows[limit-1]).Cursor(list)
}

// Sessions implements pages.Lists.
func (s *Store) Sessions(ctx context.Context, f pages.SessionFilter, p pages.Page) ([]pages.SessionRow, string, error) {
	name := pages.ListSessions
	if p.Fixed {
		name = pages.ListSessionsByKey
	}
	place, err := pages.ParseCursor(name, p.Cursor, newest)
	if err != nil {
		return nil, "", err
	}
	rows, err := s.db.Q.PageSessions(ctx, s.db.Pool, &dbsqlc.PageSessionsParams{
		ByKey: p.Fixed, BeforeAt: place.At, BeforeKey: pg.Clean(place.Key), Words: texts(f.Words), Groups: texts(f.Groups), Model: pg.Clean(f.Model), State: pg.Clean(f.State),
		OnlyKeys: pg.Texts(f.Only), MaxRows: pg.Clamp(p.Limit) + 1,
	})
	if err != nil {
		return nil, "", fmt.Errorf("listing sessions: %w", err)
	}
	rows, next := cut(name, rows, p.Limit, func(r dbsqlc.PageSessionsRow) pages.Place {
		return pages.Place{At: r.Session.LastActiveAt, Key: string(r.Session.SessionKey)}
	})
	list := make([]pages.SessionRow, len(rows))
	for i := range rows {
		r := &rows[i]
		list[i] = pages.SessionRow{
			Session: convert.Session(&r.Session, r.SpentToday), Model: r.Session.Model, Waiting: int(r.Waiting), Dead: int(r.Dead), Owed: r.Owed,
		}
	}
	return list, next, nil
}

// Compactions implements pages.Lists.
func (s *Store) Compactions(ctx context.Context, f pages.CompactionFilter, p pages.Page) ([]pages.CompactionRow, string, error) {
	place, err := pages.ParseCursor(pages.ListCompactions, p.Cursor, newest)
	if err != nil {
		return nil, "", err
	}
	rows, err := s.db.Q.PageCompactions(ctx, s.db.Pool, &dbsqlc.PageCompactionsParams{
		BeforeAt: place.At, BeforeID: place.ID, Since: f.Since, SessionKey: pg.Clean(string(f.Session)), Outcome: pg.Clean(f.Outcome),
		Policy: pg.Clean(f.Policy), Trigger: pg.Clean(f.Trigger), Words: texts(f.Words), OnlyKeys: pg.Texts(f.Only), MaxRows: pg.Clamp(p.Limit) + 1,
	})
	if err != nil {
		return nil, "", fmt.Errorf("listing compactions: %w", err)
	}
	rows, next := cut(pages.ListCompactions, rows, p.Limit, func(r dbsqlc.PageCompactionsRow) pages.Place {
		return pages.Place{At: r.CompactionLog.CreatedAt, ID: r.CompactionLog.ID}
	})
	list := make([]pages.CompactionRow, len(rows))
	for i := range rows {
		list[i] = pages.CompactionRow{
			LogEntry: convert.LogEntry(&rows[i].CompactionLog), Title: rows[i].Title,
			Private: rows[i].ConversationType != string(sessions.Group),
		}
	}
	if err := nameRequesters(ctx, s.names, list); err != nil {
		return nil, "", err
	}
	return list, next, nil
}

// Schedules implements pages.Lists.
func (s *Store) Schedules(ctx context.Context, f pages.ScheduleFilter, p pages.Page) ([]pages.ScheduleRow, string, error) {
	if p.Fixed {
		return schedulesByKey(ctx, s.db, f, p)
	}
	place, err := pages.ParseCursor(pages.ListSchedules, p.Cursor, pages.Place{})
	if err != nil {
		return nil, "", err
	}
	var rows []dbsqlc.PageSchedulesRow
	const active = string(sessions.ScheduleActive)
	if !place.Ended && (f.State == "" || f.State == active) {
		rows, err = s.db.Q.PageSchedules(ctx, s.db.Pool, &dbsqlc.PageSchedulesParams{
			AfterAt: place.At, AfterKey: pg.Clean(place.Key), AfterID: place.ID, Kind: pg.Clean(f.Kind), SessionKey: pg.Clean(string(f.Session)),
			Words: texts(f.Words), OnlyKeys: pg.Texts(f.Only), MaxRows: pg.Clamp(p.Limit) + 1,
		})
		if err != nil {
			return nil, "", fmt.Errorf("listing active schedules: %w", err)
		}
	}
	if f.State != active && len(rows) <= p.Limit {
		if !place.Ended {
			place = newest
		}
		ended, err := s.db.Q.PageSchedulesEnded(ctx, s.db.Pool, &dbsqlc.PageSchedulesEndedParams{
			BeforeAt: place.At, BeforeKey: pg.Clean(place.Key), BeforeID: place.ID, State: pg.Clean(f.State), Kind: pg.Clean(f.Kind),
			SessionKey: pg.Clean(string(f.Session)), Words: texts(f.Words), OnlyKeys: pg.Texts(f.Only), MaxRows: pg.Clamp(p.Limit + 1 - len(rows)),
		})
		if err != nil {
			return nil, "", fmt.Errorf("listing ended schedules: %w", err)
		}
		for _, r := range ended {
			rows = append(rows, dbsqlc.PageSchedulesRow(r))
		}
	}
	list, next := cut(pages.ListSchedules, scheduleRows(rows), p.Limit, func(r pages.ScheduleRow) pages.Place {
		if r.State == sessions.ScheduleActive {
			return pages.Place{At: r.DueAt, Key: string(r.Key), ID: r.ID}
		}
		return pages.Place{At: r.SettledAt, Key: string(r.Key), ID: r.ID, Ended: true}
	})
	return list, next, nil
}

func schedulesByKey(ctx context.Context, db *pg.DB, f pages.ScheduleFilter, p pages.Page) ([]pages.ScheduleRow, string, error) {
	place, err := pages.ParseCursor(pages.ListSchedulesByKey, p.Cursor, pages.Place{})
	if err != nil {
		return nil, "", err
	}
	found, err := db.Q.PageSchedulesByKey(ctx, db.Pool, &dbsqlc.PageSchedulesByKeyParams{
		AfterKey: pg.Clean(place.Key), AfterID: place.ID, State: pg.Clean(f.State), Kind: pg.Clean(f.Kind), SessionKey: pg.Clean(string(f.Session)),
		Words: texts(f.Words), OnlyKeys: pg.Texts(f.Only), MaxRows: pg.Clamp(p.Limit) + 1,
	})
	if err != nil {
		return nil, "", fmt.Errorf("listing schedules: %w", err)
	}
	rows := make([]dbsqlc.PageSchedulesRow, len(found))
	for i, r := range found {
		rows[i] = dbsqlc.PageSchedulesRow(r)
	}
	list, next := cut(pages.ListSchedulesByKey, scheduleRows(rows), p.Limit, func(r pages.ScheduleRow) pages.Place { return pages.Place{Key: string(r.Key), ID: r.ID} })
	return list, next, nil
}

func scheduleRows(rows []dbsqlc.PageSchedulesRow) []pages.ScheduleRow {
	list := make([]pages.ScheduleRow, len(rows))
	for i := range rows {
		list[i] = pages.ScheduleRow{Schedule: convert.Schedule(&rows[i].Schedule), Title: rows[i].Title, Private: rows[i].ConversationType != string(sessions.Group)}
	}
	return list
}

// Files implements pages.Lists.
func (s *Store) Files(ctx context.Context, f pages.FileFilter, p pages.Page) ([]pages.FileRow, string, error) {
	place, err := pages.ParseCursor(pages.ListFiles, p.Cursor, pages.Place{})
	if err != nil {
		return nil, "", err
	}
	rows, err := s.db.Q.PageFiles(ctx, s.db.Pool, &dbsqlc.PageFilesParams{
		AfterKey: pg.Clean(place.Key), AfterID: place.ID, SessionKey: pg.Clean(string(f.Session)), Words: texts(f.Words), OnlyKeys: pg.Texts(f.Only),
		MaxRows: pg.Clamp(p.Limit) + 1,
	})
	if err != nil {
		return nil, "", fmt.Errorf("listing kept files: %w", err)
	}
	list, names := make([]pages.FileRow, len(rows)), map[identity.Speaker]string{}
	for i := range rows {
		list[i] = pages.FileRow{KeptFile: convert.KeptFile(&rows[i].File), Title: rows[i].Title, Private: rows[i].ConversationType != string(sessions.Group)}
		names[identity.Speaker{Key: list[i].Key, ID: list[i].KeptBy}] = ""
	}
	if err := s.names.Nicks(ctx, names); err != nil {
		return nil, "", fmt.Errorf("reading the names of keepers: %w", err)
	}
	for i, r := range list {
		list[i].Keeper = names[identity.Speaker{Key: r.Key, ID: r.KeptBy}]
	}
	list, next := cut(pages.ListFiles, list, p.Limit, func(r pages.FileRow) pages.Place { return pages.Place{Key: string(r.Key), ID: r.ID} })
	return list, next, nil
}

// Approvals implements pages.Lists.
func (s *Store) Approvals(ctx context.Context, f pages.ApprovalFilter, p pages.Page) ([]pages.ApprovalRow, string, error) {
	place, err := pages.ParseCursor(pages.ListApprovals, p.Cursor, newest)
	if err != nil {
		return nil, "", err
	}
	found, err := s.db.Q.PageApprovals(ctx, s.db.Pool, &dbsqlc.PageApprovalsParams{
		BeforeAt: place.At, BeforeKey: pg.Clean(place.Key), BeforeID: place.ID, State: pg.Clean(f.State), SessionKey: pg.Clean(string(f.Session)),
		Words: texts(f.Words), OnlyKeys: pg.Texts(f.Only), MaxRows: pg.Clamp(p.Limit) + 1,
	})
	if err != nil {
		return nil, "", fmt.Errorf("listing approvals: %w", err)
	}
	rows := make([]pages.ApprovalRow, len(found))
	for i := range found {
		r := &found[i]
		rows[i] = pages.ApprovalRow{
			FoundApproval: sessions.FoundApproval{Approval: convert.Approval(&r.Approval), Overdue: r.Overdue, Asker: r.Asker, Decider: r.Decider},
			Title:         r.Title, Private: r.ConversationType != string(sessions.Group),
		}
	}
	rows, next := cut(pages.ListApprovals, rows, p.Limit, func(r pages.ApprovalRow) pages.Place {
		return pages.Place{At: r.CreatedAt, Key: string(r.Key), ID: r.ID}
	})
	return rows, next, nil
}

// The nicks are those that the conversations of the requesters know.
func nameRequesters(ctx context.Context, known *identity.Store, list []pages.CompactionRow) error {
	names := map[identity.Speaker]string{}
	for _, r := range list {
		names[identity.Speaker{Key: r.Key, ID: sessions.UserID(r.RequestedBy)}] = ""
	}
	if err := known.Nicks(ctx, names); err != nil {
		return fmt.Errorf("reading the names of those who asked for compactions: %w", err)
	}
	for i, r := range list {
		list[i].RequesterNick = names[identity.Speaker{Key: r.Key, ID: sessions.UserID(r.RequestedBy)}]
	}
	return nil
}

// Talk implements pages.Lists.
func (s *Store) Talk(ctx context.Context, key sessions.Key, p pages.Page) ([]sessions.Event, string, error) {
	place, err := pages.ParseCursor(pages.ListTalk, p.Cursor, newest)
	if err != nil {
		return nil, "", err
	}
	rows, err := s.db.Q.PageTalk(ctx, s.db.Pool, &dbsqlc.PageTalkParams{SessionKey: key, BeforeSeq: place.ID, MaxRows: pg.Clamp(p.Limit) + 1})
	if err != nil {
		return nil, "", fmt.Errorf("listing events: %w", err)
	}
	rows, next := cut(pages.ListTalk, rows, p.Limit, func(r dbsqlc.Event) pages.Place { return pages.Place{ID: pg.OrZero(r.Seq)} })
	slices.Reverse(rows)
	events, err := convert.Events(rows)
	return events, next, err
}

// Open implements pages.Lists.
func (s *Store) Open(ctx context.Context, key sessions.Key, limit int) ([]sessions.Event, error) {
	rows, err := s.db.Q.PageOpen(ctx, s.db.Pool, &dbsqlc.PageOpenParams{SessionKey: key, MaxRows: pg.Clamp(limit)})
	if err != nil {
		return nil, fmt.Errorf("listing open messages: %w", err)
	}
	return convert.Events(rows)
}

// Cuts implements pages.Lists.
func (s *Store) Cuts(ctx context.Context, key sessions.Key, from, through int64, limit int) ([]sessions.LogEntry, error) {
	rows, err := s.db.Q.PageCuts(ctx, s.db.Pool, &dbsqlc.PageCutsParams{SessionKey: key, FromSeq: from, ThroughSeq: through, MaxRows: pg.Clamp(limit)})
	if err != nil {
		return nil, fmt.Errorf("listing cuts: %w", err)
	}
	list := make([]sessions.LogEntry, len(rows))
	for i := range rows {
		list[len(rows)-1-i] = convert.LogEntry(&rows[i])
	}
	return list, nil
}

// Undoable implements pages.Lists.
func (s *Store) Undoable(ctx context.Context, key sessions.Key) (int64, error) {
	id, err := s.db.Q.PageUndoable(ctx, s.db.Pool, key)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("finding the compaction to undo: %w", err)
	}
	return id, nil
}

// Replicas implements pages.Lists.
func (s *Store) Replicas(ctx context.Context) ([]pages.Replica, error) {
	rows, err := s.db.Q.PageReplicas(ctx, s.db.Pool)
	if err != nil {
		return nil, fmt.Errorf("listing replicas: %w", err)
	}
	list := make([]pages.Replica, len(rows))
	for i, r := range rows {
		list[i] = pages.Replica{
			ID: r.ID, StartedAt: r.StartedAt, Silent: time.Duration(r.SilentSeconds * float64(time.Second)), Leases: int(r.Leases),
			Draining: r.Draining, Connected: r.Connected,
		}
	}
	return list, nil
}

// Counts implements pages.Lists.
func (s *Store) Counts(ctx context.Context, only []sessions.Key) (pages.Counts, error) {
	r, err := s.db.Q.PageCounts(ctx, s.db.Pool, &dbsqlc.PageCountsParams{Erased: sessions.ErasedText, OnlyKeys: pg.Texts(only)})
	if err != nil {
		return pages.Counts{}, fmt.Errorf("counting open work: %w", err)
	}
	return pages.Counts{
		Sessions: int(r.Sessions), Waiting: int(r.Waiting), Dead: int(r.Dead), Withheld: int(r.Withheld), WithheldSummaries: int(r.WithheldSummaries), WithheldFacts: int(r.WithheldFacts),
		Debts: int(r.Debts), Compacted: int(r.Compacted), Failed: int(r.Failed),
	}, nil
}

// GroupSessions implements pages.Lists.
func (s *Store) GroupSessions(ctx context.Context, groups []sessions.ConversationID) ([]sessions.Key, error) {
	keys, err := s.db.Q.PageGroupSessions(ctx, s.db.Pool, texts(groups))
	if err != nil {
		return nil, fmt.Errorf("listing the sessions of %d groups: %w", len(groups), err)
	}
	return append([]sessions.Key{}, keys...), nil
}

// texts makes words safe for the server, and a missing list an empty one.
func texts[T ~string](words []T) []string { return append([]string{}, pg.Texts(words)...) }
