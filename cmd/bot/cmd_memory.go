package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"ebb/bot/config"
	"ebb/bot/manage"
	"ebb/bot/rows"
	"ebb/bot/schedule"
	"ebb/bot/wording"
	"ebb/cmd/bot/gateway"
	"ebb/memory"
	"ebb/memory/show"
	"ebb/sessions"
	"ebb/sql"
	"ebb/sql/facts"
)

type memoryCmd struct {
	List    memoryListCmd    `cmd:"" default:"withargs" help:"List memories, the newest first."`
	Show    memoryShowCmd    `cmd:"" help:"Show one memory: its former values, who said it and where, and the flush that saved it."`
	Export  memoryExportCmd  `cmd:"" help:"Export all facts and messages of a person, as Markdown or one JSON object a line."`
	Forget  memoryForgetCmd  `cmd:"" help:"Delete a memory, the memory of a session, or everything about a person."`
	Promote memoryPromoteCmd `cmd:"" help:"Make a group's memory one of the whole team."`
}

type memoryListCmd struct {
	listFlags
	Scope   string `enum:"user,group,team,session,all" default:"all" help:"Only this scope: user, group, team or session."`
	Session string `help:"Said in this session only."`
	Person  string `help:"About this person, or said by them: a staff id."`
	All     bool   `help:"Superseded and expired ones too."`
}

// Run lists memories.
func (c memoryListCmd) Run(ctx context.Context, app *App) error {
	if c.Limit < 1 {
		return usageError{fmt.Errorf("--limit %d shows nothing: want at least 1", c.Limit)}
	}
	return withManager(ctx, app, c.configFlag, func(m *manage.Manager, s *sql.Store, at clock) error {
		if c.Session != "" {
			if _, err := s.Sessions.Session(ctx, sessions.Key(c.Session)); err != nil {
				return noSession(c.Session, err)
			}
		}
		if c.Person != "" {
			if err := m.IsKept(ctx, operator, sessions.UserID(c.Person)); err != nil {
				return noPerson(c.Person, err)
			}
		}
		f := facts.MemoryFilter{Session: sessions.Key(c.Session), Person: sessions.UserID(c.Person), Every: c.All}
		if c.Scope != "all" {
			f.Scope = memory.Scope(c.Scope)
		}
		all, total, err := s.Facts.Memories(ctx, f, c.Limit)
		if err != nil {
			return err
		}
		head := "ID\tSCOPE\tOF\tKIND\t" + at.head("SAID") + "\tBY\tABOUT\tSTATE\tFACT"
		err = table(app.Stdout, c.JSON, views(all, rows.OfMemory), head, func(m rows.Memory) string {
			return fmt.Sprintf("%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s",
				m.ID, m.Scope, m.ScopeID, m.Kind, at.cell(memorySaid(m)), formatPerson(m.SaidBy, m.SaidByNick), formatPerson(m.SubjectID, m.SubjectNick), memoryState(m, time.Now()), excerpt(m.Content))
		})
		if err == nil && total > len(all) && !c.JSON {
			_, err = fmt.Fprintln(app.Stderr, wording.Count("bot: %d of %d memor{y|ies}; --limit shows more", len(all), total))
		}
		return err
	})
}

func formatPerson(id sessions.UserID, nick string) string {
	return orDash(sessions.UserID(memory.PersonOf(id, nick)))
}

type memoryShowCmd struct {
	configFlag
	ID   int64 `arg:"" help:"Number of the memory, as bot memory list shows it."`
	JSON bool  `help:"As one JSON object."`
}

// Run shows a memory.
func (c memoryShowCmd) Run(ctx context.Context, app *App) error {
	return withManager(ctx, app, c.configFlag, func(manager *manage.Manager, s *sql.Store, at clock) error {
		m, chain, err := s.Facts.MemoryByID(ctx, c.ID)
		if err != nil {
			return noMemory(c.ID, err)
		}
		return manager.ViewFact(ctx, operator, m, chain, func(ctx context.Context) error { return c.show(ctx, app, s, at, m, chain) })
	})
}

func (c memoryShowCmd) show(ctx context.Context, app *App, s *sql.Store, at clock, m memory.Memory, chain []memory.Memory) error {
	v := memoryShown{Memory: rows.OfMemory(m), History: views(chain, rows.OfMemory)}
	switch r, err := s.Facts.ReceiptOf(ctx, m); {
	case err == nil:
		v.Flush = &flushView{ID: r.ID, Trigger: string(r.Trigger), Model: r.Model, FromSeq: r.From, ThroughSeq: r.Through, CreatedAt: r.CreatedAt}
	case !errors.Is(err, sessions.ErrNotFound):
		return err
	}
	if c.JSON {
		return json.NewEncoder(app.Stdout).Encode(v)
	}
	return v.write(app.Stdout, at)
}

func noMemory(id int64, err error) error {
	if errors.Is(err, sessions.ErrNotFound) {
		return usageError{fmt.Errorf("there is no memory %d; bot memory list shows them", id)}
	}
	return err
}

type memoryShown struct {
	rows.Memory
	Flush   *flushView    `json:"flush"`   // the flush that saved it; null for a turn
	History []rows.Memory `json:"history"` // all values of the fact, the oldest first, this one included
}

type flushView struct {
	ID         int64     `json:"id"`
	Trigger    string    `json:"trigger"`
	Model      string    `json:"model"`
	FromSeq    int64     `json:"from_seq"`
	ThroughSeq int64     `json:"through_seq"`
	CreatedAt  time.Time `json:"created_at"`
}

// write shows the fact in force, and its former values only where there are any.
func (v memoryShown) write(out io.Writer, at clock) error {
	flush := "none: a turn saved it, or it was there before receipts were kept"
	if f := v.Flush; f != nil {
		flush = fmt.Sprintf("%d (%s) of events %d-%d, %s, %s", f.ID, f.Trigger, f.FromSeq+1, f.ThroughSeq, f.Model, at.full(f.CreatedAt))
	}
	events := "-"
	if v.EndSeq > 0 {
		events = fmt.Sprintf("%d-%d", v.StartSeq, v.EndSeq)
	}
	if err := writeRows(out, [][2]string{
		{"id", fmt.Sprint(v.ID)},
		{"fact", v.Content},
		{"state", memoryState(v.Memory, time.Now())},
		{"scope", fmt.Sprintf("%s %s", v.Scope, v.ScopeID)},
		{"kind", string(v.Kind)},
		{"value of", v.FactKey},
		{"about", formatPerson(v.SubjectID, v.SubjectNick)},
		{"said by", formatPerson(v.SaidBy, v.SaidByNick)},
		{"said at", at.full(v.SaidAt)},
		{"said in", string(v.SourceSession)},
		{"events", events},
		{"flush", flush},
		{"said again", wording.Count("%d time{|s}, last %s", v.Seen-1, at.full(v.LastSeenAt))},
		{"expires", at.full(v.ExpiresAt)},
		{"promoted by", orDash(v.PromotedBy)},
		{"stored", at.full(v.CreatedAt)},
	}); err != nil || len(v.History) < 2 {
		return err
	}
	if _, err := fmt.Fprintln(out, "\nhistory, the oldest value first:"); err != nil {
		return err
	}
	return table(out, false, v.History, "ID\t"+at.head("STORED")+"\t"+at.head("SUPERSEDED")+"\tBY\tFACT", func(m rows.Memory) string {
		return fmt.Sprintf("%d\t%s\t%s\t%s\t%s", m.ID, at.cell(m.CreatedAt), at.cell(m.SupersededAt), formatPerson(m.SaidBy, m.SaidByNick), excerpt(m.Content))
	})
}

type memoryExportCmd struct {
	configFlag
	Person string `required:"" help:"Staff id of the person, as bot memory list shows it."`
	JSON   bool   `help:"One JSON object a line."`
}

// Run exports all data about a person, row by row.
func (c memoryExportCmd) Run(ctx context.Context, app *App) error {
	return withConfiguredStore(ctx, app, c.configFlag, func(cfg *config.Config, s *sql.Store, at clock) error {
		who, lang, m := sessions.UserID(c.Person), cfg.Agent.Language, gateway.Manager(cfg, s)
		if err := m.IsKept(ctx, operator, who); err != nil {
			return noPerson(c.Person, err)
		}
		out := &exporter{out: app.Stdout, enc: json.NewEncoder(app.Stdout), asJSON: c.JSON}
		heads := show.ExportHeads(lang)
		return m.Export(ctx, operator, who, manage.Reader{
			Fact: func(f memory.Memory) error {
				return out.put(heads.Facts, rows.OfPersonFact(f), show.ExportFact(f, at.zone, lang))
			},
			Message: func(said memory.PersonMessage) error {
				return out.put(heads.Messages, rows.OfPersonMessage(said), show.ExportSaid(said, at.zone, lang))
			},
			Record: func(r memory.Record) error {
				worded := r
				worded.Spec = schedule.StoredTimes(r.Spec, lang)
				return out.put(heads.Records, r, show.ExportRecord(worded, at.zone, lang))
			},
		})
	})
}

type exporter struct {
	out    io.Writer
	enc    *json.Encoder
	asJSON bool
	head   string // heading of the last row
}

func (e *exporter) put(head string, value any, line string) error {
	if e.asJSON {
		return e.enc.Encode(value)
	}
	if head != e.head {
		line, e.head = "\n"+head+"\n\n"+line, head
	}
	_, err := io.WriteString(e.out, line)
	return err
}

func noPerson(who string, err error) error {
	if errors.Is(err, sessions.ErrNotFound) {
		return usageError{fmt.Errorf("nothing is kept about %q; bot sessions export shows the ids of people as sender_id", who)}
	}
	return err
}

type memoryPromoteCmd struct {
	configFlag
	ID int64 `arg:"" help:"Number of the memory, as bot memory list shows it."`
}

// Run promotes a memory.
func (c memoryPromoteCmd) Run(ctx context.Context, app *App) error {
	return withManager(ctx, app, c.configFlag, func(m *manage.Manager, _ *sql.Store, _ clock) error {
		shared, err := m.Promote(ctx, operator, c.ID)
		var why manage.Refusal
		switch {
		case errors.As(err, &why):
			return usageError{fmt.Errorf("memory %d %s; only a group's memory in force can be promoted", c.ID, unshareable(why, shared))}
		case err != nil:
			return noMemory(c.ID, err)
		}
		_, err = fmt.Fprintf(app.Stdout, "memory %d is the team's now, as %d: %s\n", c.ID, shared.ID, excerpt(shared.Content))
		return err
	})
}

func unshareable(why manage.Refusal, m memory.Memory) string {
	switch why {
	case manage.TeamAlready:
		return "is the team's already"
	case manage.OfATask:
		return "is about work in progress, which belongs to its session alone"
	case manage.OfADay:
		return "summarizes a group's whole day"
	case manage.OfAPerson:
		return "is one person's"
	case manage.OfASession:
		return "belongs to its session alone"
	}
	return "is " + memoryState(rows.OfMemory(m), time.Now())
}

type memoryForgetCmd struct {
	sureFlags
	ID      int64  `arg:"" optional:"" help:"Number of the memory, as bot memory list shows it."`
	Person  string `help:"Everything about this person, and all they said: a staff id."`
	Session string `help:"Memory from this session; its log stays."`
}

// Run erases memory or a person. Bots may serve: a running turn starts again.
func (c memoryForgetCmd) Run(ctx context.Context, app *App) error {
	given := slices.DeleteFunc([]bool{c.ID != 0, c.Person != "", c.Session != ""}, func(g bool) bool { return !g })
	if len(given) != 1 {
		return usageError{errors.New("say what to forget: the id of a memory, or --person, or --session, and only one of them")}
	}
	if err := c.requireYes("an erasure of memories"); err != nil && c.ID == 0 {
		return err
	}
	return withManager(ctx, app, c.configFlag, func(m *manage.Manager, s *sql.Store, at clock) error {
		if !c.Yes {
			return c.preview(ctx, app, m, s, at)
		}
		done, err := c.forget(withWaits(ctx, app), m)
		if err != nil {
			return err
		}
		return writeRows(app.Stdout, [][2]string{
			{"sessions", fmt.Sprint(done.Sessions)},
			{"memories deleted", fmt.Sprint(done.Memories)},
			{"messages erased", fmt.Sprint(done.Messages)},
			{"events erased", fmt.Sprint(done.Events)},
			{"summaries healed", fmt.Sprint(done.Healed)},
			{"summaries to be rewritten", fmt.Sprint(done.Summaries)},
			{"stored results deleted", fmt.Sprint(done.Blobs)},
			{"replies wiped", fmt.Sprint(done.Replies)},
			{"vectors deleted", fmt.Sprint(done.Embeddings)},
		})
	})
}

func (c memoryForgetCmd) preview(ctx context.Context, app *App, manager *manage.Manager, s *sql.Store, at clock) error {
	f, chain, err := s.Facts.MemoryByID(ctx, c.ID)
	if err != nil {
		return noMemory(c.ID, err)
	}
	err = manager.ViewFact(ctx, operator, f, chain, func(context.Context) error {
		for _, m := range chain {
			if v := rows.OfMemory(m); m.ID <= c.ID {
				if _, err := fmt.Fprintf(app.Stdout, "memory %d (%s, %s): %s\n", m.ID, m.Scope, at.full(memorySaid(v)), m.Content); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.requireYes("with the messages that said it and their answers, it")
}

func (c memoryForgetCmd) forget(ctx context.Context, m *manage.Manager) (memory.Forgotten, error) {
	switch {
	case c.ID != 0:
		_, done, err := m.ForgetFact(ctx, operator, c.ID)
		return done, noMemory(c.ID, err)
	case c.Person != "":
		done, err := m.ForgetPerson(ctx, operator, sessions.UserID(c.Person))
		return done, noPerson(c.Person, err)
	default:
		done, err := m.ForgetSession(ctx, operator, sessions.Key(c.Session))
		return done, noSession(c.Session, err)
	}
}
