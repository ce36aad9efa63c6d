package console

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/pages"
	"ebb/sessions"
)

// usageDays are the periods of the usage page in days, the default first.
var usageDays = []int{30, 7, 90, 365}

// usageView is the data of the usage page. The sums are over all rows, also those that a table does not show.
type usageView struct {
	Days    int
	Periods []int
	Total   usageSum
	ByDay   []usageSum
	ByKind  []usageSum
	Top     []usageSum // sessions, the most expensive first
	More    int        // sessions that Top leaves out
	Models  []usageSum // for roles that see all groups
	People  []usageSum // for roles that see all groups, the most expensive first
}

// topSessions bounds the table of sessions.
const topSessions = 50

func (c *Console) usage(w http.ResponseWriter, r *request) error {
	v := usageView{Days: usageDays[0], Periods: usageDays}
	if days := r.FormValue("days"); days != "" {
		n, err := strconv.Atoi(days)
		if err != nil || !slices.Contains(usageDays, n) {
			return badRequest{code: "error.days", args: []any{days, fmt.Sprint(usageDays)}}
		}
		v.Days = n
	}
	since := time.Now().AddDate(0, 0, 1-v.Days)
	byDay, err := r.lists.Costs(r.Context(), nil, since, false)
	if err != nil {
		return err
	}
	for _, one := range byDay {
		v.Total.add(one.Spending)
		v.ByDay = addTo(v.ByDay, one.Day, one.Spending)
		v.ByKind = addTo(v.ByKind, one.Kind, one.Spending)
	}
	bySession, err := r.lists.Costs(r.Context(), nil, since, true)
	if err != nil {
		return err
	}
	sums := map[sessions.Key]*usageSum{}
	for _, one := range bySession {
		if sums[one.Key] == nil {
			sums[one.Key] = &usageSum{Name: string(one.Key)}
		}
		sums[one.Key].add(one.Spending)
	}
	for _, sum := range sums {
		v.Top = append(v.Top, *sum)
	}
	slices.SortFunc(v.Top, func(a, b usageSum) int {
		return cmp.Or(cmp.Compare(b.Cost, a.Cost), cmp.Compare(b.Usage.Prompt, a.Usage.Prompt), cmp.Compare(a.Name, b.Name))
	})
	if r.FormValue("format") == "csv" {
		return c.exportUsage(w, r, v, since)
	}
	if r.whole() {
		if err := c.divideUsage(r, &v, since); err != nil {
			return err
		}
	}
	v.More = max(len(v.Top)-topSessions, 0)
	v.Top = v.Top[:min(len(v.Top), topSessions)]
	c.pages.show(w, r, http.StatusOK, "usage", v)
	return nil
}

// divideUsage adds the sums by model and by person.
func (c *Console) divideUsage(r *request, v *usageView, since time.Time) error {
	models, err := c.cfg.Records.Usage(r.Context(), since, pages.UsageBy{Model: true}, topSessions)
	if err != nil {
		return err
	}
	for _, one := range models {
		v.Models = append(v.Models, usageSum{Name: cmp.Or(one.Model, r.words.T("usage.unknown")), Spending: one.Spending})
	}
	people, err := c.cfg.Records.Usage(r.Context(), since, pages.UsageBy{Person: true}, topSessions)
	if err != nil {
		return err
	}
	for _, one := range namedFor(r, people) {
		sum := usageSum{Name: r.words.T("usage.nobody"), Spending: one.Spending}
		if one.Person != "" {
			sum.Name, sum.Person = cmp.Or(one.Nick, string(one.Person)), one.Person
		}
		v.People = append(v.People, sum)
	}
	return nil
}

// namedFor removes names for a role that does not see private chats: they may be known from there alone.
func namedFor(r *request, list []pages.Usage) []pages.Usage {
	for i := range list {
		if !r.acts() {
			list[i].Nick = ""
		}
	}
	return list
}

// usageDivisions are the divisions of an exported usage besides sessions.
var usageDivisions = map[string]pages.UsageBy{
	"model": {Model: true}, "person": {Person: true}, "day": {Day: true}, "group": {Session: true, Person: true},
	"all": {Kind: true, Day: true, Session: true, Model: true, Person: true},
}

// maxUsageRows bounds an exported usage.
const maxUsageRows = 1_000_000

// exportUsage writes usage as CSV, by sessions or by the parameter by.
func (c *Console) exportUsage(w http.ResponseWriter, r *request, v usageView, since time.Time) error {
	name := r.FormValue("by")
	if name == "" {
		return writeUsage(w, v)
	}
	by, ok := usageDivisions[name]
	if !ok {
		return badRequest{code: "error.by", args: []any{name, strings.Join(slices.Sorted(maps.Keys(usageDivisions)), ", ")}}
	}
	if !r.whole() {
		return errForbidden
	}
	list, err := c.cfg.Records.Usage(r.Context(), since, by, maxUsageRows)
	if err != nil {
		return err
	}
	rows := [][]string{{"day", "session", "title", "kind", "model", "person", "nick", "prompt_tokens", "cached_tokens", "completion_tokens", "cost"}}
	for _, u := range namedFor(r, list) {
		rows = append(rows, []string{
			u.Day, spreadsheetText(string(u.Key)), spreadsheetText(u.Title), u.Kind, spreadsheetText(u.Model), spreadsheetText(string(u.Person)), spreadsheetText(u.Nick),
			strconv.Itoa(u.Usage.Prompt), strconv.Itoa(u.Usage.Cached), strconv.Itoa(u.Usage.Completion), strconv.FormatFloat(u.Cost, 'f', -1, 64),
		})
	}
	return writeCSV(w, fmt.Sprintf("usage-by-%s-%d-days.csv", name, v.Days), rows)
}

// writeCSV writes rows as a file.
func writeCSV(w http.ResponseWriter, name string, rows [][]string) error {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s"`, name))
	if err := csv.NewWriter(w).WriteAll(rows); err != nil {
		return fmt.Errorf("write the usage: %w", err)
	}
	return nil
}

// writeUsage writes the usage of all sessions as CSV.
func writeUsage(w http.ResponseWriter, v usageView) error {
	rows := [][]string{{"session", "prompt_tokens", "cached_tokens", "completion_tokens", "cost"}}
	for _, u := range v.Top {
		rows = append(rows, []string{
			spreadsheetText(u.Name), strconv.Itoa(u.Usage.Prompt), strconv.Itoa(u.Usage.Cached), strconv.Itoa(u.Usage.Completion),
			strconv.FormatFloat(u.Cost, 'f', -1, 64),
		})
	}
	return writeCSV(w, fmt.Sprintf("usage-%d-days.csv", v.Days), rows)
}

// spreadsheetText keeps a text from being read as a formula.
func spreadsheetText(text string) string {
	if text != "" && (text[0] == '=' || text[0] == '+' || text[0] == '-' || text[0] == '@') {
		return "'" + text
	}
	return text
}
