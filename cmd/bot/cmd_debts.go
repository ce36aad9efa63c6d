package main

import (
	"context"
	"errors"
	"fmt"

	"ebb/bot/manage"
	"ebb/bot/rows"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/admin"
)

type debtsCmd struct{ listFlags }

func viewDebt(d admin.Debt) rows.Debt {
	return rows.Debt{SessionKey: d.Key, FromSeq: d.From, ThroughSeq: d.Through, Failures: d.Failures, Reason: d.Reason, CreatedAt: d.CreatedAt}
}

// Run lists owed flushes, the oldest first.
func (c debtsCmd) Run(ctx context.Context, app *App) error {
	read := func(ctx context.Context, s *sql.Store, limit int) ([]admin.Debt, error) {
		return s.Lists.Debts(ctx, nil, limit)
	}
	return listRows(ctx, app, c.listFlags, read, viewDebt, func(at clock) (string, func(rows.Debt) string) {
		return at.head("SINCE") + "\tSESSION\tEVENTS\tFAILURES\tREASON", func(d rows.Debt) string {
			return fmt.Sprintf("%s\t%s\t%d-%d\t%d\t%s", at.cell(d.CreatedAt), d.SessionKey, d.FromSeq+1, d.ThroughSeq, d.Failures, lastCause(d.Reason))
		}
	})
}

type deadLettersCmd struct {
	List  deadLettersListCmd  `cmd:"" default:"withargs" help:"List messages that were set aside after they broke their turn three times, the newest first."`
	Retry deadLettersRetryCmd `cmd:"" help:"Have a message answered after all, as if it came now."`
}

type deadLettersListCmd struct{ listFlags }

// Run lists dead letters.
func (c deadLettersListCmd) Run(ctx context.Context, app *App) error {
	read := func(ctx context.Context, s *sql.Store, limit int) ([]sessions.Event, error) {
		return s.Lists.DeadLetters(ctx, nil, limit)
	}
	return listRows(ctx, app, c.listFlags, read, rows.OfEvent, func(at clock) (string, func(rows.Event) string) {
		return "ID\t" + at.head("TIME") + "\tSESSION\tWHO\tTEXT", func(e rows.Event) string {
			return fmt.Sprintf("%d\t%s\t%s\t%s\t%s", e.ID, at.cell(e.SaidAt()), e.SessionKey, e.SenderNick, excerpt(e.Content))
		}
	})
}

type deadLettersRetryCmd struct {
	configFlag
	ID int64 `arg:"" help:"Number of the message, as bot deadletters list shows it."`
}

// Run queues a dead letter again.
func (c deadLettersRetryCmd) Run(ctx context.Context, app *App) error {
	return withManager(ctx, app, c.configFlag, func(m *manage.Manager, _ *sql.Store, _ clock) error {
		key, err := m.RetryDeadLetter(ctx, operator, "", c.ID)
		if errors.Is(err, sessions.ErrNotFound) {
			return usageError{fmt.Errorf("there is no dead letter %d; bot deadletters list shows them", c.ID)}
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(app.Stdout, "message %d of session %s waits for an answer\n", c.ID, key)
		return err
	})
}
