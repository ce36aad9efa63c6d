package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ebb/bot/config"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/spend"
)

// compactionsCostCmd is bot compactions cost.
type compactionsCostCmd struct {
	configFlag
	Session string `help:"Only this session."`
	By      string `enum:"month,day,session,total" default:"month" help:"Sum by month, day or session, or in total (default: ${default})."`
	Days    int    `default:"366" help:"Number of days, up to today (default: ${default})."`
	JSON    bool   `help:"One JSON object a line."`
}

// costView is a sum in the output of --json. The cost is in the unit of the configured prices; null if no model had a
// price.
type costView struct {
	Period           string       `json:"period,omitempty"`
	Session          sessions.Key `json:"session,omitempty"`
	Kind             string       `json:"kind"`
	PromptTokens     int          `json:"prompt_tokens"`
	CachedTokens     int          `json:"cached_tokens"`
	CompletionTokens int          `json:"completion_tokens"`
	Cost             *float64     `json:"cost"`
}

func viewCost(c spend.Cost) costView {
	v := costView{
		Period: c.Period, Session: c.Key, Kind: c.Kind, PromptTokens: c.Usage.Prompt, CachedTokens: c.Usage.Cached,
		CompletionTokens: c.Usage.Completion,
	}
	if c.Cost > 0 {
		v.Cost = &c.Cost
	}
	return v
}

// line returns a row of the table.
func (v costView) line() string {
	cost := "no price"
	if v.Cost != nil {
		cost = fmt.Sprintf("%.4f", *v.Cost)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%d\t%d\t%d\t%s", orDash(v.Period), orDash(string(v.Session)), v.Kind, v.PromptTokens, v.CachedTokens,
		v.CompletionTokens, cost)
}

// Run sums costs, the newest period first.
func (c compactionsCostCmd) Run(ctx context.Context, app *App) error {
	if c.Days < 1 {
		return usageError{fmt.Errorf("--days %d leaves nothing to add up: want at least 1", c.Days)}
	}
	return withConfiguredStore(ctx, app, c.configFlag, func(cfg *config.Config, s *sql.Store, _ clock) error {
		if c.Session != "" {
			if _, err := s.Session(ctx, sessions.Key(c.Session)); err != nil {
				return noSession(c.Session, err)
			}
		}
		by := spend.CostsBy{Session: c.By == "session", Day: c.By == "day", Month: c.By == "month"}
		all, err := s.Costs(ctx, sessions.Key(c.Session), time.Now().AddDate(0, 0, -c.Days), by)
		if err != nil {
			return err
		}
		if err := table(app.Stdout, c.JSON, views(all, viewCost), "PERIOD (UTC)\tSESSION\tKIND\tPROMPT\tCACHED\tCOMPLETION\tCOST", costView.line); err != nil {
			return err
		}
		if names := cfg.LLM.Unpriced(); len(names) > 0 && !c.JSON {
			fmt.Fprintf(app.Stdout, "no price configured for %s: tokens are counted, costs are not; see price_in, price_cached and price_out of llm.models\n",
				strings.Join(names, ", "))
		}
		return nil
	})
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
