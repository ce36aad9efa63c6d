package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/view"
	"ebb/bot/wording"
	"ebb/sessions"
)

const stopName = "stop"

// Stops implements turn.Commands: the conversation's owner may end a turn, and each asker their own messages of it. The bare name of the
// command is enough: people in a hurry leave out the slash.
func (h *Handler) Stops(e sessions.Event, asked []sessions.Event) []sessions.Event {
	if e.IsScheduled() {
		return nil
	}
	words := h.views.OwnWords(e)
	c := h.commands.Parse(words)
	if c.Name == "" {
		c = h.commands.Parse("/" + trimMarks(words))
	}
	if c.Use == nil || c.Name != stopName || !c.Use.takes(c.Arg) || !h.may(e, h.right(c.Command, c.Use)) {
		return nil
	}
	return stoppable(h, e, asked)
}

// MayStop reports whether the sender of a /stop may stop a turn, and whether it ends then. asked is set if the turn answers the sender,
// shared if it answers others.
func MayStop(h *Handler, e sessions.Event, asked, shared bool) (may, ends bool) {
	c := h.commands.Parse("/" + stopName)
	if !h.may(e, h.right(c.Command, c.Use)) {
		return false, false
	}
	isOwner := h.may(e, Owner)
	return asked || isOwner, !shared || isOwner
}

func stoppable(h *Handler, e sessions.Event, asked []sessions.Event) []sessions.Event {
	if h.may(e, Owner) {
		return asked
	}
	return slices.DeleteFunc(slices.Clone(asked), func(q sessions.Event) bool { return q.SenderID == "" || q.SenderID != e.SenderID })
}

// Stopped implements turn.Commands. A card has its question above it.
func (h *Handler) Stopped(ctx context.Context, x *view.Exchange, s view.Stopped) string {
	e := stopping{h, x}
	one, stop := context.WithTimeout(ctx, waitingTime)
	defer stop()
	switch first := e.quote(x.Asked[0]); {
	case s.Others:
		return wording.Say(wording.StoppedOwn, x.Lang, first)
	case s.Shown:
		return strings.TrimSpace(s.Said+"\n\n"+wording.Say(wording.CutShort, x.Lang)) + e.stillWaiting(one, s.By)
	default:
		return strings.TrimSpace(s.Said + "\n\n" + wording.Say(wording.TurnStopped, x.Lang, first) + e.stillWaiting(one, s.By))
	}
}

// shownWords is in characters.
const shownWaiting, shownWords = 3, 30

type stopping struct {
	*Handler
	*view.Exchange
}

// answer is for a command that stopped nothing.
func (s stopping) answer(ctx context.Context) string {
	text := wording.Say(wording.NothingRuns, s.Lang)
	if s.strangersTurn() {
		text = wording.Say(wording.NotYourTurn, s.Lang)
	}
	return text + s.stillWaiting(ctx, nil)
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
	return len(stoppable(s.Handler, s.Asked[0], tail[first:at+1])) == 0
}

// waitingTime bounds the look for waiting messages: a stopped turn ends without them.
const waitingTime = time.Second

func (s stopping) stillWaiting(ctx context.Context, stops []sessions.Event) string {
	pending, err := s.store.Pending(ctx, s.Key, maxWaiting)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to list the waiting messages")
		return ""
	}
	var parts []string
	for _, e := range slices.Backward(pending) {
		isAsked := slices.ContainsFunc(slices.Concat(s.Asked, stops), func(a sessions.Event) bool { return a.ID == e.ID })
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
