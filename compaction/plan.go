package compaction

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"ebb/compaction/tokens"
	"ebb/sessions"
)

// Cut is a planned compaction: the events of the tail before Index leave the view, those from it on stay.
type Cut struct {
	Index   int
	Through int64 // Seq of the last event that leaves
	Source  int   // tokens of what leaves
	Recent  int   // tokens of what stays
}

// Why there is nothing to compact. None is a failure: no model is asked, and asking again before the context has
// changed is of no use. ErrBlockedHead and ErrTooLittle are an ErrAllRecent too.
var (
	ErrAllRecent       = errors.New("everything in the view is recent")
	ErrBlockedHead     = fmt.Errorf("blocked_head: a tool call that waits for its result begins the view: %w", ErrAllRecent)
	ErrTooLittle       = fmt.Errorf("too little can leave to be worth a summary: %w", ErrAllRecent)
	ErrSystemDominates = errors.New("system_dominates: system prompt, tools and pinned memory leave no room for a conversation")
)

// leastTail is how many events a tail in messages keeps although they take more than its share, in a row of large ones.
const leastTail = 8

// Plan says which part of the tail leaves. w is in the tokens that events are counted in: see [Window.Counted].
// The cut always lies before a user's message that begins a turn, so that a tool call is never parted from its
// results, a call that has none yet stays, and so does the newest turn. Where nothing can leave, the error is
// ErrAllRecent or ErrBlockedHead, or ErrSystemDominates where no cut would make room.
func (p Policy) Plan(w Window, s State) (Cut, error) {
	starts, available := TurnStarts(s.Tail), w.Available(s.Fixed)
	switch {
	case len(starts) > 0 && available <= 0:
		return Cut{}, ErrSystemDominates
	case len(starts) < 2:
		return Cut{}, ErrAllRecent
	}
	var at int
	if p.Segment > 0 {
		at = p.segment(s.Tail, starts)
	} else {
		at = p.tail(s.Tail, starts, available, available-s.Standing)
	}
	if at == 0 {
		return Cut{}, ErrAllRecent
	}
	closed := closedBefore(s.Tail, starts, at, p.overflows(w, s))
	if closed == 0 || p.Segment > 0 && closed < at { // a segment is whole or not at all
		return Cut{}, ErrBlockedHead
	}
	gone := s.Tail[:closed]
	return Cut{Index: closed, Through: lastSeq(gone), Source: TokensOf(gone), Recent: TokensOf(s.Tail[closed:])}, nil
}

// overflows reports whether a view takes all of the window. A tool call that still waits then has waited in vain.
func (p Policy) overflows(w Window, s State) bool {
	return s.Fixed+s.Standing+TokensOf(s.Tail) >= w.Usable()
}

// segment is where the oldest Segment turns end, if as many turns as the policy wants stay after them; else 0. A turn
// counts once it was answered. What stands before the first question belongs to the first turn.
func (p Policy) segment(tail []sessions.Event, starts []int) int {
	if tail[0].Role != sessions.RoleUser {
		starts = starts[1:]
	}
	answered := len(starts)
	if tail[len(tail)-1].Role == sessions.RoleUser {
		answered--
	}
	if answered < p.Segment+max(1, p.TailTurns) {
		return 0
	}
	return starts[p.Segment]
}

// tail is where the part of the tail begins that stays: at a turn's beginning, so that a number of events is at least
// that many. available is what conversation and summaries may take together, room what is left next to the summary
// that the new one continues: where that is long, less stays raw.
func (p Policy) tail(tail []sessions.Event, starts []int, available, room int) int {
	budget := min(int(p.TailShare*float64(available)), room)
	keep, tokens := len(tail), 0
	for i, start := range slices.Backward(starts) {
		turns, events := len(starts)-1-i, len(tail)-keep
		turn := TokensOf(tail[start:keep])
		if turns > 0 && turns >= p.TailTurns && !p.wants(events, tokens+turn, budget, room) {
			break
		}
		keep, tokens = start, tokens+turn
	}
	return keep
}

// wants reports whether a turn that would make the tail take so many tokens still belongs to one of so many events.
func (p Policy) wants(events, tokens, budget, room int) bool {
	switch {
	case p.TailMessages > 0 && events >= p.TailMessages:
		return false
	case p.TailShare > 0 && tokens <= budget:
		return true
	case p.TailMessages > 0 && p.TailShare > 0:
		return events < leastTail && tokens <= room
	}
	return p.TailMessages > 0
}

// closedBefore moves a cut left to the beginning of a turn before which every call has its result. Calls without any
// are overlooked where giveUp says so.
func closedBefore(tail []sessions.Event, starts []int, at int, giveUp bool) int {
	all := exchanges(tail)
	for parted := true; parted; {
		parted = false
		for _, x := range all {
			if x.call < at && at <= x.result && (!giveUp || x.result != pending) {
				at, parted = starts[sort.SearchInts(starts, x.call+1)-1], true
			}
		}
	}
	return at
}

// exchange is a tool call and its result, by their indices.
type exchange struct{ call, result int }

// pending stands for the index of a result that is not there.
const pending = math.MaxInt

// exchanges pairs the calls of a tail with their results. Providers use ids again: a call whose id comes again before
// its result has none.
func exchanges(tail []sessions.Event) []exchange {
	var out []exchange
	open := map[string]int{}
	for i, e := range tail {
		for _, c := range e.ToolCalls {
			if at, reused := open[c.ID]; reused {
				out = append(out, exchange{at, pending})
			}
			open[c.ID] = i
		}
		if e.Role == sessions.RoleTool {
			if at, ok := open[e.ToolCallID]; ok {
				out = append(out, exchange{at, i})
				delete(open, e.ToolCallID)
			}
		}
	}
	for _, at := range open {
		out = append(out, exchange{at, pending})
	}
	return out
}

// TurnStarts lists the indices at which turns begin: user messages that follow something else than a user message,
// since several that waited are answered together. What comes before the first is taken for a turn, and summaries are
// nobody's words.
func TurnStarts(events []sessions.Event) []int {
	var starts []int
	var before sessions.Role
	for i, e := range events {
		switch {
		case e.Role == sessions.RoleSummary:
			continue
		case starts == nil:
			starts = append(starts, 0)
		case e.Role == sessions.RoleUser && before != sessions.RoleUser:
			starts = append(starts, i)
		}
		before = e.Role
	}
	return starts
}

// TokensOf is what events take in a request, their messages' overhead included.
func TokensOf(events []sessions.Event) int {
	n := 0
	for _, e := range events {
		n += e.Tokens + tokens.MessageOverhead
	}
	return n
}
