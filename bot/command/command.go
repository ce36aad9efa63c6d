// Package command executes slash commands and words their answers. Parser, help, usage, suggestions and the check of
// rights come from the table in table.go: each row has its names, its right, and a command of a few parts. Changes of what the bot
// keeps go through package manage.
package command

import (
	"context"

	"ebb/bot/manage"
	"ebb/bot/parts"
	"ebb/bot/upkeep"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
	"ebb/sessions/serial"
)

// Handler executes commands and words their answers.
type Handler struct{ env env }

// New returns a Handler, usable after [Handler.Connect]. scope is the configured scope of a group.
func New(
	p *parts.Shared, views *view.Builder, store Stores, worker *upkeep.Worker, scope func(sessions.ConversationID) sessions.Scope, o Options,
) *Handler {
	return &Handler{env{
		shared: p, views: views, stores: store, worker: worker, scope: scope, opts: o, table: Commands,
		manage: manage.New(manage.Config{
			Rights: o.Rights, Erasures: o.Erasures, Sessions: store.Sessions, Compactions: store.Compactions, Scopes: store.Scopes, Upkeep: worker, Schedules: o.Schedules, Files: o.Files, Audit: o.Audit, FlushDeadline: p.InlineDeadline,
			Settings: views.Choices.Settings, Resolve: views.Choices.Resolve,
		}),
	}}
}

// Connect sets the mailboxes of upkeep and the receiver of counts, before the first command.
func (h *Handler) Connect(upkeep *serial.Mailboxes, stats Stats) {
	h.env.upkeep, h.env.stats = upkeep, stats
}

// Command executes the turn's command and returns the answer.
func (h *Handler) Command(ctx context.Context, t *view.CommandTurn) string {
	asked, table, roles := t.Asked, h.env.table, h.env.roles()
	switch {
	case outcomeOf(asked) == sessions.ErasedAll: // the turn was interrupted after the erasure
		return erasedBefore(asked, t.Lang)
	case asked.IsPress():
		return approveOf(&h.env).late(ctx, t)
	}
	c := table.Parse(h.env.views.Words.OwnWords(asked))
	switch {
	case c.Command == nil:
		return table.unknown(c.Name, t.Lang)
	case c.Use == nil:
		return c.Command.usage(t.Lang)
	case !roles.may(asked, roles.right(t.Lease.Key, c.Command, c.Use)):
		return wording.Say(c.Use.denied(c.Arg, roles.isAdmin(asked)), t.Lang)
	case !c.Use.takes(c.Arg):
		return c.Command.usage(t.Lang) // so that nothing is done by mistake
	}
	return c.Use.Run(&h.env, ctx, t, c)
}

// Decide implements turn.Commands.
func (h *Handler) Decide(ctx context.Context, l sessions.Lease, e sessions.Event) ([]sessions.Approval, error) {
	c := approveOf(&h.env)
	if r, ok := c.request(e); ok {
		return c.desk.Decide(ctx, l, r)
	}
	return nil, nil
}

// RefuseDecision says why a decision on calls of tools is refused; empty: it is not. over is set if the calls do not wait any more.
func (h *Handler) RefuseDecision(ctx context.Context, key sessions.Key, e sessions.Event, lang string) (text string, over bool, err error) {
	c := approveOf(&h.env)
	r, ok := c.request(e)
	if !ok {
		return wording.Say(wording.NotAdmin, lang), false, nil
	}
	return c.desk.Refusal(ctx, key, r, lang)
}

// Work implements turn.Commands.
func (h *Handler) Work(e sessions.Event) sessions.Work {
	c, roles := h.env.table.Parse(h.env.views.Words.OwnWords(e)), h.env.roles()
	if e.IsPress() || c.Use == nil || !roles.may(e, roles.right(e.Key, c.Command, c.Use)) || !c.Use.takes(c.Arg) {
		return ""
	}
	return c.Use.Work
}

// Stops implements turn.Commands: the conversation's owner may end a turn, and each asker their own messages of it. The bare name of the
// command is enough: people in a hurry leave out the slash.
func (h *Handler) Stops(e sessions.Event, asked []sessions.Event) []sessions.Event {
	return stopOf(&h.env).ends(e, asked)
}

// MayStop reports whether the sender of a /stop may stop a turn, and whether it ends then. asked is set if the turn answers the sender,
// shared if it answers others.
func (h *Handler) MayStop(e sessions.Event, asked, shared bool) (may, ends bool) {
	return stopOf(&h.env).may(e, asked, shared)
}

// Stopped implements turn.Commands. A card has its question above it.
func (h *Handler) Stopped(ctx context.Context, s view.Stopped) string {
	return stopOf(&h.env).receipt(ctx, s)
}

// Confirmations rewrites a bare yes or no behind a preview or a partial erasure into the command. It reads the log, so
// that it works on every replica and after a restart. Words that ask to keep a file become the command, too.
func (h *Handler) Confirmations(ctx context.Context, v *sessions.View) {
	confirmationsOf(&h.env).rewrite(ctx, v)
	for i := range v.Pending {
		keepOf(&h.env).rewrite(&v.Pending[i])
	}
}

// May reports whether a message's sender has the right to a command, by its English name. Uses for administrators alone are not
// considered.
func (h *Handler) May(e sessions.Event, command string) bool {
	roles := h.env.roles()
	for i := range h.env.table {
		if c := &h.env.table[i]; c.EN[0] == command {
			return roles.may(e, roles.right(e.Key, c, &Use{}))
		}
	}
	return false
}

// RefuseSchedule ends a schedule whose message is refused.
func (h *Handler) RefuseSchedule(ctx context.Context, s sessions.Schedule) error {
	return h.env.manage.RefuseSchedule(ctx, s)
}
