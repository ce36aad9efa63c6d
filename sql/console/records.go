package console

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql/dbsqlc"
	"ebb/sql/pg"
)

var _ pages.Records = (*Store)(nil)

// Expiring implements pages.Records.
func (s *Store) Expiring(ctx context.Context, period, soon time.Duration, p pages.Page) ([]pages.Expiring, string, error) {
	place, err := pages.ParseCursor(pages.ListExpiring, p.Cursor, pages.Place{})
	if err != nil {
		return nil, "", err
	}
	rows, err := s.db.Q.PageExpiring(ctx, s.db.Pool, &dbsqlc.PageExpiringParams{
		PeriodSeconds: period.Seconds(), NearSeconds: max(period-soon, 0).Seconds(), AfterKey: pg.Clean(place.Key), MaxRows: pg.Clamp(p.Limit) + 1,
	})
	if err != nil {
		return nil, "", fmt.Errorf("listing expiring events: %w", err)
	}
	rows, next := cut(pages.ListExpiring, rows, p.Limit, func(r dbsqlc.PageExpiringRow) pages.Place { return pages.Place{Key: string(r.SessionKey)} })
	list := make([]pages.Expiring, len(rows))
	for i, r := range rows {
		list[i] = pages.Expiring{
			Key: r.SessionKey, Private: r.ConversationType != sessions.Group, Due: int(r.Due), Soon: int(r.Soon), Held: int(r.Held), Oldest: r.Oldest,
		}
		if !list[i].Private {
			list[i].Title = r.Title
		}
	}
	return list, next, nil
}

// ExpiringRows implements pages.Records.
func (s *Store) ExpiringRows(ctx context.Context, r sessions.Retention) (pages.ExpiringRows, error) {
	row, err := s.db.Q.PageExpiringRows(ctx, s.db.Pool, &dbsqlc.PageExpiringRowsParams{
		MemoriesSeconds: r.Memories.Seconds(), CompactionsSeconds: r.CompactionLog.Seconds(), RepliesSeconds: r.Replies.Seconds(), ActionsSeconds: r.Audit.Seconds(),
	})
	if err != nil {
		return pages.ExpiringRows{}, fmt.Errorf("counting expiring rows: %w", err)
	}
	return pages.ExpiringRows{Memories: int(row.Memories), Compactions: int(row.Compactions), Replies: int(row.Replies), Actions: int(row.Actions)}, nil
}

// Usage implements pages.Records.
func (s *Store) Usage(ctx context.Context, since time.Time, by pages.UsageBy, limit int) ([]pages.Usage, error) {
	p := groupsOf(since, by, limit)
	p.ByCost = true
	list, err := s.usageGroups(ctx, p)
	if err == nil {
		err = s.nameUsers(ctx, list, nicks{})
	}
	if err != nil {
		return nil, fmt.Errorf("summing usage: %w", err)
	}
	return list, nil
}

func groupsOf(since time.Time, by pages.UsageBy, limit int) *dbsqlc.UsageGroupsParams {
	return &dbsqlc.UsageGroupsParams{
		ByKind: by.Kind, ByDay: by.Day, BySession: by.Session, ByModel: by.Model, ByPerson: by.Person,
		Since: pgtype.Date{Time: since.UTC(), Valid: true}, MaxRows: pg.Clamp(limit),
	}
}

func (s *Store) usageGroups(ctx context.Context, p *dbsqlc.UsageGroupsParams) ([]pages.Usage, error) {
	rows, err := s.db.Q.UsageGroups(ctx, s.db.Pool, p)
	if err != nil {
		return nil, err
	}
	list := make([]pages.Usage, len(rows))
	for i, r := range rows {
		list[i] = usageOf(r)
	}
	if p.BySession {
		return list, s.entitle(ctx, list)
	}
	return list, nil
}

func (s *Store) entitle(ctx context.Context, list []pages.Usage) error {
	keys := make([]string, len(list))
	for i, u := range list {
		keys[i] = string(u.Key)
	}
	rows, err := s.db.Q.SessionTitles(ctx, s.db.Pool, keys)
	titles := make(map[sessions.Key]string, len(rows))
	for _, r := range rows {
		titles[r.SessionKey] = r.Title
	}
	for i := range list {
		list[i].Title = titles[list[i].Key]
	}
	return err
}

// nicks are the newest names of people, empty for unknown ones.
type nicks map[sessions.UserID]string

// nameUsers sets the names, and reads those that are not among the known ones.
func (s *Store) nameUsers(ctx context.Context, list []pages.Usage, known nicks) error {
	var people []sessions.UserID
	for _, u := range list {
		if _, ok := known[u.Person]; !ok {
			known[u.Person], people = "", append(people, u.Person)
		}
	}
	last, err := s.names.LastSeen(ctx, "", "", people)
	for who, seen := range last {
		known[who] = seen.Nick
	}
	for i := range list {
		list[i].Nick = known[list[i].Person]
	}
	return err
}

const usagePage = 1000

// UsageRows implements pages.Records.
func (s *Store) UsageRows(ctx context.Context, since time.Time, by pages.UsageBy) iter.Seq2[pages.Usage, error] {
	return func(yield func(pages.Usage, error) bool) {
		known := nicks{}
		for p := (pages.Page{Limit: usagePage}); ; {
			list, next, err := s.usageList(ctx, since, by, p, known)
			if err != nil {
				yield(pages.Usage{}, err)
				return
			}
			for _, u := range list {
				if !yield(u, nil) {
					return
				}
			}
			if p.Cursor = next; next == "" {
				return
			}
		}
	}
}

// UsageList implements pages.Records. A cursor has the fields of a row.
func (s *Store) UsageList(ctx context.Context, since time.Time, by pages.UsageBy, p pages.Page) ([]pages.Usage, string, error) {
	return s.usageList(ctx, since, by, p, nicks{})
}

// usageList goes on behind a row, which the cursor holds as a whole: sums have no id of their own.
func (s *Store) usageList(ctx context.Context, since time.Time, by pages.UsageBy, p pages.Page, known nicks) ([]pages.Usage, string, error) {
	place, err := pages.ParseCursor(pages.ListUsage, p.Cursor, pages.Place{})
	if err != nil {
		return nil, "", err
	}
	var after *pages.Usage
	if p.Cursor != "" {
		after = &pages.Usage{}
		if err := json.Unmarshal([]byte(place.Key), after); err != nil {
			return nil, "", pages.ErrCursor
		}
		if _, err := time.Parse(time.DateOnly, after.Day); by.Day && err != nil {
			return nil, "", pages.ErrCursor
		}
	}
	list, err := s.usageAfter(ctx, since, by, after, p.Limit+1)
	if err == nil {
		err = s.nameUsers(ctx, list, known)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading usage: %w", err)
	}
	list, next := cut(pages.ListUsage, list, p.Limit, func(u pages.Usage) pages.Place {
		u.Title, u.Nick, u.Usage, u.Cost = "", "", sessions.Usage{}, 0
		key, _ := json.Marshal(u) // no field can fail
		return pages.Place{Key: string(key)}
	})
	return list, next, nil
}

// The first page is after nil. Usage with all divisions is stored as it is.
func (s *Store) usageAfter(ctx context.Context, since time.Time, by pages.UsageBy, after *pages.Usage, limit int) ([]pages.Usage, error) {
	p, place := groupsOf(since, by, limit), pages.Usage{}
	if after != nil {
		place, p.AfterAny = *after, 1
	}
	p.AfterSession, p.AfterPeriod, p.AfterKind = pg.Clean(string(place.Key)), pg.Clean(place.Day), pg.Clean(string(place.Kind))
	p.AfterModel, p.AfterPerson = pg.Clean(place.Model), pg.Clean(string(place.Person))
	if by != (pages.UsageBy{Kind: true, Day: true, Session: true, Model: true, Person: true}) {
		return s.usageGroups(ctx, p)
	}
	day := pgtype.Date{Time: since.UTC().AddDate(0, 0, -1), Valid: true} // before all days of the period
	if after != nil {
		if err := day.Scan(after.Day); err != nil {
			return nil, err
		}
	}
	rows, err := s.db.Q.UsageRows(ctx, s.db.Pool, &dbsqlc.UsageRowsParams{
		Since: p.Since, AfterSession: p.AfterSession, AfterDay: day, AfterKind: p.AfterKind, AfterModel: p.AfterModel, AfterPerson: p.AfterPerson, MaxRows: p.MaxRows,
	})
	if err != nil {
		return nil, err
	}
	list := make([]pages.Usage, len(rows))
	for i, r := range rows {
		list[i] = usageOf(dbsqlc.UsageGroupsRow(r))
	}
	return list, nil
}

// UsageRows has the same columns.
func usageOf(r dbsqlc.UsageGroupsRow) pages.Usage {
	return pages.Usage{
		Key: sessions.Key(r.Session), Title: r.Title, Day: r.Period, Person: sessions.UserID(r.Person), Turns: int(r.Turns),
		Spending: sessions.Spending{
			Kind: sessions.SpentKind(r.Kind), Model: r.Model, Cost: r.Cost,
			Usage: sessions.Usage{Prompt: int(r.PromptTokens), Cached: int(r.CachedTokens), Completion: int(r.CompletionTokens)},
		},
	}
}

// People implements pages.Records.
func (s *Store) People(ctx context.Context, f pages.PeopleFilter, p pages.Page) ([]pages.Speaker, string, error) {
	if f.Names && f.Part != "" {
		return s.peopleLike(ctx, f.Part, p)
	}
	place, err := pages.ParseCursor(pages.ListPeople, p.Cursor, pages.Place{})
	if err != nil {
		return nil, "", err
	}
	rows, err := s.db.Q.PagePeople(ctx, s.db.Pool, &dbsqlc.PagePeopleParams{
		AfterID: pg.Clean(place.Key), MostRows: mostNamed, Part: strings.ToLower(pg.Clean(f.Part)), MaxRows: pg.Clamp(p.Limit) + 1,
	})
	if err != nil {
		return nil, "", fmt.Errorf("listing people: %w", err)
	}
	placeOf := func(r dbsqlc.PagePeopleRow) pages.Place { return pages.Place{Key: string(r.Person)} }
	rows, next := cut(pages.ListPeople, rows, p.Limit, placeOf)
	list := make([]pages.Speaker, 0, len(rows))
	for _, r := range rows {
		if r.Matches {
			list = append(list, pages.Speaker{ID: r.Person})
		}
		if r.Bounded {
			next = placeOf(r).Cursor(pages.ListPeople)
		}
	}
	if err := s.nameSpeakers(ctx, list); err != nil {
		return nil, "", fmt.Errorf("reading the names of people: %w", err)
	}
	return list, next, nil
}

// nameSpeakers completes people without a name by the newest one, and by the last time under any name.
func (s *Store) nameSpeakers(ctx context.Context, list []pages.Speaker) error {
	people := make([]sessions.UserID, len(list))
	for i, one := range list {
		people[i] = one.ID
	}
	last, err := s.names.LastSeen(ctx, "", "", people)
	for i := range list {
		if seen, spoke := last[list[i].ID]; spoke && list[i].Nick == "" {
			list[i].Nick, list[i].Last = seen.Nick, seen.At
		}
	}
	return err
}

// mostNamed bounds the rows of one page's search.
const mostNamed = 50_000

// People with exactly that name or id come first, since they may have left only memories. A page can have fewer rows
// than its limit, or none, while the search of more names goes on with the cursor.
func (s *Store) peopleLike(ctx context.Context, part string, p pages.Page) ([]pages.Speaker, string, error) {
	place, err := pages.ParseCursor(pages.ListPeopleByNick, p.Cursor, pages.Place{})
	if err != nil {
		return nil, "", err
	}
	var list []pages.Speaker
	seen := map[sessions.UserID]bool{}
	add := func(one pages.Speaker) {
		if !seen[one.ID] {
			seen[one.ID], list = true, append(list, one)
		}
	}
	if p.Cursor == "" {
		found, err := s.from.Rights.People(ctx, "", "", pg.Clean(part))
		if err != nil {
			return nil, "", err
		}
		for _, f := range found {
			add(pages.Speaker{ID: f.ID, Nick: f.Nick, Last: f.Last})
		}
	}
	nick, id, _ := strings.Cut(place.Key, "\x00")
	rows, err := s.db.Q.PagePeopleLike(ctx, s.db.Pool, &dbsqlc.PagePeopleLikeParams{
		AfterNick: pg.Clean(nick), AfterID: pg.Clean(id), MostRows: mostNamed, Part: strings.ToLower(pg.Clean(part)), MaxRows: pg.Clamp(p.Limit),
	})
	if err != nil {
		return nil, "", fmt.Errorf("finding people: %w", err)
	}
	next := ""
	for i, r := range rows {
		if r.Matches {
			add(pages.Speaker{ID: r.Person})
		}
		if r.Bounded || i+1 == p.Limit {
			next = pages.Place{Key: r.Name + "\x00" + string(r.Person)}.Cursor(pages.ListPeopleByNick)
		}
	}
	if err := s.nameSpeakers(ctx, list); err != nil {
		return nil, "", fmt.Errorf("reading the names of people: %w", err)
	}
	return list, next, nil
}

// CountConversations implements pages.Records.
func (s *Store) CountConversations(ctx context.Context, person sessions.UserID) (pages.ConversationCount, error) {
	r, err := s.db.Q.PageSpoke(ctx, s.db.Pool, pg.Clean(string(person)))
	if err != nil {
		return pages.ConversationCount{}, fmt.Errorf("counting the conversations of a person: %w", err)
	}
	spoke := pages.ConversationCount{Private: int(r.Private), Groups: int(r.Groups)}
	if spoke.Private+spoke.Groups > 0 {
		spoke.Last = &r.SeenAt
	}
	return spoke, nil
}
