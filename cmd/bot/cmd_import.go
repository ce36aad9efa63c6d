package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"ebb/bot/config"
	"ebb/cmd/bot/gateway"
	"ebb/compaction"
	"ebb/compaction/summarize"
	"ebb/compaction/tokens"
	"ebb/sessions"
	"ebb/sessions/lease"
	"ebb/sessions/redact"
	"ebb/sql"
)

type sessionsImportCmd struct {
	configFlag
	File         string `arg:"" help:"JSON with \"messages\" and \"last_consolidated\", or lines of JSON with the metadata in the first."`
	Robot        string `required:"" help:"The robot's code: the Client ID of its app."`
	Conversation string `required:"" help:"DingTalk's id of the conversation (openConversationId)."`
	Title        string `help:"The conversation's title."`
	Private      bool   `help:"A private chat rather than a group."`
}

// maxImport keeps a wrong file out of memory, in bytes.
const maxImport = 256 << 20

// Run stores the conversation as a new session, like live messages.
func (c sessionsImportCmd) Run(ctx context.Context, app *App) error {
	cfg, err := config.Load(c.Config, app.Getenv, config.NeedNothing)
	if err != nil {
		return err
	}
	zone, err := time.LoadLocation(cfg.Agent.Timezone)
	if err != nil {
		return fmt.Errorf("agent.timezone: %w", err)
	}
	conversation, err := c.read(zone)
	if err != nil {
		return usageError{err}
	}
	counter, err := tokens.NewCounter()
	if err != nil {
		return err
	}
	return withDatabase(ctx, app, c.configFlag, func(cfg *config.Config, url string) error {
		s, err := sql.Open(ctx, sql.Options{URL: url, MaxConns: 2, LeaseTTL: cfg.Cluster.LeaseTTL, Location: zone})
		if err != nil {
			return gateway.DatabaseFault(err)
		}
		defer s.Close()
		im := &importer{
			cmd: c, store: s.Ports(), replicas: s.Replicas, count: counter.Count, zone: zone, kept: conversation,
			lang:  cmp.Or(cfg.Groups[c.Conversation].Language, cfg.Agent.Language),
			key:   sessions.NewKey(sessions.RobotCode(c.Robot), sessions.ConversationID(c.Conversation), ""),
			owner: sessions.ReplicaID("import-" + rand.Text()[:10]),
		}
		configured := cmp.Or(cfg.Groups[c.Conversation].SessionScope, cfg.Agent.SessionScope)
		if err := needSchema(ctx, url, im.checkScope(ctx, sessions.Scope(configured))); err != nil {
			return err
		}
		err = gateway.Manager(cfg, s).ImportSession(ctx, operator, im.key, len(conversation.messages), func(ctx context.Context) error {
			return im.run(ctx, cfg.Cluster.LeaseTTL)
		})
		if err := needSchema(ctx, url, err); err != nil {
			return err
		}
		summarized := "nothing was summarized"
		if im.through > 0 {
			summarized = fmt.Sprintf("1-%d are in a summary", im.through)
		}
		fmt.Fprintf(app.Stdout, "%s: events 1-%d, %s\n", im.key, im.last, summarized)
		return nil
	})
}

func (c sessionsImportCmd) read(zone *time.Location) (kept, error) {
	info, err := os.Stat(c.File)
	if err != nil {
		return kept{}, err
	}
	if info.Size() > maxImport {
		return kept{}, fmt.Errorf("%s: got %d bytes, want at most %d", c.File, info.Size(), maxImport)
	}
	data, err := os.ReadFile(c.File)
	if err != nil {
		return kept{}, err
	}
	return readKept(c.File, data, zone)
}

type importer struct {
	cmd      sessionsImportCmd
	store    sessions.Stores
	replicas sessions.Elector
	count    func(string) int
	zone     *time.Location
	lang     string
	kept     kept
	key      sessions.Key
	owner    sessions.ReplicaID

	lease   sessions.Lease
	last    int64 // seq of the newest stored event
	through int64 // seq of the newest summarized event
	tokens  int
	stored  int // messages
}

// checkScope refuses a group whose members each have a session. A choice by /scope precedes the configuration.
func (im *importer) checkScope(ctx context.Context, configured sessions.Scope) error {
	if im.cmd.Private {
		return nil
	}
	chosen, err := im.store.Scopes.ScopeOf(ctx, im.key)
	if err != nil {
		return err
	}
	if cmp.Or(chosen, configured) != sessions.ScopeMember {
		return nil
	}
	origin := "session_scope"
	if chosen != "" {
		origin = "the scope that /scope chose for the group"
	}
	return usageError{fmt.Errorf(`%s is "member": a group's conversation would belong to no member; --private imports a private chat`, origin)}
}

// An error says how far it came. The heartbeat keeps serving bots off the incomplete session: they would answer its
// old questions.
func (im *importer) run(ctx context.Context, ttl time.Duration) error {
	switch _, err := im.store.Sessions.Session(ctx, im.key); {
	case err == nil:
		return usageError{fmt.Errorf("there is a session %s already; nothing was stored", im.key)}
	case !errors.Is(err, sessions.ErrNotFound):
		return err
	}
	leases := lease.NewHolder(im.store.Leases, im.owner, ttl)
	if err := leases.Beat(ctx); err != nil {
		return err
	}
	if err := im.replicas.Mark(ctx, im.owner, sessions.ReplicaStatus{Draining: true}); err != nil { // never the leader
		return err
	}
	keep, stop := context.WithCancel(ctx)
	beats := make(chan struct{})
	go func() { defer close(beats); leases.Keep(keep) }()
	defer func() {
		stop()
		<-beats
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, _ = im.store.Leases.Resign(end, im.owner) // a remaining heartbeat expires by itself
	}()
	if err := im.log(ctx); err != nil {
		return fmt.Errorf("importing into session %s, where %d of %d messages are stored: %w", im.key, im.stored, len(im.kept.messages), err)
	}
	if err := im.summarize(ctx); err != nil {
		return fmt.Errorf("importing into session %s, where all %d messages are stored without their summary: %w", im.key, im.stored, err)
	}
	return nil
}

// log stores turn by turn: user messages, then their answers.
func (im *importer) log(ctx context.Context) error {
	all := im.kept.messages
	for at := 0; at < len(all); {
		said := at
		for said < len(all) && all[said].event.Role == sessions.RoleUser {
			said++
		}
		end := said
		for end < len(all) && all[end].event.Role != sessions.RoleUser {
			end++
		}
		if at == 0 && said == 0 { // an answer without a question: the session begins with the next question
			if _, err := im.accept(ctx, end); err != nil {
				return err
			}
		}
		if err := im.turn(ctx, at, said, end); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// turn stores the user messages from to said and the answers said to end.
func (im *importer) turn(ctx context.Context, from, said, end int) (err error) {
	var t sessions.TurnResult
	defer func() {
		if err != nil && len(t.Taken) > 0 {
			// A bot would answer pending messages later.
			aside, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_, asideErr := im.store.Turns.Commit(aside, im.lease, sessions.TurnResult{Dead: t.Taken})
			if asideErr != nil && !errors.Is(asideErr, sessions.ErrConflict) { // a conflict means that the turn did commit
				err = errors.Join(err, asideErr)
			}
		}
	}()
	for i := from; i < said; i++ {
		id, err := im.accept(ctx, i)
		if err != nil {
			return err
		}
		n := im.count(im.kept.messages[i].event.Content) + tokens.MessageOverhead
		t.Taken, t.TakenTokens = append(t.Taken, id), append(t.TakenTokens, n)
		t.Appended += n
	}
	for i := said; i < end; i++ {
		e := im.kept.messages[i].event
		e.Tokens = im.count(e.Content) + tokens.MessageOverhead
		for _, c := range e.ToolCalls {
			e.Tokens += im.count(c.Name) + im.count(c.Arguments)
		}
		t.Events = append(t.Events, e)
		t.Appended += e.Tokens
	}
	t.TotalTokens, t.Calibration = im.tokens+t.Appended, 1
	done, err := im.store.Turns.Commit(ctx, im.lease, t)
	if err != nil {
		return err
	}
	im.last, im.tokens, im.stored = done.LastSeq, t.TotalTokens, end
	return nil
}

// accept is idempotent.
func (im *importer) accept(ctx context.Context, i int) (int64, error) {
	m := im.kept.messages[i]
	kind := sessions.Group
	if im.cmd.Private {
		kind = sessions.Private
	}
	a, err := im.store.Inbox.Accept(ctx, im.owner, im.key, sessions.Message{
		RobotCode: sessions.RobotCode(im.cmd.Robot), ConversationID: sessions.ConversationID(im.cmd.Conversation),
		ConversationType: kind, ConversationTitle: im.cmd.Title, ID: sessions.MessageID(fmt.Sprintf("import-%d", i)),
		SenderID: sessions.UserID(cmp.Or(m.sender, "user")), SenderNick: cmp.Or(m.sender, "user"), Kind: "text", Text: m.event.Content, SentAt: m.sentAt,
	})
	if err != nil {
		return 0, err
	}
	if a.Lease.Owner != im.owner {
		return 0, fmt.Errorf("another replica took it meanwhile: %w", sessions.ErrLeaseHeld)
	}
	im.lease = a.Lease
	return a.EventID, nil
}

const importVersion = "import"

// The range that the older bot had summarized becomes its summary, or a note.
func (im *importer) summarize(ctx context.Context) error {
	n := im.kept.consolidated
	for n > 0 && n < len(im.kept.messages) && im.kept.messages[n].event.Role == sessions.RoleTool {
		n-- // a result stays with its call
	}
	if n == 0 {
		return nil
	}
	v, err := im.store.Turns.Begin(ctx, im.lease, 0)
	if err != nil {
		return err
	}
	job := sessions.Job{Gen: v.Session.Gen, From: v.Session.CompactedSeq, Through: int64(n), Version: importVersion}
	src, err := im.store.Jobs.OpenJob(ctx, im.lease, job)
	if err != nil {
		return err
	}
	text := redact.Secrets(im.kept.summary)
	if text == "" {
		text = summarize.GapNote(im.dated(src.Events), im.zone, im.lang, maxNamed)
	}
	source, tokens := compaction.TokensOf(src.Events), im.count(text)
	about := map[string]any{"source_tokens": source, "summary_tokens": tokens, "imported_messages": im.stored}
	if at := im.kept.consolidatedAt; !at.IsZero() {
		about["last_consolidated_at"] = at
	}
	audit, err := json.Marshal(about)
	if err != nil {
		return err
	}
	_, err = im.store.Compactions.Compact(ctx, im.lease, sessions.Compaction{
		Gen: job.Gen, From: job.From, Through: job.Through, Source: src.Hash, Freed: source - tokens,
		Summaries: []sessions.NewSummary{{StartSeq: job.From + 1, EndSeq: job.Through, Text: text, Tokens: tokens}},
		Log: sessions.LogEntry{
			Key: im.key, Trigger: importVersion, Mode: string(compaction.SummaryOnly), TokensBefore: im.tokens,
			TokensAfter: im.tokens - source + tokens, StartSeq: job.From + 1, EndSeq: job.Through, Audit: string(audit), Outcome: "committed",
		},
	})
	if err == nil {
		im.through = job.Through
	}
	return err
}

// Events have the times of the file, if any, instead of the import's.
func (im *importer) dated(events []sessions.Event) []sessions.Event {
	out := slices.Clone(events)
	for i := range out {
		out[i].CreatedAt = time.Time{}
		if n := out[i].Seq; n >= 1 && n <= int64(len(im.kept.messages)) {
			out[i].CreatedAt = im.kept.messages[n-1].sentAt
		}
	}
	return out
}

const maxNamed = 24
