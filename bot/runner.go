package bot

import (
	"ebb/compaction/tokens"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/lease"
	"ebb/sessions/serial"
	"time"
)

// turnConfig is what a [Runner] needs. All of it must be set but for Watch.
type turnConfig struct {
	Store     sessions.Store
	Memory    memory.Store
	Model     Model
	Counter   *tokens.Counter
	Leases    *lease.Holder
	Views     *Builder
	Worker    *Worker
	Commands  *Handler
	Tools     []Tool
	Transport Transport

	Now       func() time.Time // the storage's clock
	Stopping  func() bool      // whether a stop has begun
	Draining  <-chan struct{}  // closed when a stop begins
	Languages languages
	Location  *time.Location
	Remember  Remember
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
	cfg       turnConfig
	store     sessions.Store
	memory    memory.Store
	model     Model
	counter   *tokens.Counter
	leases    *lease.Holder
	views     *Builder
	worker    *Worker
	handler   *Handler
	tools     map[string]Tool
	languages languages
	now       func() time.Time
	stopping  func() bool
	draining  <-chan struct{}
	inHand    *fair // bounds the turns, each of which holds a view
	suspects  *suspects
	told      told
	gathering gathering

	turns       *serial.Mailboxes
	maintenance *serial.Mailboxes
	outbox      *outbox
	stats       *recorder
}

func newRunner(cfg turnConfig) *Runner {
	r := &Runner{
		cfg: cfg, store: cfg.Store, memory: cfg.Memory, model: cfg.Model, counter: cfg.Counter, leases: cfg.Leases, views: cfg.Views,
		worker: cfg.Worker, handler: cfg.Commands, tools: map[string]Tool{}, languages: cfg.Languages, now: cfg.Now, stopping: cfg.Stopping,
		draining: cfg.Draining, inHand: newFair(cfg.MaxTurns, cfg.Draining), suspects: &suspects{over: cfg.Draining},
	}
	for _, tool := range cfg.Tools {
		r.tools[tool.Spec().Name] = tool
	}
	return r
}

// connect gives the runner the mailboxes that wake it, those of upkeep, and the way out.
func (r *Runner) connect(turns, maintenance *serial.Mailboxes, replies *outbox, stats *recorder) {
	r.turns, r.maintenance, r.outbox, r.stats = turns, maintenance, replies, stats
}
