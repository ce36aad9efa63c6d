package bot

import (
	"context"
	"slices"
	"time"

	"ebb/memory"
	"ebb/sessions"
	"ebb/sessions/lease"
	"ebb/sessions/serial"
)

// handlerConfig is what a [Handler] needs.
type handlerConfig struct {
	Store  sessions.Store
	Memory memory.Store
	Rights memory.Rights // nil: /memory, /forget and /export say that they can't at the moment
	Leases *lease.Holder
	Views  *Builder
	Worker *Worker
	Now    func() time.Time // the storage's clock

	Languages languages
	Language  string // of fixed words where a text shows none
	Location  *time.Location
	Admins    []sessions.UserID
	Own       Own // resolves what a conversation keeps of its own; nil: nothing

	CommitTimeout   time.Duration
	InlineDeadline  time.Duration
	CompactDeadline time.Duration
}

// Handler answers commands.
type Handler struct {
	cfg       handlerConfig
	store     sessions.Store
	memory    memory.Store
	leases    *lease.Holder
	views     *Builder
	worker    *Worker
	now       func() time.Time
	languages languages

	upkeep *serial.Mailboxes
	stats  *recorder
}

func newHandler(cfg handlerConfig) *Handler {
	return &Handler{
		cfg: cfg, store: cfg.Store, memory: cfg.Memory, leases: cfg.Leases, views: cfg.Views, worker: cfg.Worker, now: cfg.Now, languages: cfg.Languages,
	}
}

// connect gives the handler the mailboxes of upkeep.
func (h *Handler) connect(upkeep *serial.Mailboxes, stats *recorder) {
	h.upkeep, h.stats = upkeep, stats
}

// handlers are the commands by their English names.
var handlers = map[string]func(*Handler, context.Context, *exchange, string) string{
	"status":  (*Handler).status,
	"compact": (*Handler).compactCommand,
	"memory":  (*Handler).memoryCommand,
	"forget":  (*Handler).forgetCommand,
	"export":  (*Handler).exportCommand,
	"new":     (*Handler).renew,
	"help":    (*Handler).help,
}

// command runs the turn's command and returns what to tell the conversation.
func (h *Handler) command(ctx context.Context, t *exchange) string {
	name, arguments, ok := canonical(parseCommand(h.views.ownWords(t.asked[0])))
	if !ok {
		return say(sayNoCommand, t.lang)
	}
	return handlers[name](h, ctx, t, arguments)
}

func (h *Handler) help(_ context.Context, t *exchange, _ string) string { return say(sayHelp, t.lang) }

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
