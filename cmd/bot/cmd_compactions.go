package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"ebb/bot/config"
	"ebb/bot/manage"
	"ebb/bot/rows"
	"ebb/bot/wording"
	"ebb/cmd/bot/gateway"
	"ebb/sessions"
	"ebb/sql"
)

type compactionsCmd struct {
	List compactionsListCmd `cmd:"" default:"withargs" help:"List attempts at compactions, the newest first."`
	Show compactionsShowCmd `cmd:"" help:"Show one attempt."`
	Cost compactionsCostCmd `cmd:"" help:"Sum tokens and price of answers, summaries, flushes, digests and consolidations."`
	Undo compactionsUndoCmd `cmd:"" help:"Take the newest compaction of a session back. The session then rests until it has grown."`
}

type compactionsListCmd struct {
	listFlags
	Session string `help:"Only this session."`
}

// Run lists attempts.
func (c compactionsListCmd) Run(ctx context.Context, app *App) error {
	return withConfiguredStore(ctx, app, c.configFlag, func(cfg *config.Config, s *sql.Store, at clock) error {
		if c.Session != "" {
			if _, err := s.Sessions.Session(ctx, sessions.Key(c.Session)); err != nil {
				return noSession(c.Session, err)
			}
		}
		all, err := s.Compactions.Compactions(ctx, sessions.Key(c.Session), c.Limit)
		if err != nil {
			return err
		}
		ids := make([]int64, len(all))
		for i, e := range all {
			ids[i] = e.ID
		}
		ends, err := s.Compactions.CompactionEnds(ctx, ids)
		if err != nil {
			return err
		}
		list := views(all, func(e sessions.LogEntry) rows.Compaction { return viewCompaction(e, ends[e.ID]) })
		head := "ID\t" + at.head("TIME") + "\tSESSION\tTRIGGER\tPOLICY\tMODE\tOUTCOME\tTOKENS\tEVENTS\tFLUSH\tTOOK\tCOST\tERROR"
		return table(app.Stdout, c.JSON, list, head, func(e rows.Compaction) string {
			return fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d -> %d\t%s\t%s\t%s\t%s\t%s", e.ID, at.cell(e.CreatedAt), e.SessionKey, e.Trigger,
				e.Policy, e.Mode, outcomeOf(e), e.TokensBefore, e.TokensAfter, eventsOf(e), e.FlushOutcome, durationOf(e), costOf(e, cfg.LLM.Currency), lastCause(e.Error))
		})
	})
}

type compactionsUndoCmd struct {
	configFlag
	Session string `arg:"" help:"The session's key, as bot sessions list shows it."`
}

// Run reverts a compaction. Bots may continue to serve.
func (c compactionsUndoCmd) Run(ctx context.Context, app *App) error {
	return withManager(ctx, app, c.configFlag, func(m *manage.Manager, s *sql.Store, _ clock) error {
		session, err := s.Sessions.Session(ctx, sessions.Key(c.Session))
		if err != nil {
			return noSession(c.Session, err)
		}
		e, err := m.Undo(ctx, operator, session)
		if errors.Is(err, sessions.ErrNotFound) {
			return usageError{fmt.Errorf("session %s has no compaction to undo; bot compactions list --session shows them", c.Session)}
		}
		if err != nil {
			return ofSession(c.Session, err)
		}
		if session, err = s.Sessions.Session(ctx, session.Key); err != nil {
			return ofSession(c.Session, err)
		}
		rest := ""
		if grown := m.Settings(session).RestsUntil(session, session.TotalTokens); grown > 0 {
			rest = wording.Count("; it rests until it has grown to %d token{|s}", grown)
		}
		_, err = fmt.Fprintln(app.Stdout, wording.Count("the last compaction is undone: events %d-%d are back in full, %d -> %d token{|s}",
			e.StartSeq, e.EndSeq, e.TokensBefore, e.TokensAfter)+rest)
		return err
	})
}

type compactionsShowCmd struct {
	configFlag
	ID   int64 `arg:"" help:"Number of the attempt, as bot compactions list shows it."`
	JSON bool  `help:"As one JSON object."`
}

// Run shows an attempt.
func (c compactionsShowCmd) Run(ctx context.Context, app *App) error {
	return withConfiguredStore(ctx, app, c.configFlag, func(cfg *config.Config, s *sql.Store, at clock) error {
		m := gateway.Manager(cfg, s)
		e, err := s.Compactions.Compaction(ctx, c.ID)
		if errors.Is(err, sessions.ErrNotFound) {
			return usageError{fmt.Errorf("there is no compaction %d; bot compactions list shows them", c.ID)}
		}
		if err != nil {
			return err
		}
		session, err := s.Sessions.Session(ctx, e.Key)
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return err
		}
		session.Key = e.Key // also of a deleted session, whose type is unknown
		return m.View(ctx, operator, session, func(ctx context.Context) error { return c.show(ctx, app, s, at, e, cfg.LLM.Currency) })
	})
}

func (c compactionsShowCmd) show(ctx context.Context, app *App, s *sql.Store, at clock, e sessions.LogEntry, currency string) error {
	ends, err := s.Compactions.CompactionEnds(ctx, []int64{e.ID})
	if err != nil {
		return err
	}
	receipts, err := s.Flushes.CompactionFlushes(ctx, e.Key, e.ID)
	if err != nil {
		return err
	}
	view := viewCompaction(e, ends[e.ID])
	view.Flushes = viewReceipts(receipts)
	if view.SummaryID > 0 {
		summary, err := s.Compactions.Summary(ctx, e.Key, view.SummaryID)
		if err != nil && !errors.Is(err, sessions.ErrNotFound) {
			return err
		}
		view.Summary = summary.Text
	}
	return showCompaction(app.Stdout, view, at, currency, c.JSON)
}

// showCompaction lists the figures first and the summary last, since a summary has many lines.
func showCompaction(out io.Writer, e rows.Compaction, at clock, currency string, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(e)
	}
	lines := [][2]string{
		{"id", fmt.Sprint(e.ID)},
		{"session", string(e.SessionKey)},
		{"time", at.full(e.CreatedAt)},
		{"trigger", string(e.Trigger)},
		{"requested by", e.RequestedBy},
		{"outcome", string(e.Outcome)},
		{"undone", at.full(e.UndoneAt)},
		{"erased", at.full(e.ErasedAt)},
		{"error", e.Error},
		{"policy", e.Policy},
		{"mode", e.Mode},
		{"model", e.Model},
		{"focus", e.Focus},
		{"tokens", fmt.Sprintf("%d -> %d (%s)", e.TokensBefore, e.TokensAfter, freedBy(e))},
		{"events", eventsOf(e)},
		{"flush", string(e.FlushOutcome)},
		{"took", durationOf(e).String()},
		{"cost", costOf(e, currency)},
		{"usage", fmt.Sprintf("%d in (%d cached), %d out", e.Usage.Prompt, e.Usage.Cached, e.Usage.Completion)},
	}
	for _, r := range e.Flushes {
		lines = append(lines, [2]string{"receipt", receiptLine(r)})
	}
	lines = append(lines, auditRows(string(e.Audit))...)
	if e.SummaryID > 0 {
		lines = append(lines, [2]string{"newest summary", fmt.Sprint(e.SummaryID)})
	}
	if err := writeRows(out, lines); err != nil || e.Summary == "" {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", e.Summary)
	return err
}

// freedBy describes the tokens that an attempt freed; an undo restores them.
func freedBy(e rows.Compaction) string {
	if n := e.TokensAfter - e.TokensBefore; n > 0 {
		return fmt.Sprintf("grew by %d", n)
	}
	return fmt.Sprintf("%d freed", e.TokensBefore-e.TokensAfter)
}

func outcomeOf(e rows.Compaction) string {
	switch {
	case !e.UndoneAt.IsZero():
		return string(e.Outcome) + ", undone"
	case !e.ErasedAt.IsZero():
		return string(e.Outcome) + ", erased"
	default:
		return string(e.Outcome)
	}
}

// costOf is a dash where no model was called, or none has a price.
func costOf(e rows.Compaction, currency string) string {
	if e.Cost == 0 {
		return "-"
	}
	return wording.Cost(e.Cost, currency)
}

func durationOf(e rows.Compaction) time.Duration {
	return time.Duration(e.DurationMS) * time.Millisecond
}

func eventsOf(e rows.Compaction) string {
	if e.EndSeq < e.StartSeq {
		return "-"
	}
	return fmt.Sprintf("%d-%d", e.StartSeq, e.EndSeq)
}
