package main

import (
	"context"
	"fmt"
	"time"

	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sql"
)

type restartsCmd struct{ listFlags }

type restartView struct {
	Replica   sessions.ReplicaID `json:"replica"`
	StartedAt time.Time          `json:"started_at"`
	StoppedAt time.Time          `json:"stopped_at,omitzero"`
	Ending    sessions.Ending    `json:"ending"`
	sessions.RestartFigures
}

// Run lists the reports, the newest first.
func (c restartsCmd) Run(ctx context.Context, app *App) error {
	return listRows(ctx, app, c.listFlags, readRestarts, viewRestart, func(at clock) (string, func(restartView) string) {
		head := at.head("STARTED") + "\tSTOPPED\tENDING\tREPLICA\tANSWERED\tDRAINED\tFLUSHED\tDEBT\tRESUMED\tREDELIVERED\tDOUBLED\tLOST"
		return head, func(r restartView) string {
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d", at.cell(r.StartedAt), at.cell(r.StoppedAt), r.Ending, r.Replica,
				r.Answered, r.Drained, r.Flushed, r.Debt, r.Resumed, r.Redelivered, r.Doubled, r.Lost)
		}
	})
}

func readRestarts(s *sql.Store, ctx context.Context, limit int) ([]sessions.Restart, error) { //nolint:revive // the form of a method
	list, _, err := s.Pages().Restarts(ctx, pages.Page{Limit: limit})
	return list, err
}

func viewRestart(r sessions.Restart) restartView {
	if r.Ending == sessions.Running {
		r.Ending = "running"
	}
	return restartView{
		Replica: r.Replica, StartedAt: r.StartedAt, StoppedAt: r.StoppedAt, Ending: r.Ending, RestartFigures: r.Figures,
	}
}
