package slot

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"ebb/bot/chat"
	"ebb/bot/turn/choice"
	"ebb/sessions"
	"ebb/sessions/guard"
)

// lookWindow bounds a look for a /stop to the newest messages.
const lookWindow = 100

// Inbox looks at the waiting messages of sessions, and finds the commands among them that stop a turn.
type Inbox struct {
	store    Waiting
	commands choice.Commands
	running  *Running
	timeout  time.Duration // bound of one look
}

// logPanic is for looks at waiting messages: their words may cause a panic, which ends neither the process nor a turn.
func logPanic(ctx context.Context) {
	if p := recover(); p != nil {
		guard.Count(guard.Session)
		zerolog.Ctx(ctx).Error().Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("Look at waiting messages panicked")
	}
}

// newest lists the newest messages first.
func (i Inbox) newest(ctx context.Context, key sessions.Key) ([]sessions.Event, error) {
	one, stop := context.WithTimeout(ctx, i.timeout)
	defer stop()
	return i.store.Pending(one, key, lookWindow)
}

// Since is the newest event before a turn: an earlier command was meant for an earlier turn. It is 0 without one. A turn that goes on for
// other askers is none: their stops may have come before its commit.
func Since(v sessions.View) int64 {
	var goesOn, within bool
	for _, e := range slices.Backward(v.Tail) {
		if e.Role == sessions.RoleUser {
			goesOn, within = goesOn && !within || e.Message != nil && e.Message.Next != 0 &&
				slices.ContainsFunc(v.Pending, func(p sessions.Event) bool { return p.ID == e.Message.Next }), false
			continue
		}
		if !goesOn {
			return e.ID
		}
		within = true
	}
	if n := len(v.Summaries); n > 0 {
		return v.Summaries[n-1].EndMsgID
	}
	return 0
}

// EndedBy returns the asked messages that a message ends. A message of their turn ends none. A button ends messages of its card's turn
// alone. A command up to since ends none, see [Since].
func (i Inbox) EndedBy(e sessions.Event, asked []sessions.Event, since int64) []sessions.Event {
	if slices.ContainsFunc(asked, func(a sessions.Event) bool { return a.ID == e.ID }) {
		return nil
	}
	if e.IsPress() && !slices.ContainsFunc(asked, func(a sessions.Event) bool { return chat.StopsTurnOf(e, a) }) {
		return nil
	}
	if e.ID <= since {
		return nil
	}
	return i.commands.Stops(e, asked)
}

// stopsAmong returns those of some messages that end asked ones.
func (i Inbox) stopsAmong(messages, asked []sessions.Event, since int64) []sessions.Event {
	var by []sessions.Event
	for _, e := range messages {
		if len(i.EndedBy(e, asked, since)) > 0 {
			by = append(by, e)
		}
	}
	return by
}

// Stops returns the commands that stop a turn before it begins.
func (i Inbox) Stops(ctx context.Context, made choice.Choice) []sessions.Event {
	behind := slices.Clone(made.View.Pending[len(made.Asked):])
	if made.View.More { // the view has the oldest only
		pending, err := i.newest(ctx, made.Lease.Key)
		if err != nil {
			zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to look for a stop before the turn")
			i.running.Note(made.Lease.Key) // the running turn looks
		}
		for _, e := range pending {
			if !slices.ContainsFunc(behind, func(known sessions.Event) bool { return known.ID == e.ID }) {
				behind = append(behind, e)
			}
		}
	}
	return i.stopsAmong(behind, made.Asked, made.Since)
}

// MoreStops adds commands to those that stopped a turn: others may have come meanwhile. The oldest is the first.
func (i Inbox) MoreStops(ctx context.Context, made choice.Choice, by []sessions.Event) []sessions.Event {
	pending, err := i.newest(ctx, made.Lease.Key)
	if err != nil {
		zerolog.Ctx(ctx).Warn().Err(err).Msg("Failed to look for further stops of the turn")
	}
	all := slices.Clone(by)
	for _, e := range i.stopsAmong(pending, made.Asked, made.Since) {
		if !slices.ContainsFunc(by, func(known sessions.Event) bool { return known.ID == e.ID }) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(x, y sessions.Event) int { return cmp.Compare(x.ID, y.ID) })
	return all
}
