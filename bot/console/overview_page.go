package console

import (
	"net/http"
	"slices"
	"time"

	"ebb/memory/pages"
	"ebb/sessions"
)

type overviewView struct {
	Counts   pages.Counts
	Today    usageSum
	Month    usageSum // the last 30 days
	Kinds    []usageSum
	Replicas []pages.Replica
	Calls    callsView
	At       time.Time
}

type usageSum struct {
	Name   string
	Person sessions.UserID // empty for none
	Key    sessions.Key    // empty for none
	Turns  int
	sessions.Spending
	UpkeepCost float64
}

func (u *usageSum) add(turns int, s sessions.Spending) {
	u.Turns += turns
	u.Spending = u.Spending.Add(s)
	if s.Kind != sessions.SpentTurn {
		u.UpkeepCost += s.Cost
	}
}

// Unpriced reports tokens without a cost.
func (u usageSum) Unpriced() bool { return u.Cost == 0 && u.Usage.Prompt > 0 }

type callsView struct {
	Counted           bool
	Made, Quota, Left int64
	Bots              []BotCalls // one for each of several
}

// BotCalls are the calls of a bot to DingTalk's open API in this month. Quota is 0 for no bound.
type BotCalls struct {
	Name        string
	Made, Quota int64
}

// add sums the calls. The sum has no bound where one of the bots has none.
func (v *callsView) add(all []BotCalls) {
	bounded := true
	for _, one := range all {
		v.Made, v.Quota, bounded = v.Made+one.Made, v.Quota+one.Quota, bounded && one.Quota > 0
	}
	if !bounded {
		v.Quota = 0
	}
	if len(all) > 1 {
		v.Bots = all
	}
	v.Counted, v.Left = true, max(v.Quota-v.Made, 0)
}

// overview is the first page; calls is nil where they are not counted.
type overview struct{ calls func() []BotCalls }

// show reads sums alone, so the page costs the same with 10 sessions and with 10,000. Calls to DingTalk concern the whole
// installation: only roles that see all groups get them.
func (o overview) show(w http.ResponseWriter, r *request) error {
	v := overviewView{At: time.Now()}
	var err error
	if v.Counts, err = r.lists.Counts(r.Context(), nil); err != nil {
		return err
	}
	if v.Replicas, err = r.lists.Replicas(r.Context()); err != nil {
		return err
	}
	costs, err := r.lists.Costs(r.Context(), nil, v.At.AddDate(0, 0, -29), false)
	if err != nil {
		return err
	}
	today := v.At.UTC().Format(time.DateOnly)
	for _, one := range costs {
		v.Month.add(one.Turns, one.Spending)
		if one.Day == today {
			v.Today.add(one.Turns, one.Spending)
		}
		v.Kinds = addTo(v.Kinds, string(one.Kind), one.Turns, one.Spending)
	}
	if o.calls != nil && r.whole() {
		v.Calls.add(o.calls())
	}
	return r.show(w, "overview", v)
}

func addTo(sums []usageSum, name string, turns int, s sessions.Spending) []usageSum {
	i := slices.IndexFunc(sums, func(u usageSum) bool { return u.Name == name })
	if i < 0 {
		sums, i = append(sums, usageSum{Name: name}), len(sums)
	}
	sums[i].add(turns, s)
	return sums
}
