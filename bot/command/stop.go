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
func (h *Handler) Stopped(ctx context.Context, s view.Stopped) string {
	one, stop := context.WithTimeout(ctx, waitingTime)
	defer stop()
	waiting := func() string {
		return waitingList{h.store, h.views, h.commands, s.Lang}.besides(one, s.Key, slices.Concat(s.Asked, s.By))
	}
	switch first := quoteOf(h.views, s.Asked[0]); {
	case s.Others:
		return wording.Say(wording.StoppedOwn, s.Lang, first)
	case s.Shown:
		return strings.TrimSpace(s.Said+"\n\n"+wording.Say(wording.CutShort, s.Lang)) + waiting()
	default:
		return strings.TrimSpace(s.Said + "\n\n" + wording.Say(wording.TurnStopped, s.Lang, first) + waiting())
	}
}

// shownWords is in characters.
const shownWaiting, shownWords = 3, 30

// stopNothing answers a command that stopped nothing.
func stopNothing(ctx context.Context, h *Handler, t *view.CommandTurn) string {
	text := wording.Say(wording.NothingRuns, t.Lang)
	if isStrangersTurn(h, t) {
		text = wording.Say(wording.NotYourTurn, t.Lang)
	}
	return text + waitingList{h.store, h.views, h.commands, t.Lang}.besides(ctx, t.Lease.Key, []sessions.Event{t.Asked})
}

// isStrangersTurn reports whether a turn ran while the command waited that its sender has no right to stop.
func isStrangersTurn(h *Handler, t *view.CommandTurn) bool {
	tail := t.View.Tail
	at := len(tail) - 1
	for at >= 0 && tail[at].Role != sessions.RoleUser {
		at--
	}
	if at < 0 || tail[len(tail)-1].Role != sessions.RoleAssistant || !tail[len(tail)-1].CreatedAt.After(t.Asked.CreatedAt) {
		return false
	}
	first := at
	for first > 0 && tail[first-1].Role == sessions.RoleUser {
		first--
	}
	return len(stoppable(h, t.Asked, tail[first:at+1])) == 0
}

// waitingTime bounds the look for waiting messages: a stopped turn ends without them.
const waitingTime = time.Second

// waitingList lists the waiting messages of a session for people.
type waitingList struct {
	store interface {
		Pending(ctx context.Context, key sessions.Key, limit int) ([]sessions.Event, error)
	}
	views    *view.Builder
	commands Table
	lang     string
}

// besides lists them without those of a turn, and without commands that stop it.
func (w waitingList) besides(ctx context.Context, key sessions.Key, taken []sessions.Event) string {
	pending, err := w.store.Pending(ctx, key, maxWaiting)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to list the waiting messages")
		return ""
	}
	var parts []string
	for _, e := range slices.Backward(pending) {
		isTaken := slices.ContainsFunc(taken, func(a sessions.Event) bool { return a.ID == e.ID })
		if !isTaken && w.commands.Parse(w.views.OwnWords(e)).Name != stopName {
			parts = append(parts, wording.Literal(sessions.Nick(e.SenderNick))+" “"+quoteOf(w.views, e)+"”")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	n, more := len(parts), ""
	if n > shownWaiting {
		parts, more = parts[:shownWaiting], "…"
	}
	return wording.Say(wording.StillWaiting, w.lang, n, strings.Join(parts, wording.Say(wording.Comma, w.lang))+more)
}

const maxWaiting = 100

func quoteOf(views *view.Builder, e sessions.Event) string {
	return wording.Literal(headOf(views.OwnWords(e), shownWords))
}
