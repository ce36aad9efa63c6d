package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"ebb/sessions"
	"ebb/sql"
)

// compactionsCmd is bot compactions.
type compactionsCmd struct {
	List compactionsListCmd `cmd:"" default:"withargs" help:"List attempts at compactions, the newest first."`
	Show compactionsShowCmd `cmd:"" help:"Show one attempt."`
}

type compactionsListCmd struct {
	listFlags
	Session string `help:"Of this session only."`
}

// Run lists attempts.
func (c compactionsListCmd) Run(ctx context.Context, app *App) error {
	return withStore(ctx, app, c.configFlag, func(s *sql.Store) error {
		all, err := s.Compactions(ctx, sessions.Key(c.Session), c.Limit)
		if err != nil {
			return err
		}
		return table(app.Stdout, c.JSON, all, "ID\tTIME\tSESSION\tTRIGGER\tOUTCOME\tTOKENS\tEVENTS\tFLUSH\tTOOK\tERROR", func(e sessions.LogEntry) string {
			return fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%d -> %d\t%s\t%s\t%s\t%s", e.ID, when(e.CreatedAt), e.Key, e.Trigger, e.Outcome,
				e.TokensBefore, e.TokensAfter, eventRange(e), e.FlushOutcome, e.Duration, excerpt(e.Error))
		})
	})
}

type compactionsShowCmd struct {
	configFlag
	ID   int64 `arg:"" help:"As bot compactions list shows it."`
	JSON bool  `help:"As one JSON object."`
}

// Run shows an attempt.
func (c compactionsShowCmd) Run(ctx context.Context, app *App) error {
	return withStore(ctx, app, c.configFlag, func(s *sql.Store) error {
		e, err := s.Compaction(ctx, c.ID)
		if errors.Is(err, sessions.ErrNotFound) {
			return usageError{fmt.Errorf("there is no compaction %d; bot compactions list shows them", c.ID)}
		}
		if err != nil {
			return err
		}
		return showCompaction(app.Stdout, e, c.JSON)
	})
}

func showCompaction(out io.Writer, e sessions.LogEntry, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(e)
	}
	return write(out, func(w io.Writer) {
		for _, r := range [][2]string{
			{"id", fmt.Sprint(e.ID)},
			{"session", string(e.Key)},
			{"time", when(e.CreatedAt)},
			{"trigger", e.Trigger},
			{"outcome", e.Outcome},
			{"error", e.Error},
			{"policy", e.Policy},
			{"mode", e.Mode},
			{"model", e.Model},
			{"focus", e.Focus},
			{"tokens", fmt.Sprintf("%d -> %d", e.TokensBefore, e.TokensAfter)},
			{"events", eventRange(e)},
			{"flush", e.FlushOutcome},
			{"audit", e.Audit},
			{"took", e.Duration.String()},
			{"cost", fmt.Sprintf("%.6f", e.Cost)},
			{"usage", fmt.Sprintf("%d in (%d cached), %d out", e.Usage.Prompt, e.Usage.Cached, e.Usage.Completion)},
		} {
			fmt.Fprintf(w, "%s\t%s\n", r[0], r[1])
		}
	})
}

// eventRange is the events that a compaction took out of the view.
func eventRange(e sessions.LogEntry) string {
	if e.EndSeq < e.StartSeq {
		return "-"
	}
	return fmt.Sprintf("%d-%d", e.StartSeq, e.EndSeq)
}
