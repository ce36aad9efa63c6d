package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"ebb/bot/config"
	"ebb/bot/dingtalk/calls"
	"ebb/bot/manage"
	"ebb/bot/rows"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/spend"
)

type compactionsCostCmd struct {
	configFlag
	Session string `help:"Only this session."`
	By      string `enum:"month,day,session,conversation,total" default:"month" help:"Sum by month, day, session or conversation (with the sessions of all its members), or in total (default: ${default})."`
	Days    int    `default:"366" help:"Number of days, up to today (default: ${default})."`
	JSON    bool   `help:"One JSON object a line."`
}

func viewCost(c spend.Cost, byMonth bool) rows.Cost {
	v := rows.Cost{
		SessionKey: c.Key, Kind: string(c.Kind), Turns: c.Turns, Prompt: c.Usage.Prompt, Cached: c.Usage.Cached,
		Completion: c.Usage.Completion, Cost: c.Cost,
	}
	if byMonth {
		v.Month = c.Period
	} else {
		v.Day = c.Period
	}
	return v
}

func costLine(v rows.Cost, currency string) string {
	cost := "no price"
	if v.Cost > 0 {
		cost = wording.Cost(v.Cost, currency)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t%d\t%s", orDash(v.Month+v.Day), orDash(string(v.SessionKey)), v.Kind, v.Prompt, v.Cached,
		v.Completion, cost)
}

// Run sums costs, the newest period first.
func (c compactionsCostCmd) Run(ctx context.Context, app *App) error {
	if c.Days < 1 {
		return usageError{fmt.Errorf("--days %d leaves nothing to add up: want at least 1", c.Days)}
	}
	return withConfiguredStore(ctx, app, c.configFlag, func(cfg *config.Config, s *sql.Store, _ clock) error {
		var only []sessions.Key
		if c.Session != "" {
			only = []sessions.Key{sessions.Key(c.Session)}
			if _, err := s.Sessions.Session(ctx, sessions.Key(c.Session)); err != nil {
				return noSession(c.Session, err)
			}
		}
		by := spend.CostsBy{Session: c.By == "session" || c.By == "conversation", Day: c.By == "day", Month: c.By == "month"}
		all, err := s.Ledger.Costs(ctx, only, time.Now().AddDate(0, 0, -c.Days), by)
		if err != nil {
			return err
		}
		if c.By == "conversation" {
			all = sumConversations(all)
		}
		head := "PERIOD (UTC)\tSESSION\tKIND\tPROMPT\tCACHED\tCOMPLETION\tCOST"
		sums := views(all, func(one spend.Cost) rows.Cost { return viewCost(one, by.Month) })
		if err := table(app.Stdout, c.JSON, sums, head, func(v rows.Cost) string { return costLine(v, cfg.LLM.Currency) }); err != nil {
			return err
		}
		if names := cfg.LLM.Unpriced(); len(names) > 0 && !c.JSON {
			fmt.Fprintf(app.Stdout, "no price configured for %s: tokens are counted, costs are not; see price_in, price_cached and price_out of llm.models\n",
				strings.Join(names, ", "))
		}
		return nil
	})
}

// sumConversations adds up the costs of a conversation's sessions, which its members have where each has a context of its own.
func sumConversations(bySession []spend.Cost) (sums []spend.Cost) {
	for _, one := range bySession {
		one.Key = one.Key.Group()
		i := slices.IndexFunc(sums, func(s spend.Cost) bool { return s.Key == one.Key && s.Kind == one.Kind })
		if i < 0 {
			sums = append(sums, one)
			continue
		}
		sum := &sums[i]
		sum.Turns, sum.Usage, sum.Cost = sum.Turns+one.Turns, sum.Usage.Add(one.Usage), sum.Cost+one.Cost
	}
	return sums
}

type callsCmd struct {
	List   callsListCmd   `cmd:"" default:"withargs" help:"List the counted calls to DingTalk's open API by month and API, or by day."`
	Resume callsResumeCmd `cmd:"" help:"Make counted calls again at once, after the organization bought more of them."`
}

type callsListCmd struct {
	listFlags
	Month string `placeholder:"YYYY-MM" help:"Only this month (default: all)."`
	By    string `enum:"month,day" default:"month" help:"Sum by month or by day (default: ${default})."`
}

// The row of all APIs has no api, and its month's limit.
type callView struct {
	Robot  sessions.RobotCode `json:"robot_code"`
	Period string             `json:"period"`
	API    string             `json:"api,omitempty"`
	Calls  int64              `json:"calls"`
	Limit  *int64             `json:"limit,omitempty"` // 0: no bound
	Left   *int64             `json:"left,omitempty"`  // absent without a bound
	Level  string             `json:"level,omitempty"`
	// RefusedUntil ends DingTalk's refusal of the month, if any.
	RefusedUntil *time.Time `json:"refused_until,omitempty"`
}

func viewCalls(c sessions.CallCount) callView {
	v := callView{Robot: c.Robot, Period: c.Period, API: c.API, Calls: c.Calls}
	if c.API == "" {
		v.Limit, v.Level = &c.Quota, calls.LevelOf(c.Calls, c.Quota).String()
		if left, bounded := (calls.Status{Calls: c.Calls, Quota: c.Quota}).Left(); bounded {
			v.Left = &left
		}
		if c.RefusedUntil.After(time.Now()) {
			v.RefusedUntil = &c.RefusedUntil
		}
	}
	return v
}

func (v callView) line(at clock) string {
	limit, left, refused := "-", "-", "-"
	if v.Limit != nil {
		limit = "no limit"
	}
	if v.Left != nil {
		limit, left = fmt.Sprint(*v.Limit), fmt.Sprint(*v.Left)
	}
	if v.RefusedUntil != nil {
		refused = at.cell(*v.RefusedUntil)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s", v.Period, orDash(string(v.Robot)), cmp.Or(v.API, "all"), v.Calls, limit, left, orDash(v.Level), refused)
}

// Run lists counts of calls, the newest period first.
func (c callsListCmd) Run(ctx context.Context, app *App) error {
	if _, err := time.Parse("2006-01", c.Month); c.Month != "" && err != nil {
		return usageError{fmt.Errorf("--month: got %q, want a month like 2026-11", c.Month)}
	}
	read := func(ctx context.Context, s *sql.Store, limit int) ([]sessions.CallCount, error) {
		return s.Calls.CallCounts(ctx, c.Month, c.By == "day", limit)
	}
	return listRows(ctx, app, c.listFlags, read, viewCalls, func(at clock) (string, func(callView) string) {
		head := "PERIOD (" + calls.Zone + ")\tBOT\tAPI\tCALLS\tLIMIT\tLEFT\tLEVEL\t" + at.head("REFUSED UNTIL")
		return head, func(v callView) string { return v.line(at) }
	})
}

type callsResumeCmd struct {
	configFlag
	JSON bool `help:"One JSON object."`
}

type resumedView struct {
	Month        string     `json:"month"`
	RefusedUntil *time.Time `json:"refused_until"` // null: the calls were not refused
	Replies      int        `json:"replies"`
}

// Run ends DingTalk's refusal of the month. Each replica reads that within seconds.
func (c callsResumeCmd) Run(ctx context.Context, app *App) error {
	return withManager(ctx, app, c.configFlag, func(m *manage.Manager, s *sql.Store, at clock) error {
		done, err := m.ResumeCalls(ctx, operator, calls.MonthAt(s.Calls.Now()))
		if errors.Is(err, sessions.ErrNotFound) {
			return usageError{errors.New("no call is counted in this month, so none was refused")}
		}
		if err != nil {
			return err
		}
		v := resumedView{Month: done.Month, Replies: done.Replies}
		if done.RefusedUntil.After(time.Now()) {
			v.RefusedUntil = &done.RefusedUntil
		}
		if c.JSON {
			return table(app.Stdout, true, []resumedView{v}, "", nil)
		}
		return v.write(app.Stdout, at, done)
	})
}

func (v resumedView) write(out io.Writer, at clock, done sessions.ResumedCalls) error {
	refused := "not refused"
	if v.RefusedUntil != nil {
		refused = at.full(*v.RefusedUntil)
	}
	if err := writeRows(out, [][2]string{{"month", v.Month}, {"was refused until", refused}, {"replies tried again", strconv.Itoa(v.Replies)}}); err != nil {
		return err
	}
	if left, bounded := (calls.Status{Calls: done.Calls, Quota: done.Quota}).Left(); bounded && left == 0 {
		_, err := fmt.Fprintln(out, wording.Count("%d call{|s} of dingtalk.api_calls_per_month {is|are} all made: a greater number there permits more", done.Quota))
		return err
	}
	return nil
}

func orDash[T ~string](text T) string {
	if text == "" {
		return "-"
	}
	return string(text)
}
