package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ebb/bot/config"
	"ebb/bot/manage"
	"ebb/cmd/bot/gateway"
	"ebb/compaction"
	"ebb/sessions"
	"ebb/sql"
)

// sessionsCmd is bot sessions.
type sessionsCmd struct {
	List   sessionsListCmd   `cmd:"" default:"withargs" help:"List sessions, the last active first."`
	Show   sessionsShowCmd   `cmd:"" help:"Show one session's state."`
	Export sessionsExportCmd `cmd:"" help:"Write one session's whole log, compacted events too: one JSON object a line, or a table."`
	Import sessionsImportCmd `cmd:"" help:"Take over a conversation that an older bot kept in a file."`
	Erase  sessionsEraseCmd  `cmd:"" help:"Wipe events from one session's log, and whatever was made from them."`
	Delete sessionsDeleteCmd `cmd:"" help:"Delete one session with all it has; what was learnt about people and groups stays."`
}

type sessionsListCmd struct{ listFlags }

// Run lists sessions.
func (c sessionsListCmd) Run(ctx context.Context, app *App) error {
	return listRows(ctx, app, c.listFlags, (*sql.Store).Sessions, viewSession, func(at clock) (string, func(sessionView) string) {
		return "SESSION\tTITLE\tTOKENS\tEVENTS\tCOMPACTIONS\tFLUSHES\t" + at.head("LAST ACTIVE"), func(s sessionView) string {
			return fmt.Sprintf("%s\t%s\t%d\t%d\t%d\t%d\t%s", s.Session, s.Title, s.TotalTokens, s.LastSeq, s.CompactionCount, s.FlushCount, at.cell(s.LastActiveAt))
		}
	})
}

type sessionsShowCmd struct {
	configFlag
	Key  string `arg:"" help:"The session's key, as bot sessions list shows it."`
	JSON bool   `help:"As one JSON object."`
}

// Run shows a session.
func (c sessionsShowCmd) Run(ctx context.Context, app *App) error {
	return withStore(ctx, app, c.configFlag, func(st *sql.Store, at clock) error {
		s, err := st.Session(ctx, sessions.Key(c.Key))
		if err != nil {
			return noSession(c.Key, err)
		}
		if c.JSON {
			return json.NewEncoder(app.Stdout).Encode(viewSession(s))
		}
		owner := "nobody"
		if s.Lease.Owner != "" {
			owner = string(s.Lease.Owner)
		}
		rows := [][2]string{
			{"session", string(s.Key)},
			{"title", s.Title},
			{"conversation", string(s.ConversationID)},
			{"context", fmt.Sprintf("%d tokens", s.TotalTokens)},
			{"events", fmt.Sprint(s.LastSeq)},
			{"generation", fmt.Sprintf("%d, from event %d", s.Gen, s.BaseSeq+1)},
			{"compacted through", fmt.Sprint(s.CompactedSeq)},
			{"flushed through", fmt.Sprint(s.FlushedSeq)},
			{"compactions", fmt.Sprint(s.CompactionCount)},
			{"last compaction", at.full(s.CompactedAt)},
			{"compaction error", s.CompactError},
			{"next attempt", at.full(s.CompactRetryAt)},
			{"flushes", fmt.Sprint(s.FlushCount)},
			{"maintenance today", fmt.Sprintf("%d tokens", s.SpentToday)},
			{"calibration", fmt.Sprintf("%.2f", s.CalibrationFactor)},
			{"own settings", s.Settings},
			{"lease", fmt.Sprintf("%s, term %d", owner, s.Lease.Term)},
			{"last active", at.full(s.LastActiveAt)},
			{"created", at.full(s.CreatedAt)},
		}
		return writeRows(app.Stdout, rows)
	})
}

type sessionsExportCmd struct {
	configFlag
	Key  string `arg:"" help:"The session's key, as bot sessions list shows it."`
	JSON bool   `help:"One JSON object a line."`
}

// exportPage bounds the events in memory.
const exportPage = 2000

// Run exports a session's log.
func (c sessionsExportCmd) Run(ctx context.Context, app *App) error {
	return withStore(ctx, app, c.configFlag, func(st *sql.Store, at clock) error {
		if _, err := st.Session(ctx, sessions.Key(c.Key)); err != nil {
			return noSession(c.Key, err)
		}
		head := "ID\tSEQ\t" + at.head("TIME") + "\tROLE\tWHO\tSTATE\tTEXT"
		for after := int64(0); ; {
			page, err := st.Events(ctx, sessions.Key(c.Key), after, exportPage)
			if err != nil || len(page) == 0 {
				return err
			}
			err = table(app.Stdout, c.JSON, views(page, viewEvent), head, func(e eventView) string {
				return fmt.Sprintf("%d\t%d\t%s\t%s\t%s\t%s\t%s", e.ID, e.Seq, at.cell(e.said()), e.Role, e.SenderNick, e.State, excerpt(e.Content))
			})
			if err != nil {
				return err
			}
			after, head = page[len(page)-1].ID, "" // the head appears once
		}
	})
}

// noSession explains an unknown key.
func noSession(key string, err error) error {
	if errors.Is(err, sessions.ErrNotFound) {
		return usageError{fmt.Errorf("there is no session %q; bot sessions list shows the keys", key)}
	}
	return err
}

// withStore calls do with the configured database, and a clock in the configured zone. From then on the output is
// [printable], because members and models wrote parts of it.
func withStore(ctx context.Context, app *App, f configFlag, do func(*sql.Store, clock) error) error {
	return withConfiguredStore(ctx, app, f, func(_ *config.Config, s *sql.Store, at clock) error { return do(s, at) })
}

// withConfiguredStore is withStore for commands that also read the config.
func withConfiguredStore(ctx context.Context, app *App, f configFlag, do func(*config.Config, *sql.Store, clock) error) error {
	return withDatabase(ctx, app, f, func(cfg *config.Config, url string) error {
		zone, err := time.LoadLocation(cfg.Agent.Timezone)
		if err != nil {
			return fmt.Errorf("agent.timezone: %w", err)
		}
		s, err := sql.Open(ctx, sql.Options{URL: url, MaxConns: 2})
		if err != nil {
			return gateway.DatabaseFault(err)
		}
		defer s.Close()
		app.Stdout = &printable{out: app.Stdout}
		return needSchema(ctx, url, do(cfg, s, clock{zone}))
	})
}

// operator is the actor of the command line.
var operator = manage.Actor{Role: manage.Operator}

// newManager returns the actions on a database.
func newManager(cfg *config.Config, s *sql.Store) *manage.Manager {
	return manage.New(manage.Config{Rights: s, Operators: s, Settings: func(session sessions.Session) compaction.Settings {
		settings, groups := cfg.Policies()
		if own, ok := groups[session.ConversationID]; ok {
			settings = own
		}
		if own, err := cfg.Own(session.ConversationID, session.Settings); err == nil && session.Settings != "" {
			settings = own
		}
		return settings
	}})
}

// withManager calls do with the actions on the configured database.
func withManager(ctx context.Context, app *App, f configFlag, do func(m *manage.Manager, s *sql.Store, at clock) error) error {
	return withConfiguredStore(ctx, app, f, func(cfg *config.Config, s *sql.Store, at clock) error { return do(newManager(cfg, s), s, at) })
}

// needSchema replaces an error by the advice to migrate, if the schema is older than the program. The server's error
// would name missing tables and columns.
func needSchema(ctx context.Context, url string, err error) error {
	if usage := (usageError{}); err == nil || errors.As(err, &usage) {
		return err
	}
	if old := gateway.OldSchema(ctx, url); errors.Is(old, gateway.ErrOldSchema) {
		return old
	}
	return err
}
