package turn

import (
	"context"
	"time"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/reload"
	"ebb/bot/turn/answer"
	"ebb/bot/turn/choice"
	"ebb/bot/turn/slot"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/lease"
	"ebb/sessions/serial"
)

// Config has the dependencies and settings of a [Runner]. All but Display are required.
type Config struct {
	Store     sessions.Store
	Memory    memory.Store
	Model     llm.Model
	Counter   *tokens.Counter
	Leases    *lease.Holder
	Views     *view.Builder
	Upkeep    Upkeep
	Commands  Commands
	Tools     []chat.Tool
	Transport chat.Transport

	Now       func() time.Time // the storage's clock
	Stopping  func() bool
	Draining  <-chan struct{} // closed when a stop begins
	Languages wording.Languages
	Location  *time.Location
	Current   *reload.Current
	Remember  view.Remember
	Display   chat.Display

	MaxMerged      int // messages answered in one turn
	MaxToolRounds  int
	MaxTurns       int // concurrent turns
	StaleAfter     time.Duration
	Gather         time.Duration // wait of a turn for further messages; 0: none
	TurnTimeout    time.Duration
	BusyNote       time.Duration // a longer turn is announced once; 0: never
	CommitTimeout  time.Duration // one attempt
	InlineDeadline time.Duration // for a compaction that an answer waits for
}

// Runner runs turns: from waiting messages to a committed answer. The stages of a turn are its fields.
type Runner struct {
	cfg     Config
	running slot.Running

	gathering  *slot.Gathering
	slots      *slot.Slots
	inbox      slot.Inbox
	chooser    *choice.Chooser
	limits     *choice.Limits
	screen     slot.Screen
	watch      *slot.Watch
	asker      *answer.Asker
	accountant *answer.Accountant

	turns       *serial.Mailboxes
	maintenance *serial.Mailboxes
	outbox      Outbox
	stats       Stats
}

// Upkeep is the work on a session apart from its turns.
type Upkeep interface {
	answer.Upkeep
	// Due reports whether a view needs maintenance, FactsDue whether the session's facts are to be flushed.
	Due(v sessions.View, tokens int) bool
	FactsDue(s sessions.Session) bool
}

// Commands answers the slash commands.
type Commands interface {
	choice.Commands
	// Command executes a command and returns the answer.
	Command(ctx context.Context, t *view.CommandTurn) string
	// Stopped is the text of a stopped turn with the answer to the commands.
	Stopped(ctx context.Context, s view.Stopped) string
	// May reports whether a message's sender has the right to a command, by its English name.
	May(e sessions.Event, command string) bool
	// Confirmations looks up which waiting messages confirm an earlier command.
	Confirmations(ctx context.Context, v *sessions.View)
}

// Outbox delivers committed replies.
type Outbox interface {
	// Resume queues the replies that an earlier owner left unsent.
	Resume(ctx context.Context, l sessions.Lease) error
	// Backpressured reports whether the session has too many unsent replies, Queued whether a reply would wait behind
	// others.
	Backpressured(key sessions.Key) bool
	Queued(key sessions.Key, card bool) bool
	// AwaitSent reports false if replies of the session that no other passes are unsent after atMost, or ctx ends. Replies that wait
	// for calls go by the webhook of to, a newer target in the conversation.
	AwaitSent(ctx context.Context, key sessions.Key, to sessions.Target, atMost time.Duration) bool
	// Send queues replies that were committed under l; then runs after the first attempt, or at once without replies.
	Send(ctx context.Context, l sessions.Lease, replies []sessions.Outgoing, then func())
	// Invalidate makes the next turn read the session's rows again: a commit may have stored an unknown reply.
	Invalidate(key sessions.Key)
}

// Stats counts turns.
type Stats interface {
	answer.Stats
	TurnBegun(key sessions.Key, asked []sessions.Event)
	TurnCommitted(key sessions.Key, kind choice.Kind, asked []sessions.Event, took time.Duration, now time.Time, stopping bool)
	LimitReached(limit sessions.Limit)
	ReportDoubted(model string)
}

// New returns a runner; [Runner.Connect] completes it.
func New(cfg Config) *Runner { return &Runner{cfg: cfg} }

// Connect sets the mailboxes of turns and of upkeep, the outbox and the statistics, and puts the stages together. It is called once,
// before any other method.
func (r *Runner) Connect(turns, maintenance *serial.Mailboxes, replies Outbox, stats Stats) {
	r.turns, r.maintenance, r.outbox, r.stats = turns, maintenance, replies, stats
	c := &r.cfg
	kinds := choice.Kinds{Views: c.Views, StaleAfter: c.StaleAfter}
	r.limits = &choice.Limits{Counts: c.Store, Current: c.Current, Location: c.Location, CommitTimeout: c.CommitTimeout, Reached: stats.LimitReached}
	r.chooser = choice.New(choice.Config{
		Kinds: kinds, Limits: r.limits, Commands: c.Commands, Views: c.Views, Counter: c.Counter, Languages: c.Languages, Location: c.Location, Now: c.Now,
	})
	receiver, _ := c.Transport.(chat.Receiver)
	r.gathering = &slot.Gathering{For: c.Gather, Draining: c.Draining, Receiver: receiver}
	r.inbox = slot.Inbox{Store: c.Store, Commands: c.Commands, Running: &r.running, Timeout: c.CommitTimeout}
	r.screen = slot.Screen{Display: c.Display, Running: &r.running, AwaitSent: replies.AwaitSent, Kinds: kinds, Now: c.Now}
	r.watch = &slot.Watch{
		Store: c.Store, Outbox: replies, Leases: c.Leases, Inbox: r.inbox, Screen: r.screen, Running: &r.running, BusyNote: c.BusyNote, CommitTimeout: c.CommitTimeout,
	}
	r.slots = slot.New(slot.Config{
		Store: c.Store, Leases: c.Leases, Resume: replies.Resume, Inbox: r.inbox, Screen: r.screen, Running: &r.running, Kinds: kinds, Limits: r.limits,
		Chooser: r.chooser, Now: c.Now, Draining: c.Draining,
		MaxTurns: c.MaxTurns, MaxMerged: c.MaxMerged, CommitTimeout: c.CommitTimeout,
	})
	r.asker = answer.New(answer.Config{
		Store: c.Store, Memory: c.Memory, Model: c.Model, Counter: c.Counter, Views: c.Views, Upkeep: c.Upkeep, Tools: c.Tools, May: c.Commands.May, Stats: stats,
		Now: c.Now, Location: c.Location, Remember: c.Remember,
		MaxToolRounds: c.MaxToolRounds, CommitTimeout: c.CommitTimeout, InlineDeadline: c.InlineDeadline,
	})
	r.accountant = &answer.Accountant{Views: c.Views, ReportDoubted: stats.ReportDoubted}
}

// Wake starts a turn for a stored message, or makes the running one look for a /stop.
func (r *Runner) Wake(key sessions.Key) {
	r.gathering.Note(key)
	r.running.Note(key)
	r.turns.Wake(key)
}

// Look makes a session's running turn look for its stop and for the end of its lease.
func (r *Runner) Look(key sessions.Key) { r.running.Note(key) }

// Running lists the leases of running turns. Other work of a session may lose its lease meanwhile, and forget it.
func (r *Runner) Running() []sessions.Lease { return r.running.Leases() }
