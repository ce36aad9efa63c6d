package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

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
		head := "ID\tTIME\tSESSION\tTRIGGER\tPOLICY\tMODE\tOUTCOME\tTOKENS\tEVENTS\tFLUSH\tTOOK\tERROR"
		return table(app.Stdout, c.JSON, views(all, viewCompaction), head, func(e compactionView) string {
			return fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d -> %d\t%s\t%s\t%s\t%s", e.ID, when(e.CreatedAt), e.Session, e.Trigger,
				e.Policy, e.Mode, e.came(), e.TokensBefore, e.TokensAfter, e.events(), e.FlushOutcome, e.took(), excerpt(e.Error))
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
		return showCompaction(app.Stdout, viewCompaction(e), c.JSON)
	})
}

func showCompaction(out io.Writer, e compactionView, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(e)
	}
	rows := [][2]string{
		{"id", fmt.Sprint(e.ID)},
		{"session", string(e.Session)},
		{"time", when(e.CreatedAt)},
		{"trigger", e.Trigger},
		{"outcome", e.Outcome},
		{"undone", when(e.UndoneAt)},
		{"error", e.Error},
		{"policy", e.Policy},
		{"mode", e.Mode},
		{"model", e.Model},
		{"focus", e.Focus},
		{"tokens", fmt.Sprintf("%d -> %d (%d freed)", e.TokensBefore, e.TokensAfter, e.TokensBefore-e.TokensAfter)},
		{"events", e.events()},
		{"flush", e.FlushOutcome},
		{"took", e.took().String()},
		{"cost", fmt.Sprintf("%.6f", e.Cost)},
		{"usage", fmt.Sprintf("%d in (%d cached), %d out", e.Usage.Prompt, e.Usage.Cached, e.Usage.Completion)},
	}
	return writeRows(out, append(rows, auditRows(string(e.Audit))...))
}

// came is what came of an attempt, in a table.
func (e compactionView) came() string {
	if !e.UndoneAt.IsZero() {
		return e.Outcome + ", undone"
	}
	return e.Outcome
}

func (e compactionView) took() time.Duration { return time.Duration(e.DurationMS) * time.Millisecond }

// events is what a compaction took out of the view.
func (e compactionView) events() string {
	if e.EndSeq < e.StartSeq {
		return "-"
	}
	return fmt.Sprintf("%d-%d", e.StartSeq, e.EndSeq)
}
