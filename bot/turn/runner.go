package turn

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"ebb/bot/chat"
	"ebb/bot/llm"
	"ebb/bot/reload"
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

// Runner runs turns: from waiting messages to a committed answer.
type Runner struct {
	cfg            Config
	store          sessions.Store
	memory         memory.Store
	model          llm.Model
	counter        *tokens.Counter
	leases         *lease.Holder
	views          *view.Builder
	worker         Upkeep
	handler        Commands
	tools          map[string]chat.Tool
	languages      wording.Languages
	now            func() time.Time
	stopping       func() bool
	draining       <-chan struct{}
	slots          *llm.FairSemaphore // each turn holds a view
	asides         *llm.FairSemaphore // turns without a slot, which were stopped while they waited for one
	lookers        *llm.FairSemaphore // waiting turns that look for messages at intervals
	suspects       *Suspects
	staleNotices   staleNotices
	gathering      gathering
	running        running
	suspectReports suspectReports
	spoken         *lru.Cache[sessions.Key, string] // language of a session's last turn

	turns       *serial.Mailboxes
	maintenance *serial.Mailboxes
	outbox      Outbox
	stats       Stats
}

// Upkeep is the work on a session apart from its turns.
type Upkeep interface {
	// Due reports whether a view needs maintenance, FactsDue whether the session's facts are to be flushed.
	Due(v sessions.View, tokens int) bool
	FactsDue(s sessions.Session) bool
	// Busy reports whether a flush or a compaction runs.
	Busy(key sessions.Key) bool
	// Inline compacts before the model is asked; waiting is the size of the question in tokens. needed returns the
	// trigger, or "".
	Inline(ctx context.Context, l sessions.Lease, waiting int, needed func(sessions.View) string) error
	// Charge counts the spending of failed work.
	Charge(ctx context.Context, key sessions.Key, s sessions.Spending)
}

// Commands answers the slash commands.
type Commands interface {
	Command(ctx context.Context, x *view.Exchange) string
	// Stops returns the messages of a turn that a message ends: all for a /stop of the conversation's owner, and for one of other people
	// their own.
	Stops(e sessions.Event, asked []sessions.Event) []sessions.Event
	// Stopped is the text of a stopped turn with the answer to the commands.
	Stopped(ctx context.Context, x *view.Exchange, s view.Stopped) string
	// May reports whether a message's sender has the right to a command, by its English name.
	May(e sessions.Event, command string) bool
	// Work is what limits count a command as; empty: it costs nothing, or will be refused.
	Work(e sessions.Event) sessions.Work
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
	TurnBegun(key sessions.Key, asked []sessions.Event)
	TurnCommitted(key sessions.Key, kind string, asked []sessions.Event, took time.Duration, now time.Time, stopping bool)
	ToolCalled(tool, outcome string)
	LimitReached(limit sessions.Limit)
	ReportDoubted(model string)
	// RequestRefused counts a permanent refusal by what the provider refused: question, history or model.
	RequestRefused(what string)
}

// maxSpoken bounds the sessions whose language is known before their view is read.
const maxSpoken = 4096

// New returns a runner; [Runner.Connect] completes it.
func New(cfg Config) *Runner {
	r := &Runner{
		cfg: cfg, store: cfg.Store, memory: cfg.Memory, model: cfg.Model, counter: cfg.Counter, leases: cfg.Leases, views: cfg.Views,
		worker: cfg.Upkeep, handler: cfg.Commands, tools: map[string]chat.Tool{}, languages: cfg.Languages, now: cfg.Now, stopping: cfg.Stopping,
		draining: cfg.Draining, slots: llm.NewFairSemaphore(cfg.MaxTurns, cfg.Draining), asides: llm.NewFairSemaphore(max(1, cfg.MaxTurns/llm.TurnsPerCall), nil),
		lookers:      llm.NewFairSemaphore(maxLookers, nil),
		suspects:     &Suspects{Closed: cfg.Draining},
		staleNotices: newStaleNotices(),
	}
	r.spoken, _ = lru.New[sessions.Key, string](maxSpoken) // it fails only without a size
	for _, tool := range cfg.Tools {
		r.tools[tool.Spec().Name] = tool
	}
	return r
}

// Connect sets the mailboxes of turns and of upkeep, the outbox and the statistics. It is called once, before any other
// method.
func (r *Runner) Connect(turns, maintenance *serial.Mailboxes, replies Outbox, stats Stats) {
	r.turns, r.maintenance, r.outbox, r.stats = turns, maintenance, replies, stats
}
