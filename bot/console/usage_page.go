package console

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

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
		return writeUsage(w, v)
	}
	v.More = max(len(v.Top)-topSessions, 0)
	v.Top = v.Top[:min(len(v.Top), topSessions)]
	c.pages.show(w, r, http.StatusOK, "usage", v)
	return nil
}

// writeUsage writes the usage of all sessions as CSV.
func writeUsage(w http.ResponseWriter, v usageView) error {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="usage-%d-days.csv"`, v.Days))
	out := csv.NewWriter(w)
	rows := [][]string{{"session", "prompt_tokens", "cached_tokens", "completion_tokens", "cost"}}
	for _, u := range v.Top {
		rows = append(rows, []string{
			spreadsheetText(u.Name), strconv.Itoa(u.Usage.Prompt), strconv.Itoa(u.Usage.Cached), strconv.Itoa(u.Usage.Completion),
			strconv.FormatFloat(u.Cost, 'f', -1, 64),
		})
	}
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("write the usage: %w", err)
	}
	return nil
}

// spreadsheetText keeps a text from being read as a formula.
func spreadsheetText(text string) string {
	if text != "" && (text[0] == '=' || text[0] == '+' || text[0] == '-' || text[0] == '@') {
		return "'" + text
	}
	return text
}
