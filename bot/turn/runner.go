package turn

import (
	"context"
	"time"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/lease"
	"ebb/sessions/serial"
)

// Config is what a [Runner] needs. All of it must be set but for Watch.
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
	Stopping  func() bool      // whether a stop has begun
	Draining  <-chan struct{}  // closed when a stop begins
	Languages wording.Languages
	Location  *time.Location
	Remember  view.Remember
	// Watch, where set, returns what receives a turn's text as it is streamed; nil for turns that nobody watches.
	Watch func(sessions.Key) func(text string, reset bool)

	MaxMerged      int // messages answered in one turn
	MaxToolRounds  int
	MaxTurns       int // turns under way at once
	StaleAfter     time.Duration
	Gather         time.Duration // from a message to its turn, for others that are sent with it; 0: none
	TurnTimeout    time.Duration
	CommitTimeout  time.Duration // of one try to commit
	InlineDeadline time.Duration // of a compaction that an answer waits for
}

// Runner runs turns: from waiting messages to a committed answer.
type Runner struct {
	cfg       Config
	store     sessions.Store
	memory    memory.Store
	model     llm.Model
	counter   *tokens.Counter
	leases    *lease.Holder
	views     *view.Builder
	worker    Upkeep
	handler   Commands
	tools     map[string]chat.Tool
	languages wording.Languages
	now       func() time.Time
	stopping  func() bool
	draining  <-chan struct{}
	inHand    *llm.FairSemaphore // bounds the turns, each of which holds a view
	suspects  *Suspects
	told      told
	gathering gathering

	turns       *serial.Mailboxes
	maintenance *serial.Mailboxes
	outbox      Outbox
	stats       Stats
}

// Upkeep is the work on a session besides its turns.
type Upkeep interface {
	// Due reports whether a view at so many tokens calls for maintenance, FactsDue whether facts are to be read out of it.
	Due(v sessions.View, tokens int) bool
	FactsDue(s sessions.Session) bool
	// Busy reports whether a flush or a compaction of the session is under way.
	Busy(key sessions.Key) bool
	// Inline compacts a view before the model is asked; waiting is the size of the question. needed names the trigger, or
	// nothing.
	Inline(ctx context.Context, l sessions.Lease, waiting int, needed func(sessions.View) string) error
	// Charge counts what failed work took.
	Charge(ctx context.Context, key sessions.Key, s sessions.Spending)
}

// Commands answers the slash commands.
type Commands interface {
	Command(ctx context.Context, x *view.Exchange) string
	// Confirmations looks up which waiting messages confirm an earlier command.
	Confirmations(ctx context.Context, v *sessions.View)
}

// Outbox delivers what a turn commits.
type Outbox interface {
	// Resume takes up what an earlier owner of the session left unsent.
	Resume(ctx context.Context, l sessions.Lease) error
	// Crowded reports whether too many replies of the session wait for a turn to add one, Queued whether any does.
	Crowded(key sessions.Key) bool
	Queued(key sessions.Key) bool
	// Send queues committed replies; then runs after the first try.
	Send(ctx context.Context, l sessions.Lease, replies []sessions.Outgoing, then func())
	// Doubt has the session's rows read again: a commit may have left one that memory does not hold.
	Doubt(key sessions.Key)
}

// Stats counts turns.
type Stats interface {
	TurnBegun(key sessions.Key, asked []sessions.Event)
	TurnCommitted(key sessions.Key, kind string, asked []sessions.Event, took time.Duration, now time.Time, stopping bool)
	ToolCalled(tool, outcome string)
}

func New(cfg Config) *Runner {
	r := &Runner{
		cfg: cfg, store: cfg.Store, memory: cfg.Memory, model: cfg.Model, counter: cfg.Counter, leases: cfg.Leases, views: cfg.Views,
		worker: cfg.Upkeep, handler: cfg.Commands, tools: map[string]chat.Tool{}, languages: cfg.Languages, now: cfg.Now, stopping: cfg.Stopping,
		draining: cfg.Draining, inHand: llm.NewFairSemaphore(cfg.MaxTurns, cfg.Draining), suspects: &Suspects{Over: cfg.Draining},
	}
	for _, tool := range cfg.Tools {
		r.tools[tool.Spec().Name] = tool
	}
	return r
}

// Connect gives the runner the mailboxes that wake it, those of upkeep, and the way out.
func (r *Runner) Connect(turns, maintenance *serial.Mailboxes, replies Outbox, stats Stats) {
	r.turns, r.maintenance, r.outbox, r.stats = turns, maintenance, replies, stats
}
