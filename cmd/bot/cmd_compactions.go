package main

import (
	"context"
	"encoding/json"
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
			return fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%d -> %d\t%d-%d\t%s\t%s\t%s", e.ID, when(e.CreatedAt), e.Key, e.Trigger, e.Outcome,
				e.TokensBefore, e.TokensAfter, e.StartSeq, e.EndSeq, e.FlushOutcome, e.Duration, excerpt(e.Error))
		})
	})
}

type compactionsShowCmd struct {
	configFlag
	ID      int64  `arg:"" help:"As bot compactions list shows it."`
	Session string `help:"Look among the attempts of this session only, for one that is too old to be found otherwise."`
	JSON    bool   `help:"As one JSON object."`
}

// Run shows an attempt.
func (c compactionsShowCmd) Run(ctx context.Context, app *App) error {
	return withStore(ctx, app, c.configFlag, func(s *sql.Store) error {
		newest, err := s.Compactions(ctx, sessions.Key(c.Session), showAmong)
		if err != nil {
			return err
		}
		for _, e := range newest {
			if e.ID == c.ID {
				return showCompaction(app.Stdout, e, c.JSON)
			}
		}
		return noCompaction(c.ID, c.Session, len(newest))
	})
}

// showAmong is how many of the newest attempts are looked through for one.
const showAmong = 1000

// noCompaction says what to do about an id that is not among the newest attempts.
func noCompaction(id int64, session string, looked int) error {
	switch {
	case looked < showAmong:
		return usageError{fmt.Errorf("there is no compaction %d; bot compactions list shows them", id)}
	case session == "":
		return usageError{fmt.Errorf("compaction %d is not among the newest %d; --session looks among those of one session", id, showAmong)}
	}
	return usageError{fmt.Errorf("compaction %d is not among the newest %d of the session; bot compactions list --json --limit shows older ones", id, showAmong)}
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
			{"events", fmt.Sprintf("%d-%d", e.StartSeq, e.EndSeq)},
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
