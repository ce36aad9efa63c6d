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
	Rights memory.Rights // nil: /memory, /forget and /export answer that they are unavailable
	Leases *lease.Holder
	Views  *view.Builder
	Worker *upkeep.Worker
	Now    func() time.Time // the storage's clock

	Languages wording.Languages
	Language  string // language of fixed words for texts without letters
	Location  *time.Location
	Admins    []sessions.UserID
	Own       view.Own // resolves a conversation's own settings; nil: none

	CommitTimeout   time.Duration
	InlineDeadline  time.Duration
	CompactDeadline time.Duration
}

// Handler executes commands and words their answers.
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

// Stats counts compactions that commands caused.
type Stats interface{ Compacted(e sessions.LogEntry) }

// New returns a Handler, usable after [Handler.Connect].
func New(cfg Config) *Handler {
	return &Handler{
		cfg: cfg, store: cfg.Store, memory: cfg.Memory, leases: cfg.Leases, views: cfg.Views, worker: cfg.Worker, now: cfg.Now, languages: cfg.Languages,
	}
}

// Connect sets the mailboxes of upkeep and the receiver of counts, before the first command.
func (h *Handler) Connect(upkeep *serial.Mailboxes, stats Stats) {
	h.upkeep, h.stats = upkeep, stats
}

// handlers maps commands by their English names.
var handlers = map[string]func(*Handler, context.Context, *view.Exchange, string) string{
	"status":  (*Handler).status,
	"compact": (*Handler).compactCommand,
	"memory":  (*Handler).memoryCommand,
	"forget":  (*Handler).forgetCommand,
	"export":  (*Handler).exportCommand,
	"new":     (*Handler).renew,
	"help":    (*Handler).help,
}

// Command executes the turn's command and returns the answer.
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

// mayManage reports whether a sender may change the bot's view of a conversation: anyone in a private chat,
// administrators in a group. A sender without a staff id is outside the organization,
// and no administrator.
func (h *Handler) mayManage(e sessions.Event) bool {
	return e.Message != nil && (e.Message.ConversationType == sessions.Private || h.isAdmin(e))
}

// isAdmin reports whether a message's sender is an administrator, in any conversation.
func (h *Handler) isAdmin(e sessions.Event) bool {
	m := e.Message
	return m != nil && m.StaffID != "" && (m.Admin || slices.Contains(h.cfg.Admins, m.StaffID))
}
