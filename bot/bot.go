package bot

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"ebb/bot/approval"
	"ebb/bot/chat"
	"ebb/bot/command"
	"ebb/bot/gate"
	"ebb/bot/knowledge"
	"ebb/bot/leader"
	"ebb/bot/manage"
	"ebb/bot/outbox"
	"ebb/bot/parts"
	"ebb/bot/reload"
	"ebb/bot/schedule"
	"ebb/bot/sendfile"
	"ebb/bot/turn"
	"ebb/bot/turn/answer"
	"ebb/bot/turn/slot"
	"ebb/bot/upkeep"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sessions/lease"
	"ebb/sessions/llm"
	"ebb/sessions/periodic"
	"ebb/sessions/serial"
)

// Files keeps the files of replies from their making until they are sent.
type Files interface {
	sendfile.Store
	outbox.Files
}

// Media reads attachments.
type Media interface {
	answer.Media
	knowledge.Media
}

// Kept keeps files for conversations.
type Kept interface {
	upkeep.Pages
	knowledge.Store
	manage.Files
}

// Config is what a Bot needs. The zero value of a duration or a limit means its default, in brackets.
type Config struct {
	Stores    sessions.Stores
	Memory    memory.Stores
	Elector   sessions.Elector
	Transport chat.Transport
	Tools     []chat.Tool
	// SchemaTokens and Finder are those of [view.Options].
	SchemaTokens int
	Finder       func(others []llm.ToolSpec) chat.Tool
	Counter      *tokens.Counter
	Metrics      prometheus.Registerer
	Parts

	Replica  sessions.ReplicaID // new at each start
	LeaseTTL time.Duration      // as the store was opened with [5 s]

	Robot    func() sessions.RobotCode // sends to administrators who wrote no message; nil: none can
	Name     string                    // its own name [Ebb]
	Language string                    // for fixed words, to a message without letters: zh or en [zh]
	Prompt   string                    // further instructions for the model
	Location *time.Location
	// Values are the settings that [Bot.Reload] replaces.
	reload.Values

	// CallBudget reads the month's counted calls of a robot to the chat platform, for /status; nil: none are counted.
	CallBudget func(sessions.RobotCode) command.CallBudget

	ApprovalTimeout time.Duration // after which a call that waits for approval expires [1 h]

	OneStream     bool           // only the replica that leads runs the transport
	Scope         sessions.Scope // default scope of groups [group]
	AloneEach     bool           // answer waiting messages one by one
	MaxMerged     int            // messages answered in one turn [20]
	MaxToolRounds int            // [8]
	MaxConcurrent int            // concurrent model calls; four times as many turns [32]
	StaleAfter    time.Duration
	BusyNote      time.Duration // a longer turn is announced once; 0: never
	Gather        time.Duration // pause before a turn, for messages sent together; 0: none
	TurnTimeout   time.Duration
	CommitTimeout time.Duration // one attempt to commit [5 s]
	SweepEvery    time.Duration // for sessions whose wake-up was lost [1 s]

	SummaryRetries  int           // requests for one summary [3]
	SummaryBackoff  time.Duration // before the second request; each later pause grows by it [1 s]
	InlineDeadline  time.Duration
	CompactDeadline time.Duration
	CompactNotify   bool // announces each automatic compaction

	Remember view.Remember
	// DigestAt is the time of day in Location, such as 04:00, of the digest of the day before; empty: no digests.
	DigestAt string

	Drain time.Duration // turns in flight at a stop [20 s]
	Flush time.Duration // flushes after that [8 s]

	Background []periodic.Task // work besides messages, until the end of a drain
}

// Parts are the parts that some programs leave out, by values that do nothing, as those of package off. Each is given.
type Parts struct {
	Tidying   memory.Upkeep
	Index     upkeep.Index
	Rights    memory.Rights
	Erasures  memory.Erasures
	Requests  sessions.CompactionRequests
	Schedules sessions.Schedules
	Planner   *schedule.Planner // sets reminders
	Approvals sessions.Approvals
	Media     Media // reads attachments
	Files     Files // keeps the files of replies, where the transport is a [chat.Uploader]
	Kept      Kept  // keeps files for conversations
	Audit     pages.Audit
	Reporter  sessions.Reporter
	Outside   chat.Toolbox // tools of other programs
	Display   chat.Display // shows running turns
	// Embeddings reports refusals that administrators read of.
	Embeddings interface {
		Report(watch func(context.Context, []llm.Part))
	}
}

// NoEmbeddings is no endpoint of embeddings: none refuses a request.
type NoEmbeddings struct{}

// Report implements Parts.Embeddings.
func (NoEmbeddings) Report(func(context.Context, []llm.Part)) {}

// check names a part that is missing: it would fail in the turn that needs it.
func (c *Config) check() error {
	for _, of := range []any{c.Parts, struct {
		Elector   sessions.Elector
		Transport chat.Transport
		Metrics   prometheus.Registerer
	}{c.Elector, c.Transport, c.Metrics}} {
		v := reflect.ValueOf(of)
		for i := range v.NumField() {
			if v.Field(i).IsNil() {
				return fmt.Errorf("part %s of the bot is missing", v.Type().Field(i).Name)
			}
		}
	}
	return nil
}

func (c *Config) defaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.LeaseTTL, 5*time.Second)
	def(&c.StaleAfter, 30*time.Minute)
	def(&c.TurnTimeout, 5*time.Minute)
	def(&c.CommitTimeout, 5*time.Second)
	def(&c.SweepEvery, time.Second)
	def(&c.SummaryBackoff, time.Second)
	def(&c.InlineDeadline, 20*time.Second)
	def(&c.CompactDeadline, 2*time.Minute)
	def(&c.Drain, 20*time.Second)
	def(&c.Flush, 8*time.Second)
	num := func(n *int, v int) {
		if *n <= 0 {
			*n = v
		}
	}
	num(&c.MaxMerged, 20)
	num(&c.MaxToolRounds, 8)
	num(&c.MaxConcurrent, 32)
	num(&c.SummaryRetries, 3)
	str := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	str(&c.Name, "Ebb")
	str(&c.Language, "zh")
	str((*string)(&c.Scope), string(sessions.ScopeGroup))
	if c.Location == nil {
		c.Location = time.UTC
	}
}

func (c *Config) mergeLimit() int {
	if c.AloneEach {
		return 1
	}
	return c.MaxMerged
}

// Bot is one replica of the gateway. Run runs it once.
type Bot struct {
	cfg      Config
	shared   *parts.Shared
	store    sessions.Stores
	stats    *recorder
	gate     *gate.Gate // bounds concurrent model calls
	draining chan struct{}
	restarts *restartStats

	turns  *serial.Mailboxes // steps 3 to 8
	upkeep *serial.Mailboxes // steps 10 and 11

	approvals *approval.Desk
	expiry    *approval.Expiry

	placing *placing
	intake  *intake
	sweeper *sweeper
	report  *restartReport
	drain   *drain

	views   *view.Builder
	runner  *turn.Runner
	worker  *upkeep.Worker
	handler *command.Handler
	timer   *schedule.Runner
	stream  *leader.Stream
	outbox  *outbox.Outbox
}

// New starts nothing.
func New(cfg Config) (*Bot, error) {
	cfg.defaults()
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if _, _, err := memory.ClockOf(cfg.DigestAt); err != nil && cfg.DigestAt != "" {
		return nil, fmt.Errorf("daily digest: %w", err)
	}
	current, leases, draining := reload.New(cfg.Values), lease.NewHolder(cfg.Stores.Leases, cfg.Replica, cfg.LeaseTTL), make(chan struct{})
	p := &parts.Shared{
		Leases: leases, Now: leases.Now, Current: current, Languages: wording.Languages{Preset: cfg.Language, Assigned: current.Language},
		Location: cfg.Location, Counter: cfg.Counter, Draining: draining,
		CommitTimeout: cfg.CommitTimeout, InlineDeadline: cfg.InlineDeadline, CompactDeadline: cfg.CompactDeadline,
	}
	b := &Bot{
		cfg: cfg, shared: p, store: cfg.Stores, gate: gate.NewGate(current, cfg.MaxConcurrent), draining: draining,
		restarts:  newRestartStats(),
		approvals: &approval.Desk{Store: cfg.Approvals, Wait: cmp.Or(cfg.ApprovalTimeout, time.Hour), Location: cfg.Location},
	}
	b.placing = newPlacing(cfg.Stores, cfg.Replica, current, b.configuredScope)
	b.stream = leader.New(leader.Config{Elector: cfg.Elector, LeaseTTL: cfg.LeaseTTL, OneStream: cfg.OneStream, Transport: cfg.Transport}, leases, func(ctx context.Context, m sessions.Message) error {
		return b.intake.accept(ctx, m)
	})
	var err error
	if b.views, err = view.New(p, cfg.Stores.Turns, cfg.Memory.Facts, command.Commands, view.Options{Tools: cfg.Tools, Outside: cfg.Outside, SchemaTokens: cfg.SchemaTokens, Finder: cfg.Finder, Name: cfg.Name, Prompt: cfg.Prompt, Remember: cfg.Remember}); err != nil {
		return nil, err
	}
	b.worker = upkeep.New(p, b.views, upkeepStores(cfg.Stores, cfg.Memory), b.gate, upkeep.Options{
		Tidying: cfg.Tidying, Index: cfg.Index, Leads: b.leads, Requests: cfg.Requests, DigestAt: cfg.DigestAt, SummaryRetries: cfg.SummaryRetries, SummaryBackoff: cfg.SummaryBackoff,
		CompactNotify: cfg.CompactNotify, Pages: cfg.Kept,
	})
	b.handler = command.New(p, b.views, commandStores(cfg.Stores, cfg.Memory), b.worker, b.configuredScope, command.Options{
		Rights: cfg.Rights, Erasures: cfg.Erasures, CallBudget: cfg.CallBudget, Schedules: cfg.Schedules, Planner: cfg.Planner, Audit: cfg.Audit,
		Approvals: b.approvals, Files: cfg.Kept,
		Knowledge: &knowledge.Desk{Store: cfg.Kept, Media: cfg.Media, Location: cfg.Location},
	})
	b.runner = turn.New(turn.Config{
		Shared: p, Views: b.views, Stores: turnStores(cfg.Stores, cfg.Memory), Model: b.gate, Upkeep: b.worker, Commands: b.handler,
		Transport: cfg.Transport, Display: cfg.Display, Approvals: b.approvals, Media: cfg.Media, Files: b.sentFiles(),
		MaxMerged: cfg.mergeLimit(), MaxToolRounds: cfg.MaxToolRounds, MaxTurns: gate.TurnsPerCall * cfg.MaxConcurrent,
		StaleAfter: cfg.StaleAfter, Gather: cfg.Gather, TurnTimeout: cfg.TurnTimeout, BusyNote: cfg.BusyNote,
	})
	return b, nil
}

// sentFiles refuses files for a transport that sends none, and while the month's calls permit none.
func (b *Bot) sentFiles() sendfile.Desk {
	_, sends := b.cfg.Transport.(chat.Uploader)
	return sendfile.Desk{Store: b.cfg.Files, Timeout: b.shared.CommitTimeout, Refusal: func(robot sessions.RobotCode) error {
		switch {
		case !sends:
			return sendfile.ErrOff
		case b.cfg.CallBudget != nil && !b.cfg.CallBudget(robot).PermitsFiles():
			return sendfile.ErrCalls
		}
		return nil
	}}
}

func turnStores(s sessions.Stores, m memory.Stores) turn.Stores {
	return turn.Stores{Turns: s.Turns, Inbox: s.Inbox, Cards: s.Cards, Outbox: s.Outbox, Limits: s.Limits, Facts: m.Facts, Search: m.Search}
}

func commandStores(s sessions.Stores, m memory.Stores) command.Stores {
	return command.Stores{
		Turns: s.Turns, Inbox: s.Inbox, Sessions: s.Sessions, Compactions: s.Compactions, Scopes: s.Scopes, Ledger: s.Ledger, Limits: s.Limits,
		Cards: s.Cards, Withheld: s.Withheld, Flushes: m.Flushes, Log: m.Search,
	}
}

func upkeepStores(s sessions.Stores, m memory.Stores) upkeep.Stores {
	return upkeep.Stores{
		Turns: s.Turns, Sessions: s.Sessions, Jobs: s.Jobs, Compactions: s.Compactions, Ledger: s.Ledger, Withheld: s.Withheld,
		Log: m.Search, Facts: m.Facts, Flushes: m.Flushes, Digests: m.Digests,
	}
}

func (b *Bot) connect(turns, upkeep, replies context.Context) {
	b.turns = serial.NewMailboxes(turns, b.runner.RunTurn)
	b.upkeep = serial.NewMailboxes(upkeep, b.worker.Maintain)
	b.stats = &recorder{restarts: b.restarts}
	b.outbox = outbox.New(replies, b.shared, b.store.Outbox, b.cfg.Transport, b.stats, outbox.Options{
		WakeSession: b.turns.Wake,
		Scheduled: func(ctx context.Context, o sessions.Outgoing, arrived bool) {
			noteSchedules(ctx, b.cfg.Schedules, b.cfg.CommitTimeout, o, arrived)
		},
		Files: b.cfg.Files,
	})
	b.expiry = &approval.Expiry{
		Desk: b.approvals, Replica: b.shared.Leases.Owner(), Leads: b.leads, Languages: b.shared.Languages, Accepted: func(a sessions.Accepted) { b.intake.wakeFor(a) },
		Expired: func() { b.stats.CallsDecided(string(sessions.ApprovalExpired), 1) },
	}
	of := measured{shared: b.shared, gate: b.gate, turns: b.turns, outbox: b.outbox, expiry: b.expiry, restarts: b.restarts}
	if b.cfg.OneStream {
		of.stream = b.stream
	}
	m := newMetrics(b.cfg.Metrics, of)
	b.stats.metrics = m
	refuser := newRefuser(replies, b.shared, b.store.Limits, b.cfg.Transport, m.refused)
	b.intake = &intake{shared: b.shared, placing: b.placing, views: b.views, runner: b.runner, refuser: refuser, accepted: m.accepted, restarts: b.restarts}
	b.timer = b.newTimer()
	alarm := newAlarm(b.cfg.Robot, b.cfg.Name, b.shared, b.intake)
	b.gate.Report(m.models, alarm.watch, b.chargeLate)
	b.cfg.Embeddings.Report(alarm.watchVectors)
	if t, ok := b.cfg.Transport.(chat.Clickable); ok {
		c := &clicks{
			shared: b.shared, cards: b.store.Cards, intake: b.intake, handler: b.handler, language: b.cfg.Language, metrics: m,
		}
		t.OnClick(c.click)
	}
	b.sweeper = &sweeper{
		shared: b.shared, inbox: b.store.Inbox, turns: b.turns, outbox: b.outbox, runner: b.runner, stream: b.stream, leaseTTL: b.cfg.LeaseTTL,
	}
	b.report = &restartReport{store: b.cfg.Reporter, shared: b.shared, stats: b.restarts, ended: m.restartEnded}
	last := newLastFlush(b.shared, b.cfg.Memory.Flushes, b.store.Leases, b.worker)
	b.drain = &drain{
		shared: b.shared, began: b.draining, turns: b.turns, upkeep: b.upkeep, outbox: b.outbox, replies: b.store.Outbox, leases: b.store.Leases,
		refusals: refuser.Wait, alarms: alarm.Wait, last: last,
		leaving: &handover{
			shared: b.shared, elector: b.cfg.Elector, turns: b.turns, outbox: b.outbox, last: last, left: make(chan sessions.Key, sweepLimit),
		},
		restarts: b.restarts, turnTime: b.cfg.Drain, flushTime: b.cfg.Flush,
	}
	b.runner.Connect(b.turns, b.upkeep, b.outbox, b.stats)
	b.worker.Connect(b.turns, b.upkeep, b.outbox, b.stats)
	b.handler.Connect(b.upkeep, b.stats)
}

// newTimer stores reminders as messages, which wake sessions as those of people do.
func (b *Bot) newTimer() *schedule.Runner {
	return schedule.NewRunner(schedule.RunnerConfig{
		Store: b.cfg.Schedules, Replica: b.shared.Leases.Owner(), Leads: b.leads, Now: b.shared.Now, Location: b.shared.Location, Grace: b.cfg.StaleAfter,
		Settings: b.cfg.Planner.Settings, Metrics: b.cfg.Metrics,
		Language: b.shared.Languages.OfText,
		Serves:   b.placing.serves,
		Refuse:   b.handler.RefuseSchedule,
		Accepted: b.intake.wakeFor,
	})
}

func (b *Bot) leads(ctx context.Context) (bool, error) {
	l, err := b.cfg.Elector.Leader(ctx)
	return l.Replica == b.shared.Leases.Owner(), err
}

func (b *Bot) configuredScope(id sessions.ConversationID) sessions.Scope {
	return cmp.Or(b.shared.Current.Get().Groups[id].Scope, b.cfg.Scope)
}

// chargeLate counts a request whose answer had no reader as the operator's: another model answered.
func (b *Bot) chargeLate(ctx context.Context, p llm.Part) {
	if key := llm.SessionOf(ctx); key != "" {
		b.worker.Charge(ctx, key, sessions.Spending{Kind: sessions.SpentProbe, Usage: p.Usage, Cost: p.Cost, Model: p.Model})
	}
}

// Run serves until ctx ends, then drains and returns nil. An error means that it can't work.
func (b *Bot) Run(ctx context.Context) error {
	began := time.Now()
	// Work in progress outlives ctx: it finishes after the signal, and ends with the drain.
	life := context.WithoutCancel(ctx)
	work, cancelWork := context.WithCancelCause(life)
	defer cancelWork(llm.ErrStop)
	spare, cancelUpkeep := context.WithCancelCause(life)
	defer cancelUpkeep(llm.ErrStop)
	send, cancelSend := context.WithCancelCause(life)
	defer cancelSend(llm.ErrStop)
	b.connect(work, spare, send)
	if !firstBeat(ctx, b.shared) {
		return nil // stopped before anything started
	}
	keep, stopKeep := context.WithCancel(life) // the heartbeat goes on until the last flush
	defer stopKeep()
	var background errgroup.Group
	background.Go(func() error { b.shared.Leases.Keep(keep); return nil })
	run := func(ctx context.Context, t periodic.Task) {
		background.Go(func() error { periodic.Run(ctx, t); return nil })
	}
	run(keep, periodic.Task{Interval: b.cfg.SweepEvery, AtOnce: true, Timeout: b.shared.CommitTimeout, Do: b.sweeper.sweep, Failure: sweepFailed})
	for _, t := range b.cfg.Background {
		run(keep, t)
	}
	background.Go(func() error { b.sweeper.listen(keep); return nil })
	background.Go(func() error { b.report.keep(keep); return nil })
	low, stopLow := context.WithCancelCause(life)
	defer context.AfterFunc(ctx, func() { stopLow(llm.ErrStop) })()
	defer stopLow(llm.ErrStop)
	for _, t := range b.worker.Tasks() {
		run(low, t)
	}
	run(low, b.timer.Task())
	run(low, b.expiry.Task())

	err := b.stream.Receive(ctx)
	if ctx.Err() != nil {
		err = nil
	}
	stopLow(llm.ErrStop)
	background.Go(func() error { b.stream.Leave(keep); return nil })
	b.drain.run(life, stops{turns: cancelWork, upkeep: cancelUpkeep, outbox: cancelSend})
	stopKeep()
	err = errors.Join(err, background.Wait())
	stored := b.report.end(life)
	err = errors.Join(err, b.drain.resign(life))
	b.report.close(life, began, stored)
	return err
}

// Reload puts settings in force, unless they can't work. A turn keeps those that it began with.
func (b *Bot) Reload(v reload.Values) error {
	if err := v.Validate(); err != nil {
		return err
	}
	b.shared.Current.Replace(v)
	return nil
}

// Language returns a conversation's configured language; empty for none.
func (b *Bot) Language(id sessions.ConversationID) string { return b.shared.Current.Language(id) }

// Ready returns why this replica can't work now, or nil. A standby answers turns, and is ready without a connection.
func (b *Bot) Ready() error {
	switch {
	case b.shared.Stopping():
		return errors.New("draining")
	case !b.shared.Leases.Trusted():
		return slot.ErrHeartbeat
	case b.cfg.Transport.Ready() || b.cfg.OneStream && b.stream.StandsBy():
		return nil
	}
	return errors.New("the DingTalk stream is not connected")
}

// Draining returns a channel that is closed at a stop.
func (b *Bot) Draining() <-chan struct{} { return b.draining }

// AwaitIdle returns when no session has a turn, reply or maintenance in progress, or with ctx's cause.
func (b *Bot) AwaitIdle(ctx context.Context) error {
	return periodic.Poll(ctx, time.Millisecond, func() (bool, error) {
		return b.turns.Live() == 0 && b.outbox.Waiting() == 0 && b.upkeep.Live() == 0, nil
	})
}
