package command

import (
	"context"
	"slices"

	"ebb/bot/manage"
	"ebb/bot/parts"
	"ebb/bot/schedule"
	"ebb/bot/upkeep"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/memory"
	"ebb/memory/pages"
	"ebb/sessions"
	"ebb/sessions/serial"
)

// Options are the parts of a [Handler] that may be missing.
type Options struct {
	Rights     memory.Rights      // nil: /memory, /forget and /export answer that they are unavailable
	CallBudget func() CallBudget  // nil: no calls are counted
	Schedules  sessions.Schedules // nil: there are none
	Planner    *schedule.Planner  // nil: /remind answers that reminders are off
	Audit      pages.Audit        // see [manage.Config]
}

// CallBudget is the state of the month's counted calls to the chat platform.
type CallBudget struct {
	Calls, Quota int64 // Quota 0: no bound
	Level        int   // 0 streamed cards, 1 unstreamed cards, 2 webhooks and calls without an alternative, 3 webhooks
}

// Handler executes commands and words their answers.
type Handler struct {
	shared   *parts.Shared
	views    *view.Builder
	store    sessions.Store
	memory   memory.Store
	worker   *upkeep.Worker
	scope    func(sessions.ConversationID) sessions.Scope
	opts     Options
	commands Table
	manage   *manage.Manager

	upkeep *serial.Mailboxes
	stats  Stats
}

// Stats counts compactions that commands caused.
type Stats interface{ Compacted(e sessions.LogEntry) }

// New returns a Handler, usable after [Handler.Connect]. scope is the configured scope of a group.
func New(
	p *parts.Shared, views *view.Builder, store sessions.Store, facts memory.Store, worker *upkeep.Worker, scope func(sessions.ConversationID) sessions.Scope, o Options,
) *Handler {
	return &Handler{
		shared: p, views: views, store: store, memory: facts, worker: worker, scope: scope, opts: o, commands: Commands,
		manage: manage.New(manage.Config{
			Rights: o.Rights, Turns: store, Upkeep: worker, Schedules: o.Schedules, Audit: o.Audit, FlushDeadline: p.InlineDeadline,
			Settings: views.Settings, Resolve: views.Resolve,
		}),
	}
}

// Connect sets the mailboxes of upkeep and the receiver of counts, before the first command.
func (h *Handler) Connect(upkeep *serial.Mailboxes, stats Stats) {
	h.upkeep, h.stats = upkeep, stats
}

// Command executes the turn's command and returns the answer.
func (h *Handler) Command(ctx context.Context, t *view.CommandTurn) string {
	asked := t.Asked
	if outcomeOf(asked) == sessions.ErasedAll { // the turn was interrupted after the erasure
		return erasedBefore(asked, t.Lang)
	}
	c := h.commands.Parse(h.views.OwnWords(asked))
	switch {
	case c.Command == nil:
		return h.commands.unknown(c.Name, t.Lang)
	case c.Use == nil:
		return c.Command.usage(t.Lang)
	case !h.may(asked, h.right(c.Command, c.Use)):
		return wording.Say(c.Use.denied(c.Arg, h.isAdmin(asked)), t.Lang)
	case !c.Use.takes(c.Arg):
		return c.Command.usage(t.Lang) // so that nothing is done by mistake
	}
	return c.Use.Run(h, ctx, t, c)
}

// Work implements turn.Commands.
func (h *Handler) Work(e sessions.Event) sessions.Work {
	c := h.commands.Parse(h.views.OwnWords(e))
	if c.Use == nil || !h.may(e, h.right(c.Command, c.Use)) || !c.Use.takes(c.Arg) {
		return ""
	}
	return c.Use.Work
}

// denied is the answer to a sender without the right. A use that an administrator of the group lacks is for those of the installation.
func (u *Use) denied(arg string, admin bool) wording.Phrase {
	switch {
	case admin:
		return wording.NotInstallation
	case u.Denied == nil:
		return wording.NotAdmin
	}
	return u.Denied(arg)
}

func (t Table) unknown(name, lang string) string {
	if near := t.Near(name); near != "" {
		return wording.Say(wording.NoCommandNear, lang, near)
	}
	return wording.Say(wording.NoCommand, lang)
}

// may treats a sender without a staff id as outside the organization, and as no administrator.
func (h *Handler) may(e sessions.Event, right Right) bool {
	switch right {
	case Owner:
		return e.Message != nil && e.Message.ConversationType == sessions.Private || h.isAdmin(e)
	case Admin:
		return h.isAdmin(e)
	case Installation:
		return h.role(e) == manage.Admin
	}
	return true
}

func (h *Handler) actor(t *view.CommandTurn) manage.Actor {
	asked := t.Asked
	return manage.Actor{
		Role: h.role(asked), Person: asked.SenderID, Reader: t.Reader(),
		Asking: memory.Asking{Lease: t.Lease, Event: asked.ID, Language: t.Lang},
	}
}

// isAdmin reports whether a message's sender administers its group, or the installation.
func (h *Handler) isAdmin(e sessions.Event) bool { return h.role(e) >= manage.GroupAdmin }

// role follows from the message. The platform's mark of an administrator counts in the group of the message alone.
func (h *Handler) role(e sessions.Event) manage.Role {
	switch m := e.Message; {
	case m == nil || m.StaffID == "" || m.External:
		return manage.Member
	case slices.Contains(h.shared.Current.Get().Admins, m.StaffID):
		return manage.Admin
	case m.Admin && m.ConversationType == sessions.Group:
		return manage.GroupAdmin
	}
	return manage.Member
}
