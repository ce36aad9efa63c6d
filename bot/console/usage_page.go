package console

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"regexp"
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

// apiUsage gives sums by model and person, which concern all groups, only to roles that see them.
func (c *Console) apiUsage(r *request, p pages.Page) ([]any, string, error) {
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
			bots, next := c.botUsage(sums, place.Key, p.Limit)
			return each(bots, func(row rows.Cost) rows.Cost { return row }), next, err
		}
		sums, next := costsAfter(sums, place.Key, p.Limit)
		return each(sums, rows.OfCost), next, err
	default:
		by, err := usageDivision(r, name)
		if err != nil {
			return nil, "", err
		}
		by.Kind = true // as in the other rows
		sums, next, err := c.cfg.Records.UsageList(r.Context(), since, by, p)
		return each(sums, func(u pages.Usage) rows.Cost { return rows.OfUsage(namedFor(r, u)) }), next, err
	}
}

// costsAfter cuts a page out of sums, in the order of their fields.
func costsAfter(rows []pages.Cost, after string, limit int) ([]pages.Cost, string) {
	place := func(c pages.Cost) string { return strings.Join([]string{string(c.Key), c.Day, string(c.Kind)}, "\x00") }
	slices.SortFunc(rows, func(a, b pages.Cost) int { return cmp.Compare(place(a), place(b)) })
	rows = slices.DeleteFunc(rows, func(c pages.Cost) bool { return after != "" && place(c) <= after })
	if len(rows) <= limit {
		return rows, ""
	}
	return rows[:limit], pages.Place{Key: place(rows[limit-1])}.Cursor(pages.ListCosts)
}

// usage adds up two readings, by day and by session, and not one by both: a year of 10,000 sessions would be millions of rows. Sums
// by model and person concern all groups, and only roles that see them get them.
func (c *Console) usage(w http.ResponseWriter, r *request) error {
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
	if v.Bots = c.usageByBot(bySession); len(v.Bots) == 1 {
		v.Bots = nil
	}
	if r.FormValue("format") == "csv" {
		return c.exportUsage(w, r, v, since)
	}
	if r.whole() {
		if err := c.divideUsage(r, &v, since); err != nil {
			return err
		}
	}
	v.More = max(len(v.Top)-topUsage, 0)
	v.Top = v.Top[:min(len(v.Top), topUsage)]
	if err := nameSessions(r, v.Top); err != nil {
		return err
	}
	c.pages.show(w, r, http.StatusOK, "usage", v)
	return nil
}

func sortByCost(sums []usageSum) {
	slices.SortFunc(sums, func(a, b usageSum) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Usage.Prompt, a.Usage.Prompt), cmp.Compare(a.Name, b.Name))
	})
}

// usageByBot adds up the sums of sessions.
func (c *Console) usageByBot(bySession []pages.Cost) (sums []usageSum) {
	for _, one := range bySession {
		sums = addTo(sums, c.botOf(one.Key), one.Turns, one.Spending)
	}
	sortByCost(sums)
	return sums
}

// botOf is the code of a robot that has no name.
func (c *Console) botOf(key sessions.Key) string {
	robot, _ := key.Conversation()
	return cmp.Or(c.cfg.BotName(robot), string(robot))
}

// botUsage returns the sums of bots by kind of work, in the order of their names.
func (c *Console) botUsage(bySession []pages.Cost, after string, limit int) ([]rows.Cost, string) {
	sums := map[string]rows.Cost{}
	for _, one := range bySession {
		row := rows.OfUsage(pages.Usage{Bot: c.botOf(one.Key), Turns: one.Turns, Spending: one.Spending})
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

// divideUsage reads one row more than a table shows, to know whether it leaves some out.
func (c *Console) divideUsage(r *request, v *usageView, since time.Time) error {
	models, err := c.cfg.Records.Usage(r.Context(), since, pages.UsageBy{Model: true}, topUsage+1)
	if err != nil {
		return err
	}
	for _, one := range models[:min(len(models), topUsage)] {
		v.Models = append(v.Models, usageSum{Name: cmp.Or(one.Model, r.words.T("usage.unknown")), Turns: one.Turns, Spending: one.Spending})
	}
	people, err := c.cfg.Records.Usage(r.Context(), since, pages.UsageBy{Person: true}, topUsage+1)
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

func titles(r *request, keys iter.Seq[sessions.Key]) (map[sessions.Key]string, error) {
	all := map[sessions.Key]string{}
	for key := range keys {
		if _, known := all[key]; known || key == "" {
			continue
		}
		s, err := r.lists.Session(r.Context(), key)
		if err != nil && !isNotFound(err) {
			return nil, err
		}
		all[key] = s.Title
	}
	return all, nil
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

// exportUsage streams the rows of a division. Texts that people chose are kept from being formulas of a spreadsheet.
func (c *Console) exportUsage(w http.ResponseWriter, r *request, v usageView, since time.Time) error {
	name := r.FormValue("by")
	if name == "" {
		head := []string{"session", "prompt_tokens", "cached_tokens", "completion_tokens", "cost", "turns"}
		return c.writeCSV(w, r, fmt.Sprintf("usage-%d-days.csv", v.Days), head, usageBySession(v))
	}
	by, err := usageDivision(r, name)
	if err != nil {
		return err
	}
	head := []string{"day", "session", "title", "kind", "model", "person", "nick", "prompt_tokens", "cached_tokens", "completion_tokens", "cost", "turns"}
	return c.writeCSV(w, r, fmt.Sprintf("usage-by-%s-%d-days.csv", name, v.Days), head, func(yield func([]string, error) bool) {
		for u, err := range c.cfg.Records.UsageRows(r.Context(), since, by) {
			u = namedFor(r, u)
			row := []string{
				u.Day, spreadsheetText(string(u.Key)), spreadsheetText(u.Title), string(u.Kind), spreadsheetText(u.Model), spreadsheetText(string(u.Person)), spreadsheetText(u.Nick),
			}
			if !yield(append(row, sumCells(u.Turns, u.Spending)...), err) {
				return
			}
		}
	})
}

// writeCSV ends the answer with a broken connection after an error behind the first row, as in [Console.writeLines].
func (c *Console) writeCSV(w http.ResponseWriter, r *request, name string, head []string, rows iter.Seq2[[]string, error]) error {
	done, err := c.export(w)
	if err != nil {
		return err
	}
	defer done()
	out, begun := csv.NewWriter(w), false
	begin := func() {
		if begun {
			return
		}
		begun = true
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
		w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s"`, name))
		_ = out.Write(head) // an error stays for the next row
	}
	for row, err := range rows {
		if err != nil && !begun {
			return err
		}
		if err != nil {
			_, _ = c.apiError(r.Request, err)
			panic(http.ErrAbortHandler)
		}
		begin()
		if out.Write(row) != nil {
			return nil // the peer is gone
		}
	}
	begin()
	out.Flush()
	return nil
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

// formulaStarts are the runes after which a spreadsheet reads a formula. Full-width forms count as well, and so does what follows blanks,
// a line break within the cell, or a semicolon, which some languages take for the separator of columns.
var formulaStarts = regexp.MustCompile("(^|[;\\t\\r\\n])([\\s\\p{C}\"']*[=+\\-@＝＋－＠])")

// spreadsheetText keeps a text, and each part of it that a spreadsheet may take for a cell, from being read as a formula.
func spreadsheetText(text string) string { return formulaStarts.ReplaceAllString(text, "$1'$2") }
