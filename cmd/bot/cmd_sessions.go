package main

import (
	"context"
	"encoding/json"
	"fmt"

	"ebb/bot/manage"
	"ebb/bot/rows"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sql"
)

type sessionsCmd struct {
	List   sessionsListCmd   `cmd:"" default:"withargs" help:"List sessions, the last active first."`
	Show   sessionsShowCmd   `cmd:"" help:"Show one session's state."`
	Export sessionsExportCmd `cmd:"" help:"Write one session's whole log, compacted events too, as a table or as JSON."`
	Import sessionsImportCmd `cmd:"" help:"Take over a conversation that an older bot kept in a file."`
	Erase  sessionsEraseCmd  `cmd:"" help:"Wipe events from one session's log, and whatever was made from them."`
	Delete sessionsDeleteCmd `cmd:"" help:"Delete one session with all it has; what was learnt about people and groups stays."`
}

type sessionsListCmd struct{ listFlags }

// Run lists sessions.
func (c sessionsListCmd) Run(ctx context.Context, app *App) error {
	read := func(ctx context.Context, s *sql.Store, limit int) ([]sessions.Session, error) {
		return s.Lists.Sessions(ctx, limit)
	}
	return listRows(ctx, app, c.listFlags, read, rows.OfSession, func(at clock) (string, func(rows.Session) string) {
		return "SESSION\tTITLE\tTOKENS\tEVENTS\tCOMPACTIONS\tFLUSHES\t" + at.head("LAST ACTIVE"), func(s rows.Session) string {
			return fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d\t%s", s.SessionKey, s.Title, s.TotalTokens, s.LastSeq, s.CompactionCount, s.FlushCount, at.cell(s.LastActiveAt))
		}
	})
}

type keyFlags struct {
	configFlag
	Key string `arg:"" help:"The session's key, as bot sessions list shows it."`
}

// view puts a private chat in the audit before read.
func (f keyFlags) view(ctx context.Context, app *App, read func(context.Context, *sql.Store, sessions.Session, clock) error) error {
	return withManager(ctx, app, f.configFlag, func(m *manage.Manager, st *sql.Store, at clock) error {
		s, err := st.Sessions.Session(ctx, sessions.Key(f.Key))
		if err != nil {
			return noSession(f.Key, err)
		}
		return m.View(ctx, operator, s, func(ctx context.Context) error { return read(ctx, st, s, at) })
	})
}

type sessionsShowCmd struct {
	keyFlags
	JSON bool `help:"As one JSON object."`
}

// Run shows a session.
func (c sessionsShowCmd) Run(ctx context.Context, app *App) error {
	return c.view(ctx, app, func(ctx context.Context, st *sql.Store, s sessions.Session, at clock) error {
		withheld, err := st.Withheld.CountWithheld(ctx, s.Key, "")
		if err != nil {
			return err
		}
		if c.JSON {
			v := rows.OfSession(s)
			v.WithheldEvents = &withheld.Events
			return json.NewEncoder(app.Stdout).Encode(v)
		}
		owner := "nobody"
		if s.Lease.Owner != "" {
			owner = string(s.Lease.Owner)
		}
		lines := [][2]string{
			{"session", string(s.Key)},
			{"title", s.Title},
			{"conversation", string(s.ConversationID)},
			{"context", wording.Count("%d token{|s}", s.TotalTokens)},
			{"events", fmt.Sprint(s.LastSeq)},
			{"generation", fmt.Sprintf("%d, from event %d", s.Gen, s.BaseSeq+1)},
			{"compacted through", fmt.Sprint(s.CompactedSeq)},
			{"flushed through", fmt.Sprint(s.FlushedSeq)},
			{"kept from a model", wording.Count("%d event{|s}, %d summar{y|ies}, %d fact{|s}", withheld.Events, withheld.Summaries, withheld.Facts)},
			{"compactions", fmt.Sprint(s.CompactionCount)},
			{"last compaction", at.full(s.CompactedAt)},
			{"compaction error", s.CompactError},
			{"next attempt", at.full(s.CompactRetryAt)},
			{"flushes", fmt.Sprint(s.FlushCount)},
			{"maintenance today", wording.Count("%d token{|s}", s.SpentToday)},
			{"calibration", fmt.Sprintf("%.2f", s.CalibrationFactor)},
			{"own settings", s.Settings},
			{"lease", fmt.Sprintf("%s, term %d", owner, s.Lease.Term)},
			{"last active", at.full(s.LastActiveAt)},
			{"created", at.full(s.CreatedAt)},
		}
		return writeRows(app.Stdout, lines)
	})
}

type sessionsExportCmd struct {
	keyFlags
	JSON bool `help:"One JSON object a line."`
}

const exportPage = 2000

// Run exports a session's log.
func (c sessionsExportCmd) Run(ctx context.Context, app *App) error {
	return c.view(ctx, app, func(ctx context.Context, st *sql.Store, _ sessions.Session, at clock) error {
		head := "ID\tSEQ\t" + at.head("TIME") + "\tROLE\tWHO\tSTATE\tTEXT"
		for after := int64(0); ; {
			page, err := st.Lists.Events(ctx, sessions.Key(c.Key), after, exportPage)
			if err != nil || len(page) == 0 {
				return ofSession(c.Key, err)
			}
			err = table(app.Stdout, c.JSON, views(page, rows.OfEvent), head, func(e rows.Event) string {
				return fmt.Sprintf("%d\t%d\t%s\t%s\t%s\t%s\t%s", e.ID, e.Seq, at.cell(e.SaidAt()), e.Role, e.SenderNick, e.State, excerpt(e.Content))
			})
			if err != nil {
				return err
			}
			after, head = page[len(page)-1].ID, "" // the head appears once
		}
	})
}
