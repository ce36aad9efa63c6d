package main

import (
	"context"
	"fmt"

	"ebb/bot/rows"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql"
)

type restartsCmd struct{ listFlags }

// Run lists the reports, the newest first.
func (c restartsCmd) Run(ctx context.Context, app *App) error {
	return listRows(ctx, app, c.listFlags, readRestarts, rows.OfRestart, func(at clock) (string, func(rows.Restart) string) {
		head := at.head("STARTED") + "\tSTOPPED\tENDING\tREPLICA\tANSWERED\tDRAINED\tFLUSHED\tDEBT\tRESUMED\tREDELIVERED\tDOUBLED\tLOST"
		return head, func(r rows.Restart) string {
			f, ending := r.Figures, r.Ending
			if ending == sessions.Running {
				ending = "running"
			}
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d", at.cell(r.StartedAt), at.cell(r.StoppedAt), ending, r.Replica,
				f.Answered, f.Drained, f.Flushed, f.Debt, f.Resumed, f.Redelivered, f.Doubled, f.Lost)
		}
	})
}

func readRestarts(ctx context.Context, s *sql.Store, limit int) ([]sessions.Restart, error) {
	list, _, err := s.Pages().Restarts(ctx, pages.Page{Limit: limit})
	return list, err
}
