package turn

import (
	"context"
	"time"

	"ebb/bot/approval"
	"ebb/bot/chat"
	"ebb/bot/parts"
	"ebb/bot/sendfile"
	"ebb/bot/turn/answer"
	"ebb/bot/turn/choice"
	"ebb/bot/turn/slot"
	"ebb/bot/view"
	"ebb/sessions"
	"ebb/sessions/llm"
	"ebb/sessions/serial"
)

// Turns marks, answers and commits messages. See [sessions.Turns].
type Turns interface {
	slot.Turns
	answer.Store
	Abandon(ctx context.Context, l sessions.Lease, blamed []int64) error
	Commit(ctx context.Context, l sessions.Lease, t sessions.TurnResult) (sessions.Committed, error)
}

// Facts passes facts on to another turn. See [memory.Facts].
type Facts interface {
	Pass(ctx context.Context, l sessions.Lease, people []sessions.UserID) error
}

// Stores are those that turns use.
type Stores struct {
	Turns  Turns
	Inbox  slot.Waiting
	Cards  slot.Cards
	Outbox slot.Notices
	Limits choice.Counts
	Facts  Facts
	Search answer.Memory
}

// Config has the dependencies and settings of a [Runner]. All are required.
type Config struct {
	Shared    *parts.Shared
	Views     *view.Builder
	Stores    Stores
	Model     llm.Model
	Upkeep    Upkeep
	Commands  Commands
	Transport chat.Transport
	Display   chat.Display
	Approvals *approval.Desk
	Media     answer.Media
	Files     sendfile.Desk

	MaxMerged     int // messages answered in one turn
	MaxToolRounds int
	MaxTurns      int // concurrent turns
	StaleAfter    time.Duration
	Gather        time.Duration // wait of a turn for further messages; 0: none
	TurnTimeout   time.Duration
	BusyNote      time.Duration // a longer turn is announced once; 0: never
}

// Runner runs turns: from waiting messages to a committed answer. The stages of a turn are its fields.
type Runner struct {
	cfg        Config
	shared     *parts.Shared
	slots      *slot.Slots
	chooser    *choice.Chooser
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
	// Decide decides on calls of tools if the message is such a command and its sender may, and returns them. A repeated attempt of the
	// message returns them again.
	Decide(ctx context.Context, l sessions.Lease, e sessions.Event) ([]sessions.Approval, error)
	// Confirmations looks up which waiting messages confirm an earlier command.
	Confirmations(ctx context.Context, v *sessions.View)
}

// Outbox delivers committed replies.
type Outbox interface {
	slot.Outbox
	// Backpressured reports whether the session has too many unsent replies, Queued whether a reply would wait behind
	// others.
	Backpressured(key sessions.Key) bool
	Queued(key sessions.Key, card bool) bool
}

// Stats counts turns.
type Stats interface {
	answer.Stats
	TurnBegun(key sessions.Key, asked []sessions.Event)
	TurnCommitted(key sessions.Key, kind choice.Kind, asked []sessions.Event, took time.Duration, now time.Time, stopping bool)
	LimitReached(limit sessions.Limit)
	ReportDoubted(model string)
	// CallsDecided counts calls that needed an approval by outcome: asked, or a [sessions.ApprovalState].
	CallsDecided(outcome string, n int)
}

// New returns a runner; [Runner.Connect] completes it.
func New(cfg Config) *Runner { return &Runner{cfg: cfg, shared: cfg.Shared} }

// Connect sets the mailboxes of turns and of upkeep, the outbox and the statistics, and puts the stages together. It is called once,
// before any other method.
func (r *Runner) Connect(turns, maintenance *serial.Mailboxes, replies Outbox, stats Stats) {
	r.turns, r.maintenance, r.outbox, r.stats = turns, maintenance, replies, stats
	c, p := &r.cfg, r.shared
	r.chooser = choice.New(choice.Config{Shared: p, Views: c.Views, Commands: c.Commands, Counts: c.Stores.Limits, Reached: stats.LimitReached, StaleAfter: c.StaleAfter})
	receiver, ok := c.Transport.(chat.Receiver)
	if !ok {
		receiver = chat.NoReceiver{}
	}
	r.slots = slot.New(slot.Config{
		Shared: p, Turns: c.Stores.Turns, Waiting: c.Stores.Inbox, Cards: c.Stores.Cards, Notices: c.Stores.Outbox, Outbox: replies, Commands: c.Commands, Chooser: r.chooser, Display: c.Display, Receiver: receiver,
		MaxTurns: c.MaxTurns, MaxMerged: c.MaxMerged, Gather: c.Gather, BusyNote: c.BusyNote,
	})
	r.asker = answer.New(answer.Config{
		Shared: p, Views: c.Views, Store: c.Stores.Turns, Memory: c.Stores.Search, Model: c.Model, Upkeep: c.Upkeep, May: c.Commands.May, Stats: stats, Media: c.Media,
		Approvals: c.Approvals, Files: c.Files,
		MaxToolRounds: c.MaxToolRounds,
	})
	r.accountant = &answer.Accountant{Views: c.Views, ReportDoubted: stats.ReportDoubted}
}

// Wake starts a turn for a stored message, or makes the running one look for a /stop.
func (r *Runner) Wake(key sessions.Key) {
	r.slots.Gathering.Note(key)
	r.slots.Running.Note(key)
	r.turns.Wake(key)
}

// Look makes a session's running turn look for its stop and for the end of its lease.
func (r *Runner) Look(key sessions.Key) { r.slots.Running.Note(key) }

// Running lists the leases of running turns. Other work of a session may lose its lease meanwhile, and forget it.
func (r *Runner) Running() []sessions.Lease { return r.slots.Running.Leases() }
