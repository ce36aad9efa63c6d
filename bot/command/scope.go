package command

import (
	"cmp"
	"context"
	"errors"

	"github.com/rs/zerolog"

	"ebb/bot/manage"
	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
)

// scopeCommand is /scope.
type scopeCommand struct {
	scopes interface {
		ScopeOf(ctx context.Context, group sessions.Key) (sessions.Scope, error)
	}
	configured func(sessions.ConversationID) sessions.Scope
	manage     *manage.Manager
	roles      roles
}

func scopeOf(e *env) scopeCommand { return scopeCommand{e.stores.Scopes, e.scope, e.manage, e.roles()} }

func (s scopeCommand) toGroup(ctx context.Context, t *view.CommandTurn, _ Call) string {
	return s.choose(ctx, t, sessions.ScopeGroup)
}

func (s scopeCommand) toMember(ctx context.Context, t *view.CommandTurn, _ Call) string {
	return s.choose(ctx, t, sessions.ScopeMember)
}

func (s scopeCommand) toDefault(ctx context.Context, t *view.CommandTurn, _ Call) string {
	return s.choose(ctx, t, "")
}

func (s scopeCommand) show(ctx context.Context, t *view.CommandTurn, _ Call) string {
	if t.View.Session.ConversationType == sessions.Private {
		return wording.Say(wording.ScopePrivate, t.Lang)
	}
	chosen, err := s.scopes.ScopeOf(ctx, t.Lease.Key.Group())
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read the scope of a group")
		return wording.Say(wording.UndoFailed, t.Lang)
	}
	origin := wording.ScopeConfigured
	if chosen != "" {
		origin = wording.ScopeChosen
	}
	return s.describe(t, chosen) + wording.Say(origin, t.Lang)
}

// choose sets a scope, empty for the configured one. It moves no data, so that the way back loses nothing.
func (s scopeCommand) choose(ctx context.Context, t *view.CommandTurn, scope sessions.Scope) string {
	err := s.manage.ChooseScope(ctx, s.roles.actor(t), t.View.Session, scope)
	switch {
	case errors.Is(err, manage.GroupsOnly):
		return wording.Say(wording.ScopePrivate, t.Lang)
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to store the scope of a group")
		return wording.Say(wording.UndoFailed, t.Lang)
	}
	return wording.Say(wording.ScopeSet, t.Lang, s.describe(t, scope))
}

func (s scopeCommand) describe(t *view.CommandTurn, chosen sessions.Scope) string {
	if cmp.Or(chosen, s.configured(t.View.Session.ConversationID)) == sessions.ScopeMember {
		return wording.Say(wording.ScopeOfMember, t.Lang)
	}
	return wording.Say(wording.ScopeOfGroup, t.Lang)
}
