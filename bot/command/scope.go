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

type scoping struct {
	*Handler
	*view.Exchange
}

// scopeTo chooses a scope; empty for the configured one.
func scopeTo(scope sessions.Scope) func(*Handler, context.Context, *view.Exchange, Call) string {
	return func(h *Handler, ctx context.Context, t *view.Exchange, _ Call) string {
		return scoping{h, t}.choose(ctx, scope)
	}
}

func (s scoping) show(ctx context.Context) string {
	if s.View.Session.ConversationType == sessions.Private {
		return wording.Say(wording.ScopePrivate, s.Lang)
	}
	place, err := s.store.PlaceOf(ctx, sessions.PlaceQuery{Group: s.Key.Group()})
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to read the scope of a group")
		return wording.Say(wording.UndoFailed, s.Lang)
	}
	origin := wording.ScopeConfigured
	if place.Chosen != "" {
		origin = wording.ScopeChosen
	}
	return s.describe(place.Chosen) + wording.Say(origin, s.Lang)
}

// choose moves no data, so that the way back loses nothing.
func (s scoping) choose(ctx context.Context, scope sessions.Scope) string {
	err := s.manage.ChooseScope(ctx, s.actor(s.Exchange), s.View.Session, scope)
	switch {
	case errors.Is(err, manage.GroupsOnly):
		return wording.Say(wording.ScopePrivate, s.Lang)
	case err != nil:
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to store the scope of a group")
		return wording.Say(wording.UndoFailed, s.Lang)
	}
	return wording.Say(wording.ScopeSet, s.Lang, s.describe(scope))
}

func (s scoping) describe(chosen sessions.Scope) string {
	if cmp.Or(chosen, s.cfg.Scope(s.View.Session.ConversationID)) == sessions.ScopeMember {
		return wording.Say(wording.ScopeOfMember, s.Lang)
	}
	return wording.Say(wording.ScopeOfGroup, s.Lang)
}
