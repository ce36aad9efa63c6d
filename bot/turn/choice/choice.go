// Package choice decides what a turn answers, and as what: it takes waiting messages of one kind, against the limits of people and
// groups. It has the words of turns that ask no model and are no command.
package choice

import "ebb/sessions"

// Choice is what a turn answers, under a lease.
type Choice struct {
	Lease sessions.Lease
	View  sessions.View // as requests show it; Pending begins with the messages of Asked, whole
	Kind  Kind
	Asked []sessions.Event // pending messages that the turn takes; requests may shorten them
	Lang  string           // for fixed words: zh or en
	// Reached is the limit that a turn of [Limited] is about.
	Reached *sessions.Reached
	// Since is the newest event before the turn: an earlier command was meant for an earlier turn.
	Since int64
	// Stops are commands that stop the turn before it begins.
	Stops []sessions.Event
	// Decided are calls of tools on which the command decided: a turn of [Ask] makes them.
	Decided []sessions.Approval
}

// Decide makes a command that decided on calls a turn of its own kind.
func (c Choice) Decide(calls []sessions.Approval) Choice {
	if len(calls) == 0 {
		return c
	}
	c.Kind, c.Decided = Ask, calls
	if calls[0].State == sessions.ApprovalRejected {
		c.Kind = Rejected
	}
	return c
}

// Apart reports whether messages and answer are no part of the conversation, by the same rule as [view.Builder.IsCommand].
func (c Choice) Apart() bool { return c.Kind == Command || c.Kind == Limited || c.Kind == Remind }

// Next is the sequence number of the first message, as the commit will give it.
func (c Choice) Next() int64 { return c.View.Session.LastSeq + 1 }

// MoveFirst moves matching messages before the others, and returns their number.
func (c Choice) MoveFirst(match func(sessions.Event) bool) int {
	MoveFirst(c.View.Pending[:len(c.Asked)], match)
	return MoveFirst(c.Asked, match)
}

// MoveFirst moves matching events before the others, and returns their number.
func MoveFirst(events []sessions.Event, match func(sessions.Event) bool) int {
	var yes, no []sessions.Event
	for _, e := range events {
		if match(e) {
			yes = append(yes, e)
		} else {
			no = append(no, e)
		}
	}
	copy(events, append(yes, no...))
	return len(yes)
}
