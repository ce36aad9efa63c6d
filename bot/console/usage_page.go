package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/bot/rows"
	"ebb/memory/pages"
	"ebb/sessions"
)

// usageDays has the default first.
var usageDays = []int{30, 7, 90, 365}

type usageView struct {
	Days    int
	Periods []int
	Total   usageSum
	ByDay   []usageSum
	ByKind  []usageSum
	Top     []usageSum // the most expensive first
	Bots    []usageSum // one for each of several, the most expensive first
	More    int        // sessions that Top leaves out
	Models  []usageSum // for roles that see all groups, the most expensive first
	People  []usageSum // as Models

	MoreModels, MorePeople bool // the tables leave some out
}

const topUsage = 50

func usagePeriod(r *request) (days int, since time.Time, err error) {
	days = usageDays[0]
	if text := r.FormValue("days"); text != "" {
		if days, err = strconv.Atoi(text); err != nil || !slices.Contains(usageDays, days) {
			return 0, time.Time{}, badRequest{code: "error.days", args: []any{text, fmt.Sprint(usageDays)}}
		}
	}
	return days, time.Now().AddDate(0, 0, 1-days), nil
}

// usage has the page, the files and the API's list of usage.
type usage struct {
	records interface {
		Usage(ctx context.Context, since time.Time, by pages.UsageBy, limit int) ([]pages.Usage, error)
		UsageList(ctx context.Context, since time.Time, by pages.UsageBy, p pages.Page) (rows []pages.Usage, next string, err error)
		UsageRows(ctx context.Context, since time.Time, by pages.UsageBy) iter.Seq2[pages.Usage, error]
	}
	botName func(sessions.RobotCode) string // empty: it is unknown
	exports exports
}

// list gives sums by model and person, which concern all groups, only to roles that see them.
func (u usage) list(r *request, p pages.Page) ([]any, string, error) {
	_, since, err := usagePeriod(r)
	if err != nil {
		return nil, "", err
	}
	switch name := r.FormValue("by"); name {
	case "", "day", "session", "bot":
		place, err := pages.ParseCursor(pages.ListCosts, p.Cursor, pages.Place{})
		if err != nil {
			return nil, "", err
		}
		sums, err := r.lists.Costs(r.Context(), nil, since, name == "session" || name == "bot")
		if name == "bot" {
			bots, next := u.botUsage(sums, place.Key, p.Limit)
			return each(bots, func(row rows.Cost) rows.Cost { return row }), next, err
		}
		sums, next := costsAfter(sums, place.Key, p.Limit)
		return each(sums, rows.OfUsage), next, err
	default:
		by, err := usageDivision(r, name)
		if err != nil {
			return nil, "", err
		}
		by.Kind = true // as in the other rows
		sums, next, err := u.records.UsageList(r.Context(), since, by, p)
		return each(sums, func(u pages.Usage) rows.Cost { return rows.OfUsage(namedFor(r, u)) }), next, err
	}
}

// costsAfter cuts a page out of sums, in the order of their fields.
func costsAfter(rows []pages.Usage, after string, limit int) ([]pages.Usage, string) {
	place := func(c pages.Usage) string {
		return strings.Join([]string{string(c.Key), c.Day, string(c.Kind)}, "\x00")
	}
	slices.SortFunc(rows, func(a, b pages.Usage) int { return cmp.Compare(place(a), place(b)) })
	rows = slices.DeleteFunc(rows, func(c pages.Usage) bool { return after != "" && place(c) <= after })
	if len(rows) <= limit {
		return rows, ""
	}
	return rows[:limit], pages.Place{Key: place(rows[limit-1])}.Cursor(pages.ListCosts)
}

// show adds up two readings, by day and by session, and not one by both: a year of 10,000 sessions would be millions of rows. Sums
// by model and person concern all groups, and only roles that see them get them.
func (u usage) show(w http.ResponseWriter, r *request) error {
	days, since, err := usagePeriod(r)
	if err != nil {
		return err
	}
	v := usageView{Days: days, Periods: usageDays}
	byDay, err := r.lists.Costs(r.Context(), nil, since, false)
	if err != nil {
		return err
	}
	for _, one := range byDay {
		v.Total.add(one.Turns, one.Spending)
		v.ByDay = addTo(v.ByDay, one.Day, one.Turns, one.Spending)
		v.ByKind = addTo(v.ByKind, string(one.Kind), one.Turns, one.Spending)
	}
	bySession, err := r.lists.Costs(r.Context(), nil, since, true)
	if err != nil {
		return err
	}
	sums := map[sessions.Key]*usageSum{}
	for _, one := range bySession {
		if sums[one.Key] == nil {
			sums[one.Key] = &usageSum{Name: string(one.Key), Key: one.Key}
		}
		sums[one.Key].add(one.Turns, one.Spending)
	}
	for _, sum := range sums {
		v.Top = append(v.Top, *sum)
	}
	sortByCost(v.Top)
	if v.Bots = u.byBot(bySession); len(v.Bots) == 1 {
		v.Bots = nil
	}
	if r.FormValue("format") == "csv" {
		return u.export(w, r, v, since)
	}
	if r.whole() {
		if err := u.divide(r, &v, since); err != nil {
			return err
		}
	}
	v.More = max(len(v.Top)-topUsage, 0)
	v.Top = v.Top[:min(len(v.Top), topUsage)]
	if err := nameSessions(r, v.Top); err != nil {
		return err
	}
	return r.show(w, "usage", v)
}

func sortByCost(sums []usageSum) {
	slices.SortFunc(sums, func(a, b usageSum) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Usage.Prompt, a.Usage.Prompt), cmp.Compare(a.Name, b.Name))
	})
}

// byBot adds up the sums of sessions.
func (u usage) byBot(bySession []pages.Usage) (sums []usageSum) {
	for _, one := range bySession {
		sums = addTo(sums, u.botOf(one.Key), one.Turns, one.Spending)
	}
	sortByCost(sums)
	return sums
}

// botOf is the code of a robot that has no name.
func (u usage) botOf(key sessions.Key) string {
	robot, _ := key.Conversation()
	return cmp.Or(u.botName(robot), string(robot))
}

// botUsage returns the sums of bots by kind of work, in the order of their names.
func (u usage) botUsage(bySession []pages.Usage, after string, limit int) ([]rows.Cost, string) {
	sums := map[string]rows.Cost{}
	for _, one := range bySession {
		row := rows.OfUsage(pages.Usage{Bot: u.botOf(one.Key), Turns: one.Turns, Spending: one.Spending})
		place := row.Bot + "\x00" + row.Kind
		sums[place] = row.Plus(sums[place])
	}
	var list []rows.Cost
	places := slices.DeleteFunc(slices.Sorted(maps.Keys(sums)), func(place string) bool { return after != "" && place <= after })
	for i, place := range places {
		if i == limit {
			return list, pages.Place{Key: places[i-1]}.Cursor(pages.ListCosts)
		}
		list = append(list, sums[place])
	}
	return list, ""
}

// divide reads one row more than a table shows, to know whether it leaves some out.
func (u usage) divide(r *request, v *usageView, since time.Time) error {
	models, err := u.records.Usage(r.Context(), since, pages.UsageBy{Model: true}, topUsage+1)
	if err != nil {
		return err
	}
	for _, one := range models[:min(len(models), topUsage)] {
		v.Models = append(v.Models, usageSum{Name: cmp.Or(one.Model, r.words.T("usage.unknown")), Turns: one.Turns, Spending: one.Spending})
	}
	people, err := u.records.Usage(r.Context(), since, pages.UsageBy{Person: true}, topUsage+1)
	if err != nil {
		return err
	}
	for _, one := range people[:min(len(people), topUsage)] {
		sum := usageSum{Name: r.words.T("usage.no_person"), Turns: one.Turns, Spending: one.Spending}
		if one = namedFor(r, one); one.Person != "" {
			sum.Name, sum.Person = cmp.Or(one.Nick, string(one.Person)), one.Person
		}
		v.People = append(v.People, sum)
	}
	v.MoreModels, v.MorePeople = len(models) > topUsage, len(people) > topUsage
	return nil
}

func nameSessions(r *request, top []usageSum) error {
	for i := range top {
		s, err := r.lists.Session(r.Context(), top[i].Key)
		switch {
		case errors.Is(err, sessions.ErrNotFound) && top[i].Key == top[i].Key.Gone():
			top[i].Name, top[i].Key = r.words.T("usage.gone"), ""
		case errors.Is(err, sessions.ErrNotFound): // its usage outlives an erased session
			top[i].Key = ""
		case err != nil:
			return err
		case !private(s):
			top[i].Name = cmp.Or(s.Title, top[i].Name)
		}
	}
	return nil
}

// namedFor removes the name for a role that does not see private chats: it may be known from there alone.
func namedFor(r *request, u pages.Usage) pages.Usage {
	if !r.acts() {
		u.Nick = ""
	}
	return u
}

var usageDivisions = map[string]pages.UsageBy{
	"model": {Model: true}, "person": {Person: true}, "day": {Day: true}, "group": {Session: true, Person: true},
	"all": {Kind: true, Day: true, Session: true, Model: true, Person: true},
}

// usageDivision lets only roles that see all groups ask.
func usageDivision(r *request, name string) (pages.UsageBy, error) {
	by, ok := usageDivisions[name]
	switch {
	case !ok:
		return by, badRequest{code: "error.by", args: []any{name, strings.Join(slices.Sorted(maps.Keys(usageDivisions)), ", ")}}
	case !r.whole():
		return by, errForbidden
	}
	return by, nil
}

// export streams the rows of a division. Texts that people chose are kept from being formulas of a spreadsheet.
func (u usage) export(w http.ResponseWriter, r *request, v usageView, since time.Time) error {
	name := r.FormValue("by")
	if name == "" {
		head := []string{"session", "prompt_tokens", "cached_tokens", "completion_tokens", "cost", "turns"}
		return u.exports.writeCSV(w, r, fmt.Sprintf("usage-%d-days.csv", v.Days), head, usageBySession(v))
	}
	by, err := usageDivision(r, name)
	if err != nil {
		return err
	}
	head := []string{"day", "session", "title", "kind", "model", "person", "nick", "prompt_tokens", "cached_tokens", "completion_tokens", "cost", "turns"}
	return u.exports.writeCSV(w, r, fmt.Sprintf("usage-by-%s-%d-days.csv", name, v.Days), head, func(yield func([]string, error) bool) {
		for sum, err := range u.records.UsageRows(r.Context(), since, by) {
			sum = namedFor(r, sum)
			row := []string{
				sum.Day, spreadsheetText(string(sum.Key)), spreadsheetText(sum.Title), string(sum.Kind), spreadsheetText(sum.Model), spreadsheetText(string(sum.Person)), spreadsheetText(sum.Nick),
			}
			if !yield(append(row, sumCells(sum.Turns, sum.Spending)...), err) {
				return
			}
		}
	})
}

func usageBySession(v usageView) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for _, u := range v.Top {
			if !yield(append([]string{spreadsheetText(u.Name)}, sumCells(u.Turns, u.Spending)...), nil) {
				return
			}
		}
	}
}

// sumCells has an empty cell for no cost.
func sumCells(turns int, s sessions.Spending) []string {
	cost := ""
	if s.Cost != 0 {
		cost = strconv.FormatFloat(s.Cost, 'f', -1, 64)
	}
	return []string{strconv.Itoa(s.Usage.Prompt), strconv.Itoa(s.Usage.Cached), strconv.Itoa(s.Usage.Completion), cost, strconv.Itoa(turns)}
}
