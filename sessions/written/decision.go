package written

import "ebb/sessions"

// decision is made on the beginning of the undecided text. The filter alone applies it.
type decision struct {
	outcome outcome
	n       int                 // bytes that are words or removed
	found   Kind                // correction, "" for none
	calls   []sessions.ToolCall // those of the removed text, with Called

	ends     bool // all text behind it is dropped
	begins   bool // the answer begins behind the removed text
	leads    bool // the removed text comes back if a later line has the same form
	restores bool // the text that was removed before the answer comes back
	keeps    bool // names before lines are words of the answer
}

// outcome is the kind of a decision.
type outcome uint8

const (
	isOther   outcome = iota // the text does not begin with what was looked for
	isOpen                   // more text decides
	isWords                  // the first bytes are words of the answer
	isRemoved                // the first bytes are no words of the answer
)

var (
	other = decision{}
	open  = decision{outcome: isOpen}
)

func words(n int) decision { return decision{outcome: isWords, n: n} }

func removed(n int, found Kind) decision {
	return decision{outcome: isRemoved, n: n, found: found}
}

// looped removes n bytes that repeat without end, and ends the answer.
func looped(n int) decision {
	return decision{outcome: isRemoved, n: n, found: Repeated, ends: true}
}

// called removes n bytes, which are calls of offered tools if they could be read.
func called(n int, calls []sessions.ToolCall, ok bool) decision {
	if !ok {
		return removed(n, Garbled)
	}
	return decision{outcome: isRemoved, n: n, found: Called, calls: calls}
}

// openIf is open if more text decides.
func openIf(wait bool) decision {
	if wait {
		return open
	}
	return other
}
