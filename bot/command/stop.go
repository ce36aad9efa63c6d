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

// stopCommand is /stop.
type stopCommand struct {
	roles   roles
	views   *view.Builder
	table   Table
	waiting waitingStore
}

func stopOf(e *env) stopCommand { return stopCommand{e.roles(), e.views, e.table, e.stores.Inbox} }

// ends returns the messages of a turn that a message ends: one with the words of the command, or a press of the card's button.
func (s stopCommand) ends(e sessions.Event, asked []sessions.Event) []sessions.Event {
	if isOther := e.IsPress() && e.Message.Press != nil && e.Message.Press.Button != sessions.ButtonStop; isOther {
		return nil
	}
	if e.IsScheduled() || !e.IsPress() && !s.isWritten(s.views.Words.OwnWords(e)) || !s.allowed(e) {
		return nil
	}
	return s.stoppable(e, asked)
}

func (s stopCommand) isWritten(words string) bool {
	c := s.table.Parse(words)
	if c.Name == "" {
		c = s.table.Parse("/" + trimMarks(words))
	}
	return c.Use != nil && c.Name == stopName && c.Use.takes(c.Arg)
}

// allowed reports whether the sender has the right to the command.
func (s stopCommand) allowed(e sessions.Event) bool {
	c := s.table.Parse("/" + stopName)
	return s.roles.may(e, s.roles.right(e.Key, c.Command, c.Use))
}

func (s stopCommand) may(e sessions.Event, asked, shared bool) (may, ends bool) {
	if !s.allowed(e) {
		return false, false
	}
	isOwner := s.roles.may(e, Owner)
	return asked || isOwner, !shared || isOwner
}

func (s stopCommand) stoppable(e sessions.Event, asked []sessions.Event) []sessions.Event {
	if s.roles.may(e, Owner) {
		return asked
	}
	return slices.DeleteFunc(slices.Clone(asked), func(q sessions.Event) bool { return q.SenderID == "" || q.SenderID != e.SenderID })
}

func (s stopCommand) receipt(ctx context.Context, t view.Stopped) string {
	one, stop := context.WithTimeout(ctx, waitingTime)
	defer stop()
	waiting := func() string { return s.besides(one, t.Key, slices.Concat(t.Asked, t.By), t.Lang) }
	switch first := quoteOf(s.views, t.Asked[0]); {
	case t.Others:
		return wording.Say(wording.StoppedOwn, t.Lang, first)
	case t.Shown:
		return strings.TrimSpace(t.Said+"\n\n"+wording.Say(wording.CutShort, t.Lang)) + waiting()
	default:
		return strings.TrimSpace(t.Said + "\n\n" + wording.Say(wording.TurnStopped, t.Lang, first) + waiting())
	}
}

// shownWords is in characters.
const shownWaiting, shownWords = 3, 30

// nothing answers a command that stopped nothing.
func (s stopCommand) nothing(ctx context.Context, t *view.CommandTurn, _ Call) string {
	text := wording.Say(wording.NothingRuns, t.Lang)
	if s.isStrangersTurn(t) {
		text = wording.Say(wording.NotYourTurn, t.Lang)
	}
	return text + s.besides(ctx, t.Lease.Key, []sessions.Event{t.Asked}, t.Lang)
}

// isStrangersTurn reports whether a turn ran while the command waited that its sender has no right to stop.
func (s stopCommand) isStrangersTurn(t *view.CommandTurn) bool {
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
	return len(s.stoppable(t.Asked, tail[first:at+1])) == 0
}

// waitingTime bounds the look for waiting messages: a stopped turn ends without them.
const waitingTime = time.Second

// waitingStore lists the newest messages first.
type waitingStore interface {
	Pending(ctx context.Context, key sessions.Key, limit int) ([]sessions.Event, error)
}

// besides lists the waiting messages of a session for people, without those of a turn and without commands that stop it.
func (s stopCommand) besides(ctx context.Context, key sessions.Key, taken []sessions.Event, lang string) string {
	pending, err := s.waiting.Pending(ctx, key, maxWaiting)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to list the waiting messages")
		return ""
	}
	var parts []string
	for _, e := range slices.Backward(pending) {
		isTaken := slices.ContainsFunc(taken, func(a sessions.Event) bool { return a.ID == e.ID })
		if !isTaken && s.table.Parse(s.views.Words.OwnWords(e)).Name != stopName {
			parts = append(parts, wording.Literal(sessions.Nick(e.SenderNick))+" “"+quoteOf(s.views, e)+"”")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	n, more := len(parts), ""
	if n > shownWaiting {
		parts, more = parts[:shownWaiting], "…"
	}
	return wording.Say(wording.StillWaiting, lang, n, strings.Join(parts, wording.Say(wording.Comma, lang))+more)
}

const maxWaiting = 100

func quoteOf(views *view.Builder, e sessions.Event) string {
	return wording.Literal(headOf(views.Words.OwnWords(e), shownWords))
}
