package choice

import (
	"strings"
	"time"

	"ebb/sessions"
)

// Kind is what the messages of a turn are.
type Kind string

// The kinds of turns.
const (
	Ask      Kind = "ask"      // goes to the model
	Command  Kind = "command"  // a slash command
	Hello    Kind = "hello"    // a mention without text
	Quota    Kind = "quota"    // DingTalk withheld the content
	Stale    Kind = "stale"    // too old to be answered without asking
	Dead     Kind = "dead"     // failed too often
	Limited  Kind = "limited"  // over a limit
	Remind   Kind = "remind"   // the text of a reminder, or that it was missed
	Missed   Kind = "missed"   // a scheduled question whose time passed too long ago
	Rejected Kind = "rejected" // a command that rejected calls of tools
	Expired  Kind = "expired"  // calls of tools for which no decision came
)

// MaxBroken is the number of attempts after which a message is a dead letter.
const MaxBroken = 3

// Commands judges messages that may be slash commands.
type Commands interface {
	// Stops returns the messages of a turn that a message ends: all for a /stop of the conversation's owner, and for one of other people
	// their own.
	Stops(e sessions.Event, asked []sessions.Event) []sessions.Event
	// Work is what limits count a command as; empty: it costs nothing, or will be refused.
	Work(e sessions.Event) sessions.Work
}

// Kinds judges single messages.
type Kinds struct {
	Views interface{ IsCommand(e sessions.Event) bool }
	// StaleAfter is the age from which a message is not answered without asking.
	StaleAfter time.Duration
}

// KindOf returns the kind of a turn that answers a message.
func (k Kinds) KindOf(e sessions.Event, now time.Time) Kind {
	switch {
	case e.Attempts >= MaxBroken:
		return Dead
	case e.IsScheduled():
		return k.ofScheduled(*e.Message.Scheduled, now)
	case e.Message != nil && e.Message.Outcome == sessions.Decided: // an earlier attempt at it decided, and the call is not made yet
		return Command
	case e.IsPress(): // it is about one turn, and can be about no other however late it is
		return Command
	case now.Sub(e.CreatedAt) > k.StaleAfter:
		return Stale
	case e.Message != nil && e.Message.OverQuota:
		return Quota
	case strings.TrimSpace(e.Content) == "":
		return Hello
	case k.Views.IsCommand(e):
		return Command
	}
	return Ask
}

// ofScheduled judges by the schedule's time, not that of the message's storage.
func (k Kinds) ofScheduled(s sessions.Scheduled, now time.Time) Kind {
	switch {
	case s.Kind == sessions.Remind:
		return Remind
	case s.Kind == sessions.Expired:
		return Expired
	case isMissed(s, now, k.StaleAfter):
		return Missed
	}
	return Ask
}

func isMissed(s sessions.Scheduled, now time.Time, grace time.Duration) bool {
	return now.Sub(s.DueAt) > grace
}

// triage takes the oldest messages of one kind, up to half of a request. Questions with more than [sessions.MaxAttachments] files together are for
// several turns, each of which reads its own: a burst of files neither takes a turn's whole time nor loses any. A message that stops those before it is not
// answered with them.
func (k Kinds) triage(pending []sessions.Event, usable int, now time.Time, c Commands) (kind Kind, take int) {
	if len(pending) == 0 {
		return "", 0
	}
	kind = k.KindOf(pending[0], now)
	budget, files := usable/2, 0
	for i, e := range pending {
		if k.KindOf(e, now) != kind || i > 0 && (kind == Command || kind == Dead || kind == Ask && standsAlone(c, e, pending[:i])) {
			break
		}
		if kind == Ask {
			files += e.Message.Files()
		}
		if budget -= e.Tokens; (budget < 0 || files > sessions.MaxAttachments) && i > 0 {
			break
		}
		take = i + 1
	}
	return kind, take
}

// standsAlone reports whether a question is not answered with those before it. A scheduled one stays apart from people's
// questions, which may be stopped or may set schedules.
func standsAlone(c Commands, e sessions.Event, before []sessions.Event) bool {
	return e.IsScheduled() || before[0].IsScheduled() || len(c.Stops(e, before)) > 0
}
