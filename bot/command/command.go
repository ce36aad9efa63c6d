package command

import (
	"context"
	"slices"
	"time"

	"ebb/bot/upkeep"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/lease"
	"ebb/sessions/serial"
)

// Config is what a [Handler] needs.
type Config struct {
	Store  sessions.Store
	Memory memory.Store
	Rights memory.Rights // nil: /memory, /forget and /export say that they can't at the moment
	Leases *lease.Holder
	Views  *view.Builder
	Worker *upkeep.Worker
	Now    func() time.Time // the storage's clock

	Languages wording.Languages
	Language  string // of fixed words where a text shows none
	Location  *time.Location
	Admins    []sessions.UserID
	Own       view.Own // resolves what a conversation keeps of its own; nil: nothing

	CommitTimeout   time.Duration
	InlineDeadline  time.Duration
	CompactDeadline time.Duration
}

// Handler answers commands.
type Handler struct {
	cfg       Config
	store     sessions.Store
	memory    memory.Store
	leases    *lease.Holder
	views     *view.Builder
	worker    *upkeep.Worker
	now       func() time.Time
	languages wording.Languages

	upkeep *serial.Mailboxes
	stats  Stats
}

// Stats counts compactions by hand.
type Stats interface{ Compacted(e sessions.LogEntry) }

func New(cfg Config) *Handler {
	return &Handler{
		cfg: cfg, store: cfg.Store, memory: cfg.Memory, leases: cfg.Leases, views: cfg.Views, worker: cfg.Worker, now: cfg.Now, languages: cfg.Languages,
	}
}

// Connect gives the handler the mailboxes of upkeep.
func (h *Handler) Connect(upkeep *serial.Mailboxes, stats Stats) {
	h.upkeep, h.stats = upkeep, stats
}

// handlers are the commands by their English names.
var handlers = map[string]func(*Handler, context.Context, *view.Exchange, string) string{
	"status":  (*Handler).status,
	"compact": (*Handler).compactCommand,
	"memory":  (*Handler).memoryCommand,
	"forget":  (*Handler).forgetCommand,
	"export":  (*Handler).exportCommand,
	"new":     (*Handler).renew,
	"help":    (*Handler).help,
}

// Command runs the turn's command and returns what to tell the conversation.
func (h *Handler) Command(ctx context.Context, t *view.Exchange) string {
	name, arguments, ok := wording.Canonical(wording.ParseCommand(h.views.OwnWords(t.Asked[0])))
	if !ok {
		return wording.Say(wording.NoCommand, t.Lang)
	}
	return handlers[name](h, ctx, t, arguments)
}

func (h *Handler) help(_ context.Context, t *view.Exchange, _ string) string {
	return wording.Say(wording.Help, t.Lang)
}

// mayManage reports whether the sender of a message may change what the bot sees of a conversation: anyone in a private
// chat, administrators in a group. Who has no staff id is a stranger to the organisation.
func (h *Handler) mayManage(e sessions.Event) bool {
	return e.Message != nil && (e.Message.ConversationType == sessions.Private || h.isAdmin(e))
}

// isAdmin reports whether the sender of a message is an administrator, wherever they write.
func (h *Handler) isAdmin(e sessions.Event) bool {
	m := e.Message
	return m != nil && m.StaffID != "" && (m.Admin || slices.Contains(h.cfg.Admins, m.StaffID))
}
