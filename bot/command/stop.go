package command

import (
	"context"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
)

const stopName = "stop"

// Stops implements turn.Commands: the only asker and the conversation's owner may stop a turn. One of several would cancel others'
// questions. The bare name of the command is enough: people in a hurry leave out the slash.
func (h *Handler) Stops(e sessions.Event, asked []sessions.Event) bool {
	if e.IsScheduled() {
		return false
	}
	words := h.views.OwnWords(e)
	c := h.commands.Parse(words)
	if c.Name == "" {
		c = h.commands.Parse("/" + trimMarks(words))
	}
	return c.Use != nil && c.Name == stopName && c.Use.takes(c.Arg) && h.may(e, h.right(c.Command, c.Use)) && mayStop(h, e, asked)
}

// MayStop reports whether the sender of a /stop may stop a turn; alone is set if the turn answers the sender alone.
func (h *Handler) MayStop(e sessions.Event, alone bool) bool {
	c := h.commands.Parse("/" + stopName)
	return h.may(e, h.right(c.Command, c.Use)) && (alone || h.may(e, Owner))
}

func mayStop(h *Handler, e sessions.Event, asked []sessions.Event) bool {
	others := func(q sessions.Event) bool { return q.SenderID == "" || q.SenderID != e.SenderID }
	return h.may(e, Owner) || len(asked) > 0 && !slices.ContainsFunc(asked, others)
}

// shownWords is in characters.
const shownWaiting, shownWords = 3, 30

type stopping struct {
	*Handler
	*view.Exchange
}

// answer comes after the stop, which happened while the message waited.
func (s stopping) answer(ctx context.Context) string {
	text := wording.Say(wording.NothingRuns, s.Lang)
	switch {
	case len(s.Stopped) > 0:
		text = wording.Say(wording.TurnStopped, s.Lang, s.quote(s.Stopped[0]))
	case s.strangersTurn():
		text = wording.Say(wording.NotYourTurn, s.Lang)
	}
	return text + s.stillWaiting(ctx)
}

// strangersTurn reports whether a turn ran while the command waited that its sender has no right to stop.
func (s stopping) strangersTurn() bool {
	tail := s.View.Tail
	at := len(tail) - 1
	for at >= 0 && tail[at].Role != sessions.RoleUser {
		at--
	}
	if at < 0 || tail[len(tail)-1].Role != sessions.RoleAssistant || !tail[len(tail)-1].CreatedAt.After(s.Asked[0].CreatedAt) {
		return false
	}
	first := at
	for first > 0 && tail[first-1].Role == sessions.RoleUser {
		first--
	}
	return !mayStop(s.Handler, s.Asked[0], tail[first:at+1])
}

func (s stopping) stillWaiting(ctx context.Context) string {
	pending, err := s.store.Pending(ctx, s.Key, maxWaiting)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to list the waiting messages")
		return ""
	}
	var parts []string
	for _, e := range slices.Backward(pending) {
		isAsked := slices.ContainsFunc(s.Asked, func(a sessions.Event) bool { return a.ID == e.ID })
		if !isAsked && s.commands.Parse(s.views.OwnWords(e)).Name != stopName {
			parts = append(parts, wording.Literal(sessions.Nick(e.SenderNick))+" “"+s.quote(e)+"”")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	n, more := len(parts), ""
	if n > shownWaiting {
		parts, more = parts[:shownWaiting], "…"
	}
	return wording.Say(wording.StillWaiting, s.Lang, n, strings.Join(parts, wording.Say(wording.Comma, s.Lang))+more)
}

const maxWaiting = 100

func (s stopping) quote(e sessions.Event) string {
	return wording.Literal(headOf(s.views.OwnWords(e), shownWords))
}
